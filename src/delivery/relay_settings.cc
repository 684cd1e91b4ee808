#include "delivery/relay_settings.h"

#include <algorithm>

namespace hapax::delivery {

namespace {

constexpr std::uint32_t kLanesMax = 16;  // that an outbox has

}  // namespace

Duration RelaySettings::retry_after(std::uint32_t attempt) const {
  Duration after = retry_first;
  for (std::uint32_t i = 1; i < attempt && after < retry_max; ++i) after *= 2;
  return std::min(after, retry_max);
}

Duration RelaySettings::retry_horizon() const {
  Duration horizon = lease;
  for (std::uint32_t attempt = 1; attempt < attempts_max; ++attempt) {
    horizon += retry_after(attempt);
  }
  return horizon;
}

EngineSettings RelaySettings::engine() const {
  return {.lease = lease, .margin = margin, .window = kLanesMax * batch};
}

LaneSettings RelaySettings::lanes() const {
  return {.batch = batch, .attempts_max = attempts_max, .lease_again = lease_again};
}

EndpointPolicy RelaySettings::policy() const {
  EndpointPolicy policy;
  policy.concurrency = concurrency;
  policy.attempts_max = attempts_max;
  policy.retry_after = [settings = *this](std::uint32_t attempt) {
    return settings.retry_after(attempt);
  };
  policy.failure_cost = FailureCost::kOnceOthersPass;
  policy.breaker = breaker;
  return policy;
}

}  // namespace hapax::delivery
