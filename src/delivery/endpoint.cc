#include "delivery/endpoint.h"

#include <algorithm>
#include <cmath>

namespace hapax::delivery {

bool RateLimit::allows(std::int64_t now_ms) {
  if (per_second_ == 0) return true;
  const std::int64_t since = filled_ms_ ? now_ms - *filled_ms_ : 0;
  filled_ms_ = now_ms;
  left_ = std::min(most_, left_ + static_cast<double>(since) * per_second_ / 1000.0);
  return left_ >= 1.0;
}

std::int64_t RateLimit::next_ms(std::int64_t now_ms) const {
  if (per_second_ == 0 || left_ >= 1.0) return now_ms;
  const double wait_ms = std::ceil((1.0 - left_) * 1000.0 / per_second_);
  return filled_ms_.value_or(now_ms) +
         std::max<std::int64_t>(1, static_cast<std::int64_t>(wait_ms));
}

std::optional<std::int64_t> Endpoint::next_ms(std::int64_t now_ms) const {
  if (under_way >= policy.concurrency) return {};
  if (breaker.is_probing(under_way)) return {};
  const std::optional<std::int64_t> due = queues.next_due_ms(now_ms);
  if (!due) return {};
  const std::int64_t open = breaker.closed() ? now_ms : breaker.until_ms();
  return std::max({*due, open, rate.next_ms(now_ms)});
}

Duration Endpoint::defer(std::int64_t now_ms) {
  if (now_ms >= deferral.doubles_at_ms) {
    deferral.span = std::clamp(deferral.span * 2, Deferral::kFirst, Deferral::kMost);
    deferral.doubles_at_ms = now_ms + deferral.span.count();
  }
  return std::max(deferral.span, Duration{breaker.until_ms() - now_ms});
}

// A failure that cost no attempt is known to the endpoint alone, for as long as it is remembered.
void Endpoint::tell_began(const std::vector<const Outgoing*>& records) const {
  if (policy.observer == nullptr) return;
  const auto repeated = std::count_if(records.begin(), records.end(), [&](const Outgoing* record) {
    return record->attempt > 1 || record->replay > 0 || record->tried_for > Duration{0} ||
           suspects.contains(record->id);
  });
  policy.observer->began(records.size(), static_cast<std::size_t>(repeated));
}

void Endpoint::enable() {
  if (gone.empty()) return;
  gone.clear();
  if (policy.observer != nullptr) policy.observer->enabled();
}

void Endpoint::tell_settled(ports::Clock& clock, const Outgoing& record, Settlement::Kind kind,
                            std::string_view reason) const {
  if (policy.observer == nullptr) return;
  const Duration age = time_from_ms(clock.wall_ms()) - record.time;
  const bool known = record.time != Time{};
  policy.observer->settled(kind, known ? std::max(age, Duration{0}) : Duration{0}, reason);
}

}  // namespace hapax::delivery
