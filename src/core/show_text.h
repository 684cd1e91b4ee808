// Names and keys in messages for people. They are any bytes; they must not break the line or the
// terminal, and a tenant sees its names as it knows them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hapax::core {

// Length of the UTF-8 character of two bytes or more that begins the text; 0 = none does.
[[nodiscard]] std::size_t wide_character(std::string_view text);

[[nodiscard]] bool is_utf8(std::string_view text);

// UTF-8 as it is, other bytes as \xNN.
[[nodiscard]] std::string printable(std::string_view bytes);

// A name in quotes, without the frame of its tenant, and no longer than a line bears.
[[nodiscard]] std::string shown(std::string_view name);

}  // namespace hapax::core
