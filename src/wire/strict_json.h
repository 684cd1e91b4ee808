// Small JSON documents as values: credentials, answers of servers. The rules are those of the one
// reader (json_reader.h), by which request.h reads requests to the store.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <hapax/result.h>

namespace hapax::wire {

struct JsonMember;

struct JsonValue {
  using Array = std::vector<JsonValue>;
  using Object = std::vector<JsonMember>;  // in the order of the text

  // Whole numbers are of the first of both integers that holds them; all others are doubles.
  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, Array,
               Object>
      is;

  // Nothing if it is something else.
  template <class Kind>
  [[nodiscard]] const Kind* get() const {
    return std::get_if<Kind>(&is);
  }
  // The member of an object; nothing if there is none, or if this is no object.
  [[nodiscard]] const JsonValue* find(std::string_view name) const;
};

struct JsonMember {
  std::string name;
  JsonValue value;
};

// kInvalidArgument, with line and column; it names no byte of the input, which may be secret.
[[nodiscard]] Result<JsonValue> read_strict_json(std::string_view text);

}  // namespace hapax::wire
