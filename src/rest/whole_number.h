// Whole numbers in bodies that describe no operation.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "wire/strict_json.h"

namespace hapax::rest {

inline constexpr std::uint64_t kWholeMax = std::numeric_limits<std::int64_t>::max() - 1;

// One that is not negative; what is larger than kWholeMax is that. As a schema has it, 7.0 is one;
// what a double may have rounded is none. Nothing: it is something else.
[[nodiscard]] std::optional<std::uint64_t> whole_number_in(const wire::JsonValue& value);

}  // namespace hapax::rest
