// Headers of outgoing records as the SQL of sources writes them: netstrings, name and value by
// turns, "4:name5:value".
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "relay/outgoing.h"

namespace hapax::relay {

// None: the row has something else in their place.
[[nodiscard]] std::optional<Headers> headers_of(std::string_view text);

inline constexpr std::string_view kBadHeaders = "its headers are not an array of pairs of strings";

// What can be stored of a reason that came from outside: one line of ASCII, not too long.
[[nodiscard]] std::string stored_reason(std::string_view reason);

}  // namespace hapax::relay
