// Whole numbers in texts.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hapax::base {

// As Redis reads them: just as they are written, without a plus, space or zero before.
[[nodiscard]] inline std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc{} || std::to_string(number) != text) return std::nullopt;
  return number;
}

// Takes digits from the front of the text; nothing if there are none or too many.
[[nodiscard]] inline std::optional<std::uint64_t> take_number(std::string_view& text) {
  std::uint64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

// Takes a number and the space behind it from the front of the text. False: they are not there,
// and nothing is known of the text any more.
template <class Number>
[[nodiscard]] bool take_word(std::string_view& text, Number& number) {
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (!text.starts_with(' ')) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace hapax::base
