#include "delivery/retry_policy.h"

#include <algorithm>

#include "base/assert.h"

namespace hapax::delivery {

namespace {

Duration full_pause(const ExponentialBackoff& backoff, std::uint32_t failed) {
  Duration pause = std::min(backoff.first, backoff.most);
  for (std::uint32_t i = 1; i < failed && pause < backoff.most && pause.count() > 0; ++i) {
    pause = std::min(pause * 2, backoff.most);
  }
  return pause;
}

Duration full_pause(const BackoffList& backoff, std::uint32_t failed) {
  HAPAX_ASSERT(!backoff.pauses.empty(), "a list of pauses is not empty");
  return backoff.pauses[std::min<std::size_t>(failed - 1, backoff.pauses.size() - 1)];
}

}  // namespace

Duration longest_pause_after(const Backoff& backoff, std::uint32_t failed) {
  HAPAX_ASSERT(failed >= 1, "a pause follows an attempt");
  return std::visit([&](const auto& kind) { return full_pause(kind, failed); }, backoff);
}

Duration pause_after(const Backoff& backoff, std::uint32_t failed, std::uint64_t random) {
  const Duration full = longest_pause_after(backoff, failed);
  if (std::holds_alternative<BackoffList>(backoff)) return full;
  const Duration fixed = full / 2;
  const auto parts = static_cast<std::uint64_t>((full - fixed).count()) + 1;
  return fixed + Duration{static_cast<std::int64_t>(random % parts)};
}

std::optional<Duration> next_pause(const RetryPolicy& policy, const RetryMoment& moment,
                                   std::uint64_t random) {
  if (moment.failed >= policy.attempts_max) return std::nullopt;
  const Duration pause =
      std::max(pause_after(policy.backoff, moment.failed, random), moment.retry_after);
  // By subtraction: an endpoint may ask for a pause that no sum would hold.
  if (pause > policy.give_up_after - moment.since_first) return std::nullopt;
  return pause;
}

RetryHorizon horizon_of(const RetryPolicy& policy, Duration attempt_max) {
  RetryHorizon horizon;
  if (policy.attempts_max <= 1) return horizon;
  const std::uint32_t pauses = policy.attempts_max - 1;
  horizon.attempts = attempt_max * pauses;
  // From here on every pause is as long as the one before: a list has ended, a doubling has too.
  constexpr std::uint32_t kSteadyFrom = std::max<std::uint32_t>(kPausesMax, 64);
  for (std::uint32_t failed = 1; failed <= std::min(pauses, kSteadyFrom); ++failed) {
    horizon.pauses += longest_pause_after(policy.backoff, failed);
  }
  if (pauses > kSteadyFrom) {
    horizon.pauses += longest_pause_after(policy.backoff, pauses) * (pauses - kSteadyFrom);
  }
  horizon.schedule = std::min(horizon.pauses + horizon.attempts, policy.give_up_after);
  horizon.stretched = policy.give_up_after;
  return horizon;
}

}  // namespace hapax::delivery
