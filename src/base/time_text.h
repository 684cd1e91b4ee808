// Moments as text: RFC 3339, always UTC.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <hapax/time.h>

namespace hapax::base {

[[nodiscard]] std::string rfc3339_seconds(Time time);  // "2026-11-16T05:46:19Z", rounded down
[[nodiscard]] std::string rfc3339_ms(Time time);       // "2026-11-16T05:46:19.123Z"

// Of either; nothing if it is not written so, or there is no such day or hour.
[[nodiscard]] std::optional<Time> parse_rfc3339(std::string_view text);

}  // namespace hapax::base
