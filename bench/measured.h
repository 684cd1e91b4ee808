// What several benchmarks do with what they measured.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include <hapax/result.h>

#include "folder.h"

namespace hapax::bench {

template <class Value>
Value must(Result<Value> value) {
  if (!value) fail(value.error().text());
  return *std::move(value);
}

inline void pause_ms(std::int64_t ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds{ms});
}

inline std::int64_t now_us() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

inline double quantile_ms(std::vector<std::int64_t> us, double q) {
  if (us.empty()) fail("nothing was measured");
  std::sort(us.begin(), us.end());
  const auto at = static_cast<std::size_t>(static_cast<double>(us.size() - 1) * q);
  return static_cast<double>(us[at]) / 1e3;
}

}  // namespace hapax::bench
