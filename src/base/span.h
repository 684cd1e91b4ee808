// Spans of time as people write them: "30s", "1h30m", "2w"; or as ISO 8601 does: "PT30S", "P7D".
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hapax::base {

struct SpanUnit {
  std::string_view name;
  std::uint64_t ms;
};

// The largest first: the parts of a span come in this order.
inline constexpr SpanUnit kSpanUnits[] = {{"w", 604'800'000}, {"d", 86'400'000}, {"h", 3'600'000},
                                          {"m", 60'000},      {"s", 1'000},      {"ms", 1}};

// For messages.
inline constexpr std::string_view kSpanUnitNames = "ms, s, m, h, d, w, or ISO 8601 as P7D";

// Milliseconds. Nothing if the text is not a span: every number needs a unit, and a unit stands
// once. Months and years have no fixed length and are not units.
[[nodiscard]] std::optional<std::uint64_t> parse_span(std::string_view text);

}  // namespace hapax::base
