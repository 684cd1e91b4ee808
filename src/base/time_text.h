// Moments as text: RFC 3339, always UTC.
#pragma once

#include <string>

#include <hapax/time.h>

namespace hapax::base {

[[nodiscard]] std::string rfc3339_seconds(Time time);  // "2026-11-16T05:46:19Z", rounded down
[[nodiscard]] std::string rfc3339_ms(Time time);       // "2026-11-16T05:46:19.123Z"

}  // namespace hapax::base
