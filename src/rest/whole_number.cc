#include "rest/whole_number.h"

#include <algorithm>
#include <cmath>

namespace hapax::rest {

std::optional<std::uint64_t> whole_number_in(const wire::JsonValue& value) {
  constexpr double kExactMax = 9'007'199'254'740'992.0;  // 2^53
  if (value.get<std::uint64_t>() != nullptr) return kWholeMax;
  if (const auto* whole = value.get<std::int64_t>()) {
    if (*whole < 0) return std::nullopt;
    return std::min(static_cast<std::uint64_t>(*whole), kWholeMax);
  }
  const auto* number = value.get<double>();
  const bool exact = number != nullptr && *number >= 0 && *number < kExactMax;
  if (!exact || std::trunc(*number) != *number) return std::nullopt;
  return static_cast<std::uint64_t>(*number);
}

}  // namespace hapax::rest
