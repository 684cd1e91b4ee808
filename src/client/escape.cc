#include "client/escape.h"

#include <algorithm>

namespace hapax::client {

namespace {

bool is_unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

bool is_visible(char c) { return c > ' ' && c <= '~'; }

std::string escape_of(char c) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  const auto byte = static_cast<unsigned char>(c);
  return {'%', kDigits[byte >> 4U], kDigits[byte & 15U]};
}

}  // namespace

std::string encoded(std::string_view text) {
  std::string out;
  for (const char c : text) out += is_unreserved(c) ? std::string(1, c) : escape_of(c);
  return out;
}

std::string as_value(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool inside = i != 0 && i + 1 != text.size();
    const bool stays = text[i] == ' ' ? inside : is_visible(text[i]) && text[i] != '%';
    out += stays ? std::string(1, text[i]) : escape_of(text[i]);
  }
  return out;
}

bool is_value(std::string_view text) {
  if (text.starts_with(' ') || text.ends_with(' ')) return false;
  return std::all_of(text.begin(), text.end(), [](char c) { return c == ' ' || is_visible(c); });
}

bool is_word(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_visible);
}

}  // namespace hapax::client
