// Patterns as in Redis: * any text, ? one byte, [abc] [a-z] [^a] one of them, \x the byte x itself.
#pragma once

#include <string_view>

namespace hapax::resp {

// Takes time in proportion to the product of both lengths at most.
[[nodiscard]] bool matches(std::string_view pattern, std::string_view text);

}  // namespace hapax::resp
