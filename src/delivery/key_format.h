// Which fields the key of a delivery is made of, if a workflow says so itself. A format names them;
// where their values come from, and how they are hashed, is docs/reference/delivery-keys.md.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <hapax/result.h>

#include "delivery/endpoint_settings.h"

namespace hapax::delivery {

// What every source tells of a record.
enum class KeyField : std::uint8_t {
  kDatabase,
  kTable,
  kPrimaryKey,
  kChangeVersion,
  kEventType,
  kGroupKey,
};
inline WordList words_of(KeyField) {
  static constexpr std::array<std::string_view, 6> kWords{
      "database", "table", "primaryKey", "changeVersion", "eventType", "groupKey"};
  return kWords;
}

// {header:NAME}, a header of the record. Names have no case.
struct KeyHeader {
  std::string name;
  friend bool operator==(const KeyHeader&, const KeyHeader&) = default;
};

// {payload:/order/id}, a member of the payload by its JSON pointer (RFC 6901).
struct KeyMember {
  std::vector<std::string> path;
  friend bool operator==(const KeyMember&, const KeyMember&) = default;
};

using KeyPart = std::variant<KeyField, KeyHeader, KeyMember>;

// As it stands in a format, braces included.
[[nodiscard]] std::string text_of(const KeyPart& part);

// "{database}:{table}:{primaryKey}:{changeVersion}": which fields, in which order.
class KeyFormat {
 public:
  static constexpr std::size_t kPartsMax = 16;

  KeyFormat();  // the four fields that say where a record comes from
  // kInvalidArgument; the sentence reads after the name of the key.
  [[nodiscard]] static Result<KeyFormat> parse(std::string_view text);
  // The fields with ':' between them. REQUIRES: some, and none twice.
  [[nodiscard]] static KeyFormat of(const std::vector<KeyField>& fields);

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] const std::vector<KeyPart>& parts() const { return parts_; }
  [[nodiscard]] bool has(KeyField field) const;
  // Of the record itself, not of where it comes from: the payload, a header, its group.
  [[nodiscard]] bool has_record_part() const;
  [[nodiscard]] bool reads_payload() const;
  // Beside those that keyFields can name.
  [[nodiscard]] bool has_more_than_fields() const;
  // The four fields in their order, whatever stands between them: what the table of keys says.
  [[nodiscard]] bool is_default() const;
  friend bool operator==(const KeyFormat&, const KeyFormat&) = default;

 private:
  KeyFormat(std::string text, std::vector<KeyPart> parts)
      : text_(std::move(text)), parts_(std::move(parts)) {}
  std::string text_;
  std::vector<KeyPart> parts_;
};

}  // namespace hapax::delivery
