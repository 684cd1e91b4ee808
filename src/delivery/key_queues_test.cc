#include "delivery/key_queues.h"

#include <gtest/gtest.h>

namespace hapax::delivery {
namespace {

using Numbers = std::vector<HandoutNumber>;
constexpr auto kAny = KeyQueues::Choice::kAny;
constexpr auto kTrustedFirst = KeyQueues::Choice::kTrustedFirst;

Numbers next(KeyQueues& queues, std::int64_t now = 0, std::size_t most = 1,
             KeyQueues::Choice choice = kAny) {
  const auto run = queues.next(now, most, choice);
  return run ? run->numbers : Numbers{};
}

// Z7
TEST(DeliveryKeyQueues, AKeyHasOneStartUnderWay) {
  KeyQueues queues;
  for (const HandoutNumber number : {1U, 2U, 3U}) queues.add("a", number);
  queues.add("b", 4);
  EXPECT_EQ(next(queues), Numbers{1});
  EXPECT_EQ(next(queues), Numbers{4});
  EXPECT_EQ(next(queues), Numbers{}) << "both keys are busy";
  queues.ended("a");
  EXPECT_EQ(next(queues, 0, 5), (Numbers{2, 3})) << "in their order";
  EXPECT_EQ(queues.waiting(), 0U);
}

TEST(DeliveryKeyQueues, WhatComesBackGoesFirstAndNotTooEarly) {
  KeyQueues queues;
  for (const HandoutNumber number : {1U, 2U, 3U}) queues.add("a", number);
  EXPECT_EQ(next(queues, 0, 2), (Numbers{1, 2}));
  queues.put_back("a", {1, 2}, 100);
  queues.ended("a");
  EXPECT_EQ(queues.next_due_ms(0), 100);
  EXPECT_EQ(next(queues, 99), Numbers{});
  EXPECT_EQ(next(queues, 100, 9), (Numbers{1, 2, 3}));
}

TEST(DeliveryKeyQueues, ATrustedKeyGoesBeforeOneThatFailed) {
  KeyQueues queues;
  queues.add("bad", 1);
  queues.distrust("bad", true);
  EXPECT_EQ(next(queues, 0, 1, kTrustedFirst), Numbers{1}) << "if there is no other";
  queues.put_back("bad", {1}, 0);
  queues.ended("bad");
  queues.add("good", 2);
  EXPECT_EQ(next(queues, 0, 1, kTrustedFirst), Numbers{2});
}

TEST(DeliveryKeyQueues, WhatIsRemovedIsGone) {
  KeyQueues queues;
  for (const HandoutNumber number : {1U, 2U, 3U}) queues.add("a", number);
  queues.add("b", 4);
  EXPECT_EQ(next(queues), Numbers{1});
  EXPECT_EQ(queues.remove_waiting("a"), (Numbers{2, 3}));
  queues.ended("a");
  queues.remove("b", 4);
  EXPECT_EQ(next(queues), Numbers{});
  EXPECT_EQ(queues.waiting(), 0U);
  EXPECT_EQ(queues.next_due_ms(0), std::nullopt);
}

}  // namespace
}  // namespace hapax::delivery
