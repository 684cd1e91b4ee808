// Texts of others as values of header fields, where the end of a line would begin another field.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace hapax::envelope {

// Every byte that may not stay as %XX, with upper-case digits.
template <class Stays>
[[nodiscard]] std::string percent_encoded(std::string_view text, const Stays& stays) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (stays(c)) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

// Whether it arrives as it is: visible ASCII, with spaces inside only.
[[nodiscard]] inline bool is_field_value(std::string_view text) {
  if (text.starts_with(' ') || text.ends_with(' ')) return false;
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

// V7: a text that arrives as it is stays so, because baggage and tracestate have escapes of their
// own. Of any other one all bytes that are not visible ASCII become %XX, and so does '%'.
[[nodiscard]] inline std::string field_value(std::string_view text) {
  if (is_field_value(text)) return std::string(text);
  return percent_encoded(text, [](char c) { return c > ' ' && c <= '~' && c != '%'; });
}

// Whether it can be the name of a header field: a token of RFC 9110.
[[nodiscard]] inline bool is_field_name(std::string_view name) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !name.empty() && std::all_of(name.begin(), name.end(), [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           kMarks.find(c) != std::string_view::npos;
  });
}

}  // namespace hapax::envelope
