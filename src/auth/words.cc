#include "auth/words.h"

#include <algorithm>
#include <array>

#include "base/utf8.h"

namespace hapax::auth {

namespace {

constexpr std::array kRoles = {Right::kProduce, Right::kConsume, Right::kAdmin, Right::kReadBodies};

bool is_alphanumeric(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// The two-byte controls of UTF-8 (U+0080 to U+009F) count.
bool has_controls(std::string_view text) {
  unsigned char before = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f || (before == 0xc2 && byte < 0xa0)) return true;
    before = byte;
  }
  return false;
}

}  // namespace

bool is_tenant(std::string_view text) {
  if (text.empty() || text.size() > kTenantMax || !is_alphanumeric(text.front())) return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return is_alphanumeric(c) || c == '.' || c == '_' || c == '-'; });
}

bool is_subject(std::string_view text) {
  return !text.empty() && text.size() <= kSubjectMax && base::is_utf8(text) && !has_controls(text);
}

std::optional<Right> role_of(std::string_view word) {
  for (const Right right : kRoles) {
    if (word_of(right) == word) return right;
  }
  return std::nullopt;
}

std::string words_of(Rights rights, std::string_view between) {
  std::string out;
  for (const Right right : kRoles) {
    if (!rights.has(right)) continue;
    if (!out.empty()) out += between;
    out += word_of(right);
  }
  return out;
}

}  // namespace hapax::auth
