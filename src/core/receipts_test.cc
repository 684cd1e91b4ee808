// Receipts over the life of consumers; the rest of their rules is in consumers_test.cc.
#include <gtest/gtest.h>

#include "core/consumers_harness.h"

namespace hapax::core {
namespace {

// C2: a consumer that is made again under the same name gives other tokens: who still holds a
// receipt of the old one can neither ack nor extend what the new one hands out.
TEST(Receipts, OfAConsumerThatIsGoneAreStale) {
  ConsumersHarness store;
  store.append();
  store.create("c", {});
  const auto receive = [&store] {
    const Delivery one = store.receive("c").at(0);
    return Receipt{one.record.sequence, one.token};
  };
  const Receipt old = receive();
  ASSERT_EQ(store.run(DeleteConsumer{"orders", "c"}), Verdict(Done{}));
  store.create("c", {});
  const Receipt fresh = receive();
  EXPECT_EQ(fresh.sequence, old.sequence);
  EXPECT_GT(fresh.token, old.token);
  EXPECT_TRUE(std::holds_alternative<Stale>(store.ack("c", old)));
  EXPECT_TRUE(std::holds_alternative<Stale>(store.extend("c", old, Duration{1'000})));
  EXPECT_EQ(store.ack("c", fresh), Verdict(Done{}));
}

}  // namespace
}  // namespace hapax::core
