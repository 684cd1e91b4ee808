#include "tables/columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hapax::tables {

namespace {

using testing::ElementsAre;

enum class Named { kKey, kLeaseUntil, kOldestRetryMs, kColumns };

template <class Type>
concept Readable = Columns<Type>;

static_assert(Readable<Named>);
static_assert(!Readable<int>, "a number is no column");
static_assert(!Readable<std::size_t>, "a number is no column");

TEST(Columns, AreNamedAsTheEnumSays) {
  EXPECT_THAT(kColumnNames<Named>, ElementsAre("kKey", "kLeaseUntil", "kOldestRetryMs"));
  enum Local { kA, kFirstSeen, kColumns };
  EXPECT_THAT(kColumnNames<Local>, ElementsAre("kA", "kFirstSeen"));
  EXPECT_THAT(kColumnNames<OnlyColumn>, ElementsAre("kOnly"));
}

TEST(Columns, AnEnumeratorIsItsColumnInSnakeCase) {
  EXPECT_TRUE(is_column_of("kKey", "key"));
  EXPECT_TRUE(is_column_of("kLeaseUntil", "lease_until"));
  for (const char* other : {"", "lease", "lease_", "leaseuntil", "lease_untils", "Lease_until"}) {
    EXPECT_FALSE(is_column_of("kLeaseUntil", other)) << other;
  }
  EXPECT_FALSE(is_column_of("key", "key"));
}

TEST(Columns, ThatFitArePassedOver) {
  const std::string_view columns[] = {"key", "lease_until", "oldest_retry_ms"};
  check_columns(kColumnNames<Named>, columns);
  const std::string_view one[] = {"?column?"};
  check_columns(kColumnNames<OnlyColumn>, one);
}

TEST(ColumnsDeathTest, ThatDriftedApartEndTheProgram) {
  const std::string_view swapped[] = {"lease_until", "key", "oldest_retry_ms"};
  EXPECT_DEATH(check_columns(kColumnNames<Named>, swapped), "0 is lease_until, read as kKey");
  const std::string_view more[] = {"key", "lease_until", "oldest_retry_ms", "state"};
  EXPECT_DEATH(check_columns(kColumnNames<Named>, more), "3 is state, read as -");
  const std::string_view fewer[] = {"key"};
  EXPECT_DEATH(check_columns(kColumnNames<Named>, fewer), "1 is -, read as kLeaseUntil");
  EXPECT_DEATH(check_columns(kColumnNames<OnlyColumn>, swapped), "1 is key, read as -");
}

}  // namespace

}  // namespace hapax::tables
