// Counts by size. Observed from any thread without waiting.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace hapax::metrics {

class Histogram {
 public:
  // Upper bounds, rising.
  explicit Histogram(std::vector<double> bounds)
      : bounds_(std::move(bounds)),
        counts_(std::make_unique<std::atomic<std::uint64_t>[]>(bounds_.size() + 1)) {}

  void observe(double value) {
    std::size_t i = 0;
    while (i < bounds_.size() && value > bounds_[i]) ++i;
    counts_[i].fetch_add(1, std::memory_order_relaxed);
    sum_.fetch_add(value, std::memory_order_relaxed);
  }

  [[nodiscard]] std::span<const double> bounds() const { return bounds_; }
  // Of the values above the bound before and up to this one; the last has no upper bound.
  [[nodiscard]] std::uint64_t count(std::size_t bucket) const {
    return counts_[bucket].load(std::memory_order_relaxed);
  }
  [[nodiscard]] double sum() const { return sum_.load(std::memory_order_relaxed); }

 private:
  const std::vector<double> bounds_;
  const std::unique_ptr<std::atomic<std::uint64_t>[]> counts_;
  std::atomic<double> sum_ = 0;
};

}  // namespace hapax::metrics
