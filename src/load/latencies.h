// Many durations in little memory: counted by size, to a precision of one percent.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace hapax::load {

using Micros = std::chrono::microseconds;

class Latencies {
 public:
  Latencies();

  void add(Micros latency);  // beyond 19 hours counts as 19 hours
  void merge(const Latencies& other);

  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] Micros max() const { return max_; }
  // So much of all took no longer: at(0.5) is the median. 0 if there are none.
  [[nodiscard]] Micros at(double share) const;

 private:
  std::vector<std::uint64_t> counts_;  // by bucket
  std::uint64_t count_ = 0;
  Micros max_{0};
};

}  // namespace hapax::load
