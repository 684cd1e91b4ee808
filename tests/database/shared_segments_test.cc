#include <gtest/gtest.h>

#include <hapax/hapax.h>
#include <hapax/postgres_store.h>

#include "../postgres/cluster.h"

namespace hapax {
namespace {

// The place of a batch follows from the size of a segment: two that disagree would both succeed.
TEST(SharedSegments, WhoMadeTheStoreChoseTheirSize) {
  const std::string uri = testing_postgres::Cluster::instance().make_database();
  PostgresStoreOptions small;
  small.segment_bytes = std::uint64_t{16} << 10;
  const auto one = open_postgres(uri, small).value();
  const auto other = open_postgres(uri).value();
  ASSERT_TRUE(one->commit({.ops = std::vector<Op>{CreateStream{"s", {}}}}).ok());
  const std::string payload(4'096, 'x');
  for (int i = 0; i < 20; ++i) {
    const std::vector<Op> ops{Append{.stream = "s", .payload = payload}};
    const auto answer = (i % 2 == 0 ? one : other)->commit({.ops = ops});
    ASSERT_TRUE(answer) << answer.error().text();
  }
  EXPECT_EQ(one->describe("s")->last, Sequence{20});
  EXPECT_EQ(other->describe("s")->last, Sequence{20});
}

// What is acknowledged must be on disk.
TEST(SharedSegments, ADatabaseThatAnswersBeforeItWritesIsRefused) {
  const std::string uri = testing_postgres::Cluster::instance().make_database();
  const auto opened = open_postgres(uri + "&options=-csynchronous_commit%3Doff");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::kInvalidArgument) << opened.error().text();
}

}  // namespace
}  // namespace hapax
