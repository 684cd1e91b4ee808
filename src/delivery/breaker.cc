#include "delivery/breaker.h"

namespace hapax::delivery {

BreakerSettings BreakerSettings::of(const BreakerTerms& terms) {
  BreakerSettings settings;
  if (terms.failures) settings.silent_keys = settings.failing_keys = *terms.failures;
  if (terms.pause_max) settings.pause_max = settings.failing_pause_max = *terms.pause_max;
  if (terms.pause) {
    settings.pause_first = *terms.pause;
    settings.pause_max = std::max(settings.pause_max, *terms.pause);
    settings.failing_pause_max = std::max(settings.failing_pause_max, *terms.pause);
  }
  if (terms.probes) settings.probes = *terms.probes;
  return settings;
}

void Breaker::passed() {
  failed_keys_.clear();
  pause_ = Duration{0};
  until_ms_ = 0;
}

bool Breaker::failed(std::int64_t now_ms, const Failure& failure) {
  // Z4: what was under way when the breaker opened says nothing new.
  const bool straggler = !closed() && now_ms < until_ms_;
  if (straggler && failure.asked == Duration{0}) return false;
  const std::uint32_t needed = failure.answered ? settings_.failing_keys : settings_.silent_keys;
  if (failed_keys_.size() < needed) failed_keys_.emplace(failure.key);
  const bool asked = failure.asked > Duration{0};
  if (closed() && !asked && failed_keys_.size() < needed) return false;
  open(now_ms, failure);
  return true;
}

void Breaker::open(std::int64_t now_ms, const Failure& failure) {
  const Duration most = failure.answered ? settings_.failing_pause_max : settings_.pause_max;
  const bool straggler = !closed() && now_ms < until_ms_;
  if (!straggler) pause_ = closed() ? settings_.pause_first : std::min(pause_ * 2, most);
  pause_ = std::max(pause_, Duration{1});
  until_ms_ = std::max(until_ms_, now_ms + std::max(pause_, failure.asked).count());
  ++opened_;
}

}  // namespace hapax::delivery
