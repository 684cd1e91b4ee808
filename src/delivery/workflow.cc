#include "delivery/workflow.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/format.h"
#include "base/words.h"

namespace hapax::delivery {

namespace {

Error bad_word(std::string what) { return {Errc::kInvalidArgument, std::move(what)}; }

std::optional<KeyField> field_named(std::string_view name) {
  const WordList words = words_of(KeyField{});
  const auto found = std::find(words.begin(), words.end(), name);
  if (found == words.end()) return std::nullopt;
  return static_cast<KeyField>(found - words.begin());
}

std::string braced(const std::vector<KeyField>& fields) {
  std::string text;
  for (const KeyField field : fields) {
    base::append_format(text, "{}{{{}}}", text.empty() ? "" : ":", word_for(field));
  }
  return text;
}

}  // namespace

Result<WorkflowId> WorkflowId::parse(std::string_view text) {
  const auto plain = [](char c) {
    const char lower = base::to_lower(c);
    return (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9');
  };
  const auto fits = [&](char c) { return plain(c) || c == '-' || c == '_' || c == '.'; };
  const bool good = !text.empty() && text.size() <= kBytesMax && plain(text.front()) &&
                    std::all_of(text.begin(), text.end(), fits);
  if (good) return WorkflowId(text);
  return bad_word(base::format(
      "must be 1 to {} letters, digits, '-', '_' and '.', and begin with a letter or digit",
      kBytesMax));
}

bool keeps(Mechanism mechanism, Guarantee guarantee) {
  switch (mechanism) {
    case Mechanism::kTransactionalOutbox:
      return guarantee == Guarantee::kExactlyOnce;
    case Mechanism::kGeneratedKeys:
      return guarantee == Guarantee::kIdempotentKeys;
    case Mechanism::kKafkaOffsets:
    case Mechanism::kSourcePositions:
      return guarantee != Guarantee::kExactlyOnce;
  }
  return false;
}

std::optional<Duration> hold_of(const Ordering& ordering) {
  if (ordering.key == OrderingKey::kNone) return std::nullopt;
  if (std::holds_alternative<BlockKey>(ordering.on_failure)) return Duration::max();
  const auto* span = std::get_if<BlockKeyFor>(&ordering.on_failure);
  return span == nullptr ? std::nullopt : std::optional(span->time);
}

KeyFormat::KeyFormat()
    : KeyFormat(of({KeyField::kDatabase, KeyField::kTable, KeyField::kPrimaryKey,
                    KeyField::kChangeVersion})) {}

KeyFormat KeyFormat::of(std::vector<KeyField> fields) {
  HAPAX_ASSERT(!fields.empty(), "a key is made of something");
  std::string text = braced(fields);
  return {std::move(text), std::move(fields)};
}

Result<KeyFormat> KeyFormat::parse(std::string_view text) {
  std::vector<KeyField> fields;
  std::string_view rest = text;
  for (std::size_t open = rest.find('{'); open != std::string_view::npos; open = rest.find('{')) {
    const std::size_t close = rest.find('}', open);
    if (close == std::string_view::npos) return bad_word("has a '{' without its '}'");
    const auto field = field_named(rest.substr(open + 1, close - open - 1));
    if (!field) {
      return bad_word(base::format("names a field that is not known; known are {}",
                                   base::joined(words_of(KeyField{}), ", ")));
    }
    if (std::find(fields.begin(), fields.end(), *field) != fields.end()) {
      return bad_word(base::format("names {{{}}} twice", word_for(*field)));
    }
    fields.push_back(*field);
    rest.remove_prefix(close + 1);
  }
  if (fields.empty())
    return bad_word("names no field, so that every record would have the same key");
  return KeyFormat(std::string(text), std::move(fields));
}

bool KeyFormat::has(KeyField field) const {
  return std::find(fields_.begin(), fields_.end(), field) != fields_.end();
}

}  // namespace hapax::delivery
