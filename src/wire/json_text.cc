#include "wire/json_text.h"

#include <cstdio>

#include "base/utf8.h"
#include "digest/base64.h"

namespace hapax::wire {

namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

void append_escaped(std::string& out, char c) {
  if (c == '"' || c == '\\') {
    out += '\\';
    out += c;
  } else if (c == '\n') {
    out += "\\n";
  } else {
    char escaped[7];
    std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
    out += escaped;
  }
}

bool is_plain(char c) {
  return static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x80 &&
         c != '"' && c != '\\';
}

}  // namespace

void append_json_text(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    std::size_t plain = 0;
    while (plain < text.size() && is_plain(text[plain])) ++plain;
    out.append(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) break;
    const std::size_t size = base::utf8_size(text);
    if (size == 1) {
      append_escaped(out, text.front());
    } else {
      out.append(size == 0 ? kReplacement : text.substr(0, size));
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  out += '"';
}

std::string json_text(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 2);
  append_json_text(out, text);
  return out;
}

JsonObject& JsonObject::bytes(std::string_view key, std::string_view bytes) {
  if (base::is_utf8(bytes)) return add(key, bytes);
  return add(std::string(key) + "_base64", digest::encode_base64(bytes));
}

JsonObject& JsonObject::pairs(std::string_view key,
                              const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::string& out = name(key);
  out += '[';
  for (const auto& [first, second] : pairs) {
    if (out.back() != '[') out += ',';
    out += '[';
    append_json_text(out, first);
    out += ',';
    append_json_text(out, second);
    out += ']';
  }
  out += ']';
  return *this;
}

}  // namespace hapax::wire
