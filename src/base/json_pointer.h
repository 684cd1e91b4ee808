// JSON pointers (RFC 6901): "/order/id" names member id of member order.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hapax::base {

// The names on the way, with their escapes undone. Nothing: it is no pointer. "" has no names, and
// is the whole document.
[[nodiscard]] std::optional<std::vector<std::string>> read_json_pointer(std::string_view text);
[[nodiscard]] std::string json_pointer(const std::vector<std::string>& path);

}  // namespace hapax::base
