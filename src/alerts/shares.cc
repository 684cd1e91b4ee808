#include "alerts/shares.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hapax::alerts {

namespace {

double grown(std::uint64_t& counter, std::uint64_t now) {
  const std::uint64_t before = std::exchange(counter, now);
  return static_cast<double>(now >= before ? now - before : now);
}

}  // namespace

void Shares::see(const Subject& subject, std::uint64_t part, std::uint64_t whole, Time now) {
  Counted& it = counted_[subject];
  const auto since = static_cast<double>(std::max((now - it.at).count(), Duration::rep{0}));
  const double fades =
      it.at == Time{} ? 0 : std::exp2(-since / static_cast<double>(kHalfLife.count()));
  it.part_lately = it.part_lately * fades + grown(it.part, part);
  it.whole_lately = it.whole_lately * fades + grown(it.whole, whole);
  it.at = now;
}

std::optional<double> Shares::share_of(const Subject& subject) const {
  const auto found = counted_.find(subject);
  if (found == counted_.end() || found->second.whole_lately < kWholeMin) return std::nullopt;
  return found->second.part_lately / found->second.whole_lately;
}

void Shares::keep_seen(Time now) {
  std::erase_if(counted_, [&](const auto& each) { return each.second.at != now; });
}

}  // namespace hapax::alerts
