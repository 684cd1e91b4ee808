#include "wire/json_text.h"

#include <cstdio>

#include "digest/base64.h"

namespace hapax::wire {

namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

struct Lead {
  std::size_t size = 0;  // of the whole character; 0: no character begins like this
  unsigned char second_min = 0x80;
  unsigned char second_max = 0xbf;
};

// The second byte is bounded so that there are no overlong forms, surrogates or values too large.
Lead lead_of(unsigned char byte) {
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

std::size_t utf8_size(std::string_view text) {
  if (text.empty()) return 0;
  const Lead lead = lead_of(static_cast<unsigned char>(text.front()));
  if (lead.size == 0 || lead.size > text.size()) return 0;
  for (std::size_t i = 1; i < lead.size; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const unsigned char low = i == 1 ? lead.second_min : 0x80;
    const unsigned char high = i == 1 ? lead.second_max : 0xbf;
    if (byte < low || byte > high) return 0;
  }
  return lead.size;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t size = utf8_size(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

std::string json_text(std::string_view text) {
  std::string out = "\"";
  out.reserve(text.size() + 2);
  while (!text.empty()) {
    std::size_t plain = 0;
    while (plain < text.size() && is_plain(text[plain])) ++plain;
    out.append(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) break;
    const std::size_t size = utf8_size(text);
    if (size == 1) {
      append_escaped(out, text.front());
    } else {
      out.append(size == 0 ? kReplacement : text.substr(0, size));
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  out.push_back('"');
  return out;
}

JsonObject& JsonObject::bytes(std::string_view key, std::string_view bytes) {
  if (is_utf8(bytes)) return add(key, bytes);
  return add(std::string(key) + "_base64", digest::encode_base64(bytes));
}

}  // namespace hapax::wire
