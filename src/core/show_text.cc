#include "core/show_text.h"

#include "base/utf8.h"
#include "core/tenants.h"

namespace hapax::core {

namespace {

// The control characters of U+0080 to U+009F would reach the terminal, too.
bool is_control(std::string_view character) {
  return character[0] == '\xc2' && static_cast<unsigned char>(character[1]) < 0xa0;
}

// The character that begins the text, fit for a line; how many bytes it was.
std::size_t show_one(std::string_view text, std::string& out) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const std::size_t size = base::utf8_size(text);
  if (size > 1 && !is_control(text)) {
    out += text.substr(0, size);
    return size;
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

std::string printable(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) bytes.remove_prefix(show_one(bytes, text));
  return text;
}

std::string shown(std::string_view name) {
  constexpr std::size_t kShown = 40;
  name = local_name(name);
  std::string out = "'";
  for (std::size_t count = 0; count < kShown && !name.empty(); ++count) {
    name.remove_prefix(show_one(name, out));
  }
  return out + (name.empty() ? "'" : "…'");
}

}  // namespace hapax::core
