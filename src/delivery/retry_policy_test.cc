#include "delivery/retry_policy.h"

#include <limits>

#include <gtest/gtest.h>

namespace hapax::delivery {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

const Backoff kList = BackoffList{{seconds{1}, seconds{2}, seconds{5}}};
const Backoff kDoubling = ExponentialBackoff{seconds{1}, seconds{10}};

TEST(RetryPolicy, AListIsFollowedAsWrittenAndItsLastPauseRepeats) {
  const Duration wanted[] = {seconds{1}, seconds{2}, seconds{5}, seconds{5}, seconds{5}};
  for (std::uint32_t failed = 1; failed <= 5; ++failed) {
    for (const std::uint64_t random : {std::uint64_t{0}, std::uint64_t{12345}}) {
      EXPECT_EQ(pause_after(kList, failed, random), wanted[failed - 1]) << failed;
    }
  }
}

TEST(RetryPolicy, APauseDoublesUpToItsLimit) {
  const Duration wanted[] = {seconds{1}, seconds{2},  seconds{4},
                             seconds{8}, seconds{10}, seconds{10}};
  for (std::uint32_t failed = 1; failed <= 6; ++failed) {
    EXPECT_EQ(longest_pause_after(kDoubling, failed), wanted[failed - 1]) << failed;
  }
  // Attempts beyond the bits of a number.
  EXPECT_EQ(longest_pause_after(kDoubling, kRetryAttemptsMax), seconds{10});
  const Backoff none = ExponentialBackoff{Duration{0}, seconds{10}};
  EXPECT_EQ(longest_pause_after(none, 50), Duration{0});
}

TEST(RetryPolicy, HalfOfADoublingPauseIsRandom) {
  for (std::uint32_t failed = 1; failed <= 6; ++failed) {
    const Duration longest = longest_pause_after(kDoubling, failed);
    EXPECT_EQ(pause_after(kDoubling, failed, 0), longest / 2);
    // 1,000 steps of one second: the last one is the whole pause.
    const auto parts = static_cast<std::uint64_t>((longest - longest / 2).count());
    EXPECT_EQ(pause_after(kDoubling, failed, parts), longest);
    for (std::uint64_t random = 1; random != 0 && random < 1'000'000'007; random *= 31) {
      const Duration pause = pause_after(kDoubling, failed, random);
      EXPECT_GE(pause, longest / 2);
      EXPECT_LE(pause, longest);
      EXPECT_EQ(pause, pause_after(kDoubling, failed, random));
    }
  }
}

TEST(RetryPolicy, ARecordIsGivenUpAfterItsAttemptsOrItsTime) {
  const RetryPolicy policy{3, kList, minutes{1}};
  EXPECT_EQ(next_pause(policy, {1, seconds{0}}, 0), seconds{1});
  EXPECT_EQ(next_pause(policy, {2, seconds{5}}, 0), seconds{2});
  EXPECT_EQ(next_pause(policy, {3, seconds{5}}, 0), std::nullopt);
  EXPECT_EQ(next_pause(policy, {2, seconds{58}}, 0), seconds{2});
  EXPECT_EQ(next_pause(policy, {2, seconds{59}}, 0), std::nullopt);
}

TEST(RetryPolicy, WhatTheEndpointAsksForIsHonouredWithinTheTime) {
  const RetryPolicy policy{3, kList, minutes{1}};
  EXPECT_EQ(next_pause(policy, {1, seconds{0}, seconds{20}}, 0), seconds{20});
  EXPECT_EQ(next_pause(policy, {2, seconds{0}, seconds{1}}, 0), seconds{2});
  EXPECT_EQ(next_pause(policy, {1, seconds{41}, seconds{20}}, 0), std::nullopt);
  const Duration absurd{std::numeric_limits<std::int64_t>::max()};
  EXPECT_EQ(next_pause(policy, {1, seconds{1}, absurd}, 0), std::nullopt);
}

TEST(RetryPolicy, TheHorizonIsTheSumOfPausesAndAttempts) {
  // The document's default: 1 + 2 + 5 + 10 s; the fifth pause has no attempt behind it.
  const RetryHorizon usual = horizon_of(RetryPolicy{}, seconds{30});
  EXPECT_EQ(usual.pauses, seconds{18});
  EXPECT_EQ(usual.attempts, seconds{120});
  EXPECT_EQ(usual.schedule, seconds{138});
  EXPECT_EQ(usual.stretched, hours{1});

  const RetryHorizon cut = horizon_of({5, kDoubling, seconds{20}}, seconds{30});
  EXPECT_EQ(cut.pauses, seconds{15});
  EXPECT_EQ(cut.schedule, seconds{20});

  const RetryHorizon once = horizon_of({1, kDoubling, hours{1}}, seconds{30});
  EXPECT_EQ(once.schedule, Duration{0});
  EXPECT_EQ(once.stretched, Duration{0});

  // 1 + 2 + 4 + 8 and then 995 times 10 s.
  EXPECT_EQ(horizon_of({1'000, kDoubling, hours{9}}, Duration{0}).pauses, seconds{15 + 9'950});
  const Backoff longest = BackoffList{{kPauseMax}};
  EXPECT_GT(horizon_of({kRetryAttemptsMax, longest, hours{1}}, kPauseMax).pauses, Duration{0});
}

}  // namespace
}  // namespace hapax::delivery
