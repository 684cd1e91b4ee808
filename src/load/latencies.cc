#include "load/latencies.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace hapax::load {

namespace {

// Exact below 256; above, each power of two has 128 buckets of equal width.
constexpr std::uint64_t kExact = 256;
constexpr std::uint64_t kPerPower = 128;
constexpr std::uint64_t kPowers = 28;
constexpr std::uint64_t kLargest = (kExact << kPowers) - 1;

std::size_t bucket_of(std::uint64_t value) {
  if (value < kExact) return value;
  const auto power = static_cast<std::uint64_t>(std::bit_width(value)) - 8;
  return kExact + (power - 1) * kPerPower + (value >> power) - kPerPower;
}

std::uint64_t largest_in(std::size_t bucket) {
  if (bucket < kExact) return bucket;
  const std::uint64_t power = (bucket - kExact) / kPerPower + 1;
  const std::uint64_t place = kPerPower + (bucket - kExact) % kPerPower;
  return ((place + 1) << power) - 1;
}

}  // namespace

Latencies::Latencies() : counts_(kExact + kPowers * kPerPower, 0) {}

void Latencies::add(Micros latency) {
  const auto value = static_cast<std::uint64_t>(std::max<std::int64_t>(latency.count(), 0));
  ++counts_[bucket_of(std::min(value, kLargest))];
  ++count_;
  max_ = std::max(max_, latency);
}

void Latencies::merge(const Latencies& other) {
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  max_ = std::max(max_, other.max_);
}

Micros Latencies::at(double share) const {
  const auto wanted = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(count_)));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < counts_.size() && count_ != 0; ++i) {
    seen += counts_[i];
    if (seen < std::max<std::uint64_t>(wanted, 1)) continue;
    return std::min(max_, Micros{static_cast<std::int64_t>(largest_in(i))});
  }
  return Micros{0};
}

}  // namespace hapax::load
