// Failures of the place where a store is kept: its files, its disk, its database. They are nothing
// that a caller asked for wrongly, and their texts name paths and addresses.
#pragma once

#include <algorithm>
#include <array>
#include <utility>

#include <hapax/result.h>

namespace hapax::base {

inline constexpr std::array kPlaceFailures{Errc::kNoSpace,        Errc::kUnavailable, Errc::kIo,
                                           Errc::kOutcomeUnknown, Errc::kCorruption,  Errc::kLocked,
                                           Errc::kFormatVersion};

[[nodiscard]] inline bool is_place_failure(Errc code) {
  return std::find(kPlaceFailures.begin(), kPlaceFailures.end(), code) != kPlaceFailures.end();
}

// The disk calls a file that may not be read an invalid argument, and a database calls lost rights
// forbidden. Both are right for whoever opens a store. For whoever uses one it is out of order.
[[nodiscard]] inline Error place_failure(Error error) {
  if (!is_place_failure(error.code)) error.code = Errc::kUnavailable;
  return error;
}

}  // namespace hapax::base
