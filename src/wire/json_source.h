// Where the values of a JSON text stand in it, for what is kept as it was sent. Of texts that were
// parsed already: what is no JSON is read within its bounds, and to no meaning.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace hapax::wire {

// The values of an array or an object, in the order of the text. Nothing is read before it is asked
// for.
class JsonItems {
 public:
  // The text begins with the array or object; what is behind it does not matter.
  explicit JsonItems(std::string_view text);

  // What begins with value `index`, counted from 0, and never back.
  [[nodiscard]] std::string_view from(std::size_t index);

 private:
  void find_value();

  std::string_view rest_;  // begins with value at_
  std::size_t at_ = 0;
  bool named_ = false;  // an object
};

// The members of an object, or the items of an array, one after the other.
class JsonNames {
 public:
  struct Member {
    std::string_view name;   // with its quotes, as it stands there; empty in an array
    std::string_view value;  // what begins with it
  };
  // The text is an array or object.
  explicit JsonNames(std::string_view text);

  [[nodiscard]] std::optional<Member> next();

 private:
  std::string_view rest_;  // begins with a name, a value or the last bracket
  bool named_ = false;     // an object
};

// The value that the text begins with, without white space around it.
[[nodiscard]] std::string_view json_value_at(std::string_view text);

}  // namespace hapax::wire
