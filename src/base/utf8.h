// What is UTF-8 (RFC 3629): no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <string_view>

namespace hapax::base {

struct Utf8Lead {
  std::size_t size = 0;  // of the whole character; 0: no character begins like this
  unsigned char second_min = 0x80;
  unsigned char second_max = 0xbf;
};

// The rest of the bounds follows from those of the second byte.
constexpr Utf8Lead utf8_lead(unsigned char byte) {
  if (byte < 0x80) return {1};
  if (byte < 0xc2) return {};
  if (byte < 0xe0) return {2};
  if (byte == 0xe0) return {3, 0xa0};
  if (byte == 0xed) return {3, 0x80, 0x9f};
  if (byte < 0xf0) return {3};
  if (byte == 0xf0) return {4, 0x90};
  if (byte < 0xf4) return {4};
  if (byte == 0xf4) return {4, 0x80, 0x8f};
  return {};
}

// Bytes of the character that begins the text; 0 = none does.
[[nodiscard]] constexpr std::size_t utf8_size(std::string_view text) {
  if (text.empty()) return 0;
  const Utf8Lead lead = utf8_lead(static_cast<unsigned char>(text.front()));
  if (lead.size > text.size()) return 0;
  for (std::size_t i = 1; i < lead.size; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const unsigned char low = i == 1 ? lead.second_min : 0x80;
    const unsigned char high = i == 1 ? lead.second_max : 0xbf;
    if (byte < low || byte > high) return 0;
  }
  return lead.size;
}

[[nodiscard]] constexpr bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t size = utf8_size(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

}  // namespace hapax::base
