// JSON that two programs cannot understand differently: no member twice, UTF-8 only, nothing behind
// the value. For what decides about rights; requests to the store are read by request.h.
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

  // Whole numbers that fit are integers; all others are doubles.
  std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Object> is;

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

inline constexpr std::size_t kStrictJsonDepthMax = 16;
inline constexpr std::size_t kStrictJsonMembersMax = 256;  // comparing them costs the square

// kInvalidArgument; the text names no byte of the input, which may be secret.
[[nodiscard]] Result<JsonValue> read_strict_json(std::string_view text);

}  // namespace hapax::wire
