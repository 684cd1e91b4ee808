// Spans of time as people write them: "30s", "500ms", "24h", "7d"; or as ISO 8601 does: "PT30S",
// "P7D".
#pragma once

#include <optional>
#include <string_view>

#include <hapax/time.h>

namespace hapax::cli {

inline constexpr std::string_view kSpanUnits = "ms, s, m, h, d, w, or ISO 8601 as P7D";

// Nothing, if it is none: the unit is required, and a hundred years are the longest.
[[nodiscard]] std::optional<Duration> span_of(std::string_view text);

}  // namespace hapax::cli
