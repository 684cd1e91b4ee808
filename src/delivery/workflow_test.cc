#include "delivery/workflow.h"

#include <gtest/gtest.h>

namespace hapax::delivery {
namespace {

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
