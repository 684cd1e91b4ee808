// A member of a JSON text by its path, read without making values of the rest.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace hapax::wire {

// The value as it stands in the text, or nothing if there is none: "0" is the first item of an
// array, and the name of a member of an object. REQUIRES: is_strict_json(text).
[[nodiscard]] std::optional<std::string_view> json_member(std::string_view text,
                                                          std::span<const std::string> path);

// What a value says, if it is one text: a string without its quotes and escapes; a number, true and
// false as they are written. Nothing for null, an object or an array. REQUIRES: it is one value of
// a strict JSON text.
[[nodiscard]] std::optional<std::string> json_scalar_text(std::string_view value);

}  // namespace hapax::wire
