// Spans of time given on the command line.
#pragma once

#include <optional>
#include <string_view>

#include <hapax/time.h>

namespace hapax::cli {

// Nothing if it is not a span, or longer than a hundred years.
[[nodiscard]] std::optional<Duration> span_of(std::string_view text);

}  // namespace hapax::cli
