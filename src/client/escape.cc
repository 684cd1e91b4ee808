#include "client/escape.h"

#include <algorithm>

#include <boost/url/encode.hpp>
#include <boost/url/rfc/unreserved_chars.hpp>

namespace hapax::client {

namespace {

namespace urls = boost::urls;

constexpr bool is_visible(char c) { return c > ' ' && c <= '~'; }
constexpr auto kStaysInValue = [](char c) { return c == ' ' || (is_visible(c) && c != '%'); };
constexpr urls::grammar::lut_chars kValueChars(kStaysInValue);
constexpr std::string_view kSpace = "%20";

}  // namespace

std::string encoded(std::string_view text) { return urls::encode(text, urls::unreserved_chars); }

std::string as_value(std::string_view text) {
  std::string out = urls::encode(text, kValueChars);
  if (out.starts_with(' ')) out.replace(0, 1, kSpace);
  if (out.ends_with(' ')) out.replace(out.size() - 1, 1, kSpace);
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
