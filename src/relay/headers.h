// Headers of outgoing records as the SQL of sources writes them: netstrings, name and value by
// turns, "4:name5:value".
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hapax::relay {

[[nodiscard]] std::vector<std::pair<std::string, std::string>> headers_of(std::string_view text);

// What can be stored of a reason that came from outside: one line of ASCII, not too long.
[[nodiscard]] std::string stored_reason(std::string_view reason);

}  // namespace hapax::relay
