#include "delivery/key_format.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/assert.h"
#include "base/format.h"
#include "base/json_pointer.h"
#include "base/words.h"

namespace hapax::delivery {

namespace {

constexpr std::string_view kHeader = "header:";
constexpr std::string_view kPayload = "payload:";

Error bad(std::string what) { return {Errc::kInvalidArgument, std::move(what)}; }

std::optional<KeyField> field_named(std::string_view name) {
  const WordList words = words_of(KeyField{});
  const auto found = std::find(words.begin(), words.end(), name);
  if (found == words.end()) return std::nullopt;
  return static_cast<KeyField>(found - words.begin());
}

Result<KeyPart> read_part(std::string_view name) {
  if (const auto field = field_named(name)) return KeyPart(*field);
  if (name.starts_with(kHeader)) {
    name.remove_prefix(kHeader.size());
    if (name.empty()) return bad("has {header:} without the name of a header");
    return KeyPart(KeyHeader{base::lower(name)});
  }
  if (name.starts_with(kPayload)) {
    name.remove_prefix(kPayload.size());
    auto path = base::read_json_pointer(name);
    if (path && !path->empty()) return KeyPart(KeyMember{*std::move(path)});
    return bad("has {payload:} without a JSON pointer such as /order/id");
  }
  return bad(base::format(
      "names a field that is not known; known are {}, header:NAME and payload:/JSON/POINTER",
      base::joined(words_of(KeyField{}), ", ")));
}

std::vector<KeyPart> default_parts() {
  return {KeyField::kDatabase, KeyField::kTable, KeyField::kPrimaryKey, KeyField::kChangeVersion};
}

}  // namespace

std::string text_of(const KeyPart& part) {
  if (const auto* header = std::get_if<KeyHeader>(&part)) {
    return base::format("{{{}{}}}", kHeader, header->name);
  }
  if (const auto* member = std::get_if<KeyMember>(&part)) {
    return base::format("{{{}{}}}", kPayload, base::json_pointer(member->path));
  }
  return base::format("{{{}}}", word_for(std::get<KeyField>(part)));
}

KeyFormat::KeyFormat()
    : KeyFormat(of({KeyField::kDatabase, KeyField::kTable, KeyField::kPrimaryKey,
                    KeyField::kChangeVersion})) {}

KeyFormat KeyFormat::of(const std::vector<KeyField>& fields) {
  HAPAX_ASSERT(!fields.empty(), "a key is made of something");
  std::string text;
  for (const KeyField field : fields) {
    if (!text.empty()) text += ':';
    text += text_of(field);
  }
  return {std::move(text), {fields.begin(), fields.end()}};
}

Result<KeyFormat> KeyFormat::parse(std::string_view text) {
  std::vector<KeyPart> parts;
  std::string_view rest = text;
  for (std::size_t at = rest.find_first_of("{}"); at != std::string_view::npos;
       at = rest.find_first_of("{}")) {
    if (rest[at] == '}') return bad("has a '}' without its '{'");
    const std::size_t close = rest.find('}', at);
    if (close == std::string_view::npos) return bad("has a '{' without its '}'");
    HAPAX_TRY(KeyPart part, read_part(rest.substr(at + 1, close - at - 1)));
    if (std::find(parts.begin(), parts.end(), part) != parts.end()) {
      return bad(base::format("names {} twice", text_of(part)));
    }
    parts.push_back(std::move(part));
    rest.remove_prefix(close + 1);
  }
  if (parts.empty()) return bad("names no field, so that every record would have the same key");
  if (parts.size() > kPartsMax) {
    return bad(base::format("names {} fields, at most {}", parts.size(), kPartsMax));
  }
  return KeyFormat(std::string(text), std::move(parts));
}

bool KeyFormat::has(KeyField field) const {
  return std::find(parts_.begin(), parts_.end(), KeyPart(field)) != parts_.end();
}

bool KeyFormat::has_record_part() const {
  return std::any_of(parts_.begin(), parts_.end(), [](const KeyPart& part) {
    return !std::holds_alternative<KeyField>(part) || part == KeyPart(KeyField::kGroupKey);
  });
}

bool KeyFormat::reads_payload() const {
  return std::any_of(parts_.begin(), parts_.end(),
                     [](const KeyPart& part) { return std::holds_alternative<KeyMember>(part); });
}

bool KeyFormat::has_more_than_fields() const {
  return std::any_of(parts_.begin(), parts_.end(),
                     [](const KeyPart& part) { return !std::holds_alternative<KeyField>(part); });
}

bool KeyFormat::is_default() const { return parts_ == default_parts(); }

}  // namespace hapax::delivery
