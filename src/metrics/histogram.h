// Counts by size. Observed from any thread without waiting.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

namespace hapax::metrics {

// What a histogram showed at one moment. Those of equal bounds can be summed.
struct HistogramValues {
  std::vector<double> bounds{};  // upper ones, rising
  // Of the values above the bound before and up to this one; the last has no upper bound.
  std::vector<std::uint64_t> counts{};
  double sum = 0;

  // REQUIRES: this is empty, or both have the same bounds.
  void add(const HistogramValues& other) {
    if (bounds.empty()) bounds = other.bounds;
    counts.resize(other.counts.size());
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += other.counts[i];
    sum += other.sum;
  }

  // The value that a share `q` of all is not above, as Prometheus estimates it: values spread
  // evenly within a bucket, and those above the last bound count as that bound. Nothing: there are
  // no values.
  [[nodiscard]] std::optional<double> quantile(double q) const {
    const auto all = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
    if (all == 0 || bounds.empty()) return std::nullopt;
    const double rank = std::clamp(q, 0.0, 1.0) * static_cast<double>(all);
    double below = 0;
    for (std::size_t i = 0; i < bounds.size(); ++i) {
      const auto here = static_cast<double>(counts[i]);
      if (here > 0 && below + here >= rank) {
        const double from = i == 0 ? 0 : bounds[i - 1];
        return from + (bounds[i] - from) * (rank - below) / here;
      }
      below += here;
    }
    return bounds.back();
  }
};

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
  // While others observe, the sum may be a value ahead of the counts or behind them.
  [[nodiscard]] HistogramValues values() const {
    HistogramValues values{.bounds = bounds_, .sum = sum()};
    for (std::size_t i = 0; i <= bounds_.size(); ++i) values.counts.push_back(count(i));
    return values;
  }

 private:
  const std::vector<double> bounds_;
  const std::unique_ptr<std::atomic<std::uint64_t>[]> counts_;
  std::atomic<double> sum_ = 0;
};

}  // namespace hapax::metrics
