#include "delivery/breaker.h"

#include <gtest/gtest.h>

namespace hapax::delivery {
namespace {

const BreakerSettings kSettings{};

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

TEST(Breaker, IsAsTheWorkflowSays) {
  const BreakerSettings usual = BreakerSettings::of({});
  EXPECT_EQ(usual.silent_keys, kSettings.silent_keys);
  EXPECT_EQ(usual.failing_pause_max, kSettings.failing_pause_max);
  const BreakerSettings said = BreakerSettings::of(
      {.failures = 1, .pause = Duration{5'000}, .pause_max = Duration{60'000}, .probes = 3});
  EXPECT_EQ(said.silent_keys, 1U);
  EXPECT_EQ(said.failing_keys, 1U);
  EXPECT_EQ(said.pause_max, Duration{60'000});
  EXPECT_EQ(said.failing_pause_max, Duration{60'000});
  // A first pause that is longer than the usual longest one is no shorter for it.
  EXPECT_EQ(BreakerSettings::of({.pause = Duration{5'000}}).failing_pause_max, Duration{5'000});

  Breaker breaker(said);
  EXPECT_TRUE(breaker.failed(0, {.key = "a", .answered = true}));
  EXPECT_FALSE(breaker.lets_through(4'999, 0));
  EXPECT_EQ(breaker.until_ms(), 5'000);
  EXPECT_TRUE(breaker.failed(5'000, {.key = "a", .answered = true}));
  EXPECT_EQ(breaker.until_ms(), 15'000);
}

TEST(Breaker, IsProbedBySoManyAtOnce) {
  Breaker breaker(BreakerSettings::of({.failures = 1, .probes = 2}));
  EXPECT_TRUE(breaker.failed(0, {.key = "a"}));
  EXPECT_TRUE(breaker.lets_through(250, 1));
  EXPECT_FALSE(breaker.is_probing(1));
  EXPECT_FALSE(breaker.lets_through(250, 2));
  EXPECT_TRUE(breaker.is_probing(2));
  breaker.passed();
  EXPECT_TRUE(breaker.lets_through(250, 2));
}

}  // namespace
}  // namespace hapax::delivery
