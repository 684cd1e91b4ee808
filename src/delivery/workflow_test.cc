#include "delivery/workflow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hapax::delivery {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(WorkflowId, IsAPartOfNamesAndPaths) {
  for (const char* one : {"sales-orders-to-erp", "a", "A1_b.c"}) {
    EXPECT_TRUE(WorkflowId::parse(one).ok()) << one;
  }
  EXPECT_TRUE(WorkflowId::parse(std::string(100, 'a')).ok());
  for (const char* one : {"", "-a", ".a", "a/b", "a b", "ä", "a\x01"}) {
    EXPECT_FALSE(WorkflowId::parse(one).ok()) << one;
  }
  EXPECT_FALSE(WorkflowId::parse(std::string(101, 'a')).ok());
}

TEST(KeyFormat, NamesItsFields) {
  EXPECT_EQ(KeyFormat().text(), "{database}:{table}:{primaryKey}:{changeVersion}");
  const KeyFormat format = KeyFormat::parse("{table}/{primaryKey}").value();
  EXPECT_THAT(format.fields(), ElementsAre(KeyField::kTable, KeyField::kPrimaryKey));
  EXPECT_EQ(format.text(), "{table}/{primaryKey}");
  EXPECT_FALSE(format.has(KeyField::kChangeVersion));
  EXPECT_EQ(KeyFormat::parse(KeyFormat().text()).value(), KeyFormat());
  for (const char* one : {"", "fixed", "{table", "{tabel}", "{table}{table}"}) {
    EXPECT_FALSE(KeyFormat::parse(one).ok()) << one;
  }
  EXPECT_THAT(KeyFormat::parse("{x}").error().detail,
              HasSubstr("database, table, primaryKey, changeVersion"));
}

TEST(Mechanism, KeepsSomeGuarantees) {
  EXPECT_TRUE(keeps(Mechanism::kTransactionalOutbox, Guarantee::kExactlyOnce));
  EXPECT_FALSE(keeps(Mechanism::kTransactionalOutbox, Guarantee::kAtLeastOnce));
  EXPECT_TRUE(keeps(Mechanism::kGeneratedKeys, Guarantee::kIdempotentKeys));
  EXPECT_FALSE(keeps(Mechanism::kGeneratedKeys, Guarantee::kExactlyOnce));
  EXPECT_TRUE(keeps(Mechanism::kKafkaOffsets, Guarantee::kAtLeastOnce));
  EXPECT_FALSE(keeps(Mechanism::kKafkaOffsets, Guarantee::kExactlyOnce));
}

}  // namespace
}  // namespace hapax::delivery
