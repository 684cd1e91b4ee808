// When a delivery that failed is tried again, and for how long. Pure: time and randomness are
// handed in.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include <hapax/time.h>

namespace hapax::delivery {

// The pause doubles after every attempt until it is `most`. Half of each pause is random, so that
// records that failed together do not come back together.
struct ExponentialBackoff {
  Duration first{1'000};
  Duration most{std::chrono::hours{1}};
  friend bool operator==(const ExponentialBackoff&, const ExponentialBackoff&) = default;
};

// Pause n follows attempt n, exactly as written; the last one repeats. Never empty.
struct BackoffList {
  std::vector<Duration> pauses;
  friend bool operator==(const BackoffList&, const BackoffList&) = default;
};

using Backoff = std::variant<ExponentialBackoff, BackoffList>;

inline constexpr std::uint32_t kRetryAttemptsMax = 10'000;
inline constexpr std::size_t kPausesMax = 100;  // of a list
inline constexpr Duration kPauseMax{std::chrono::days{30}};

struct RetryPolicy {
  std::uint32_t attempts_max = 5;  // the first one included; 1 = never again
  Backoff backoff = BackoffList{
      {Duration{1'000}, Duration{2'000}, Duration{5'000}, Duration{10'000}, Duration{30'000}}};
  // No attempt begins later than this after the first one began. Also the end of what Retry-After
  // can ask for.
  Duration give_up_after{std::chrono::hours{1}};
  friend bool operator==(const RetryPolicy&, const RetryPolicy&) = default;
};

// The pause after `failed` attempts. `random` is any number; equal numbers give equal pauses.
// REQUIRES: failed >= 1.
[[nodiscard]] Duration pause_after(const Backoff& backoff, std::uint32_t failed,
                                   std::uint64_t random);
// The same at its longest.
[[nodiscard]] Duration longest_pause_after(const Backoff& backoff, std::uint32_t failed);

// What an endpoint asked for is honoured if it is longer than the pause of the policy.
struct RetryMoment {
  std::uint32_t failed = 1;  // attempts that have failed
  Duration since_first{0};   // from the start of the first attempt to now
  Duration retry_after{0};   // asked for by the endpoint; 0 = nothing
};
// How long to pause before the next attempt, or nothing: the record is given up.
[[nodiscard]] std::optional<Duration> next_pause(const RetryPolicy& policy,
                                                 const RetryMoment& moment, std::uint64_t random);

// The longest time from the start of the first attempt to the start of the last one.
struct RetryHorizon {
  Duration pauses{0};     // all pauses at their longest
  Duration attempts{0};   // attempts before the last one, each as long as an attempt may take
  Duration schedule{0};   // both, but not more than give_up_after
  Duration stretched{0};  // with an endpoint that asks for pauses by Retry-After
};
[[nodiscard]] RetryHorizon horizon_of(const RetryPolicy& policy, Duration attempt_max);

}  // namespace hapax::delivery
