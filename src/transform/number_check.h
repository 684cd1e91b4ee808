// Which numbers survive a double: jq 1.6 reads every number into one and writes the shortest text
// that reads back as the same double.
#pragma once

#include <string_view>

namespace hapax::transform {

// Whether the text that jq writes for this number means the same decimal value. So 0.1 is kept,
// although no double is a tenth, and 9007199254740993 is not. Another spelling of the same value is
// kept: 1.0 becomes 1, 1e2 becomes 100. REQUIRES: a number as RFC 8259 writes it.
[[nodiscard]] bool double_keeps(std::string_view number);

}  // namespace hapax::transform
