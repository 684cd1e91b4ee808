// A hash map by text that is looked up with a view.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace hapax::core {

struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>{}(text);
  }
};

// Its iteration order must never reach an answer, the journal or a snapshot: sort first.
template <class Value>
using StringMap = std::unordered_map<std::string, Value, TextHash, std::equal_to<>>;

}  // namespace hapax::core
