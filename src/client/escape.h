// Texts of others in the head of a request, where a space or the end of a line means something.
#pragma once

#include <string>
#include <string_view>

namespace hapax::client {

// A name as a segment of a path, or as a value of a query.
[[nodiscard]] std::string encoded(std::string_view text);

// Y7: a text as the value of a header field, so that different texts are different values and none
// is more than a value. Visible ASCII stays as it is, and spaces inside; '%', spaces at the ends
// and all other bytes become %XX.
[[nodiscard]] std::string as_value(std::string_view text);

// Whether it arrives as it is: as the value of a header field; as a word of the request line.
[[nodiscard]] bool is_value(std::string_view text);
[[nodiscard]] bool is_word(std::string_view text);

}  // namespace hapax::client
