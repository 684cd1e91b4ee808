// Names and keys in messages for people. They are any bytes; they must not break the line or the
// terminal, and a tenant sees its names as it knows them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hapax::core {

// UTF-8 as it is, other bytes as \xNN.
[[nodiscard]] std::string printable(std::string_view bytes);

// A name in quotes, without the frame of its tenant, and no longer than a line bears.
[[nodiscard]] std::string shown(std::string_view name);

}  // namespace hapax::core
