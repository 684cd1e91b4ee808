// From texts of our own in which empty means "none" (records as they are read, frames, events) to
// the fields of operations, in which none is none and an empty text is refused.
#pragma once

#include <optional>
#include <string_view>

namespace hapax::base {

[[nodiscard]] inline std::optional<std::string_view> if_filled(std::string_view text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

}  // namespace hapax::base
