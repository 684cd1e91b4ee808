#include "core/show_text.h"

#include "base/tenant_frame.h"

namespace hapax::core {

namespace {

// The control characters of U+0080 to U+009F would reach the terminal, too.
bool is_control(std::string_view character) {
  return character[0] == '\xc2' && static_cast<unsigned char>(character[1]) < 0xa0;
}

// The character that begins the text, fit for a line; how many bytes it was.
std::size_t show_one(std::string_view text, std::string& out) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const std::size_t wide = wide_character(text);
  if (wide > 0 && !is_control(text)) {
    out += text.substr(0, wide);
    return wide;
  }
  const auto code = static_cast<unsigned char>(text.front());
  if (code >= 0x20 && code < 0x7f) {
    out += text.front();
  } else {
    out += {'\\', 'x', kDigits[code >> 4], kDigits[code & 15]};
  }
  return 1;
}

}  // namespace

std::size_t wide_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool overlong = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
  const bool surrogate = lead == 0xed && byte(1) >= 0xa0;
  const bool too_high = lead == 0xf4 && byte(1) >= 0x90;
  return overlong || surrogate || too_high ? 0 : length;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const bool plain = static_cast<unsigned char>(text.front()) < 0x80;
    const std::size_t length = plain ? 1 : wide_character(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string printable(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) bytes.remove_prefix(show_one(bytes, text));
  return text;
}

std::string shown(std::string_view name) {
  constexpr std::size_t kShown = 40;
  name = base::without_frame(name);
  std::string out = "'";
  for (std::size_t count = 0; count < kShown && !name.empty(); ++count) {
    name.remove_prefix(show_one(name, out));
  }
  return out + (name.empty() ? "'" : "…'");
}

}  // namespace hapax::core
