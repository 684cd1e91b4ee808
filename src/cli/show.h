// How answers look to people: tables, names beside values, instants as dates, colours on a
// terminal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "wire/strict_json.h"

namespace hapax::cli {

// A name as a terminal may show it: no byte of it is a command to the terminal. The two-byte
// controls of UTF-8 (U+0080 to U+009F) count.
[[nodiscard]] std::string printable(std::string_view name);

// The address of a database without the password it may carry, before the host or as a parameter.
[[nodiscard]] std::string without_password(std::string uri);
// Whether that is the address of a PostgreSQL database.
[[nodiscard]] bool is_postgres(std::string_view place);

enum class Tint : std::uint8_t { kGood, kWarning, kBad, kFaint };
// Colour only if standard output is a terminal and NO_COLOR is not set.
[[nodiscard]] std::string tinted(Tint tint, std::string_view text);

[[nodiscard]] std::string instant_text(std::int64_t ms);  // "2026-11-16T08:22:16.120Z"

// Columns as wide as their widest cell; a column of numbers stands to the right.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : rows_{std::move(header)} {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  [[nodiscard]] bool empty() const { return rows_.size() == 1; }
  [[nodiscard]] std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;  // the header is the first
};

[[nodiscard]] std::string json_of(const wire::JsonValue& value);

// A member as people read it: {"lease_until_ms", 1700000000000} is "lease until" and a date.
struct Shown {
  std::string name;
  std::string value;
};
[[nodiscard]] Shown shown(std::string_view name, const wire::JsonValue& value);

// Whether a verdict of that word holds: done now, or before.
[[nodiscard]] bool is_holding(std::string_view verdict);
// "fresh  fence 1  attempt 1  lease until 2026-…": a verdict in a line, its word in colour.
[[nodiscard]] std::string verdict_line(const wire::JsonValue& verdict);
// A line per member, objects inside indented; lists of objects are left out.
[[nodiscard]] std::string member_lines(const wire::JsonValue& object, std::size_t indent = 0);

// Members of an answer, for who knows that they are there: empty or 0 if they are not.
[[nodiscard]] std::string text_in(const wire::JsonValue& object, std::string_view name);
[[nodiscard]] std::int64_t number_in(const wire::JsonValue& object, std::string_view name);
[[nodiscard]] const wire::JsonValue::Array& list_in(const wire::JsonValue& object,
                                                    std::string_view name);
// Text that may have come as `<name>_base64`.
[[nodiscard]] std::string bytes_in(const wire::JsonValue& object, const std::string& name);

}  // namespace hapax::cli
