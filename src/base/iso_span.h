// Spans of time as ISO 8601 writes them: P7D, PT1H30M, P1W, P1DT12H. Months and years have no fixed
// length, and are not understood.
#pragma once

#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

namespace hapax::base {

// Milliseconds; nothing if the text is not such a span.
[[nodiscard]] inline std::optional<std::uint64_t> iso_span_ms(std::string_view text) {
  struct Unit {
    char letter;
    bool of_time;  // behind the T
    std::uint64_t ms;
  };
  constexpr Unit kUnits[] = {{'W', false, 604'800'000},
                             {'D', false, 86'400'000},
                             {'H', true, 3'600'000},
                             {'M', true, 60'000},
                             {'S', true, 1'000}};
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  if (!text.starts_with('P') || text.ends_with('T') || text.size() < 3) return std::nullopt;
  text.remove_prefix(1);
  std::uint64_t sum = 0;
  std::size_t next = 0;  // units come in this order, each once
  bool of_time = false;
  while (!text.empty()) {
    if (text.front() == 'T' && !std::exchange(of_time, true)) {
      text.remove_prefix(1);
      continue;
    }
    std::uint64_t count = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (failed != std::errc{} || end == text.data() + text.size()) return std::nullopt;
    while (next < std::size(kUnits) &&
           (kUnits[next].letter != *end || kUnits[next].of_time != of_time)) {
      ++next;
    }
    if (next == std::size(kUnits) || count > (kMost - sum) / kUnits[next].ms) return std::nullopt;
    sum += count * kUnits[next++].ms;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  }
  return sum;
}

}  // namespace hapax::base
