#include "delivery/breaker.h"

#include <gtest/gtest.h>

namespace hapax::delivery {
namespace {

constexpr BreakerSettings kSettings{};

// Z4: one record that fails may be to blame itself.
TEST(DeliveryBreaker, OpensWhenSeveralKeysFailed) {
  Breaker breaker(kSettings);
  EXPECT_FALSE(breaker.failed(0, {.key = "a"}));
  EXPECT_FALSE(breaker.failed(0, {.key = "a"})) << "the same key says nothing new";
  EXPECT_TRUE(breaker.lets_through(0, 5));
  EXPECT_TRUE(breaker.failed(0, {.key = "b"}));
  EXPECT_FALSE(breaker.lets_through(249, 0));
  EXPECT_TRUE(breaker.lets_through(250, 0));
  EXPECT_FALSE(breaker.lets_through(250, 1)) << "one at a time finds out";
}

TEST(DeliveryBreaker, GivesAnEndpointThatAnswersMoreTries) {
  Breaker breaker(kSettings);
  for (const char* key : {"a", "b", "c"}) {
    EXPECT_FALSE(breaker.failed(0, {.key = key, .answered = true})) << key;
  }
  EXPECT_TRUE(breaker.failed(0, {.key = "d", .answered = true}));
}

TEST(DeliveryBreaker, PausesLongerWhileItFailsAndIsWholeAfterOneThatPassed) {
  Breaker breaker(kSettings);
  EXPECT_FALSE(breaker.failed(0, {.key = "a"}));
  std::int64_t now = 0;
  for (const std::int64_t pause : {250, 500, 1'000, 2'000, 4'000, 8'000, 16'000, 30'000, 30'000}) {
    EXPECT_TRUE(breaker.failed(now, {.key = "b"}));
    EXPECT_EQ(breaker.until_ms() - now, pause);
    now = breaker.until_ms();
  }
  breaker.passed();
  EXPECT_TRUE(breaker.closed());
  EXPECT_FALSE(breaker.failed(now, {.key = "a"})) << "the count begins again";
}

// Z4: a hundred requests that were under way when the endpoint died are one failure.
TEST(DeliveryBreaker, WhatWasUnderWayWhenItOpenedSaysNothingNew) {
  Breaker breaker(kSettings);
  EXPECT_FALSE(breaker.failed(0, {.key = "a"}));
  EXPECT_TRUE(breaker.failed(0, {.key = "b"}));
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(breaker.failed(100, {.key = "c"}));
  EXPECT_EQ(breaker.until_ms(), 250);
}

TEST(DeliveryBreaker, LeavesAnEndpointAloneForAsLongAsItAsks) {
  Breaker breaker(kSettings);
  EXPECT_TRUE(breaker.failed(0, {.key = "a", .answered = true, .asked = Duration{7'000}}));
  EXPECT_FALSE(breaker.lets_through(6'999, 0));
  EXPECT_TRUE(breaker.failed(1'000, {.key = "b", .answered = true, .asked = Duration{9'000}}));
  EXPECT_FALSE(breaker.lets_through(9'999, 0));
  EXPECT_TRUE(breaker.lets_through(10'000, 0));
}

}  // namespace
}  // namespace hapax::delivery
