// Field values written as text: in RESP arguments, in paths and in queries. Each function fills the
// value, or returns what was expected instead.
#pragma once

#include <charconv>
#include <concepts>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include <hapax/ids.h>
#include <hapax/ops.h>
#include <hapax/time.h>

#include "wire/op_fields.h"

namespace hapax::wire {

// Nothing, or what should have been there: "a whole number", "one of stream, group".
using Expected = std::optional<std::string>;

inline constexpr std::string_view kForever = "forever";

// Of either alphabet, and of a query in which '+' has become a space. Nothing if it is neither.
[[nodiscard]] std::optional<std::string> bytes_of_base64(std::string_view text);

template <std::integral Integer>
requires(!std::same_as<Integer, bool>) Expected from_text(std::string_view text, Integer& value) {
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed == std::errc{} && end == text.data() + text.size()) return std::nullopt;
  return "a whole number from " + std::to_string(std::numeric_limits<Integer>::min()) + " to " +
         std::to_string(std::numeric_limits<Integer>::max());
}

inline Expected from_text(std::string_view text, bool& value) {
  value = text == "true" || text == "1" || text == "yes";
  if (value || text == "false" || text == "0" || text == "no") return std::nullopt;
  return "true or false";
}

inline Expected from_text(std::string_view text, std::string_view& value) {
  value = text;
  return std::nullopt;
}

inline Expected from_text(std::string_view text, Bytes value) {
  value.view = text;
  return std::nullopt;
}
inline Expected from_text(std::string_view text, KeyBytes value) {
  value.view = text;
  return std::nullopt;
}
inline Expected from_text(std::string_view text, OptionalKeyBytes value) {
  value.view = text;
  return std::nullopt;
}

template <class Tag>
Expected from_text(std::string_view text, Number<Tag>& value) {
  return from_text(text, value.value);
}

inline Expected from_text(std::string_view text, Duration& value) {
  std::int64_t ms = 0;
  Expected expected = from_text(text, ms);
  value = Duration{ms};
  return expected;
}

inline Expected from_text(std::string_view text, Time& value) {
  std::int64_t ms = 0;
  Expected expected = from_text(text, ms);
  value = time_from_ms(ms);
  return expected;
}

inline Expected from_text(std::string_view text, Window& value) {
  std::uint32_t seconds = 0;
  if (text == kForever) {
    value = Window::forever();
  } else if (from_text(text, seconds)) {
    return "a number of seconds, or \"forever\"";
  } else {
    value = Window{std::chrono::seconds{seconds}};
  }
  return std::nullopt;
}

template <class Enum>
requires std::is_enum_v<Enum> Expected from_text(std::string_view text, Enum& value) {
  std::string known;
  for (const auto& [one, word] : words_of(Enum{})) {
    if (word == text) {
      value = one;
      return std::nullopt;
    }
    known += (known.empty() ? "one of " : ", ") + std::string(word);
  }
  return known;
}

template <class Enum>
[[nodiscard]] constexpr std::string_view word(Enum value) {
  for (const auto& [one, word] : words_of(Enum{})) {
    if (one == value) return word;
  }
  return {};
}

// "<sequence>-<token>"
inline Expected from_text(std::string_view text, ReceiptText value) {
  const std::size_t dash = text.find('-');
  const bool split = dash != std::string_view::npos;
  if (split && !from_text(text.substr(0, dash), value.receipt.sequence) &&
      !from_text(text.substr(dash + 1), value.receipt.token)) {
    return std::nullopt;
  }
  return "a receipt as it was handed out";
}

// What an optional value holds until it is read.
template <class Value>
inline const Value kAny{};
template <>
inline const Window kAny<Window> = limits::kWindowDefault;

template <class Value>
Expected from_text(std::string_view text, std::optional<Value>& value) {
  return from_text(text, value.emplace(kAny<Value>));
}

[[nodiscard]] inline std::string receipt_text(Sequence sequence, Token token) {
  return std::to_string(sequence.value) + "-" + std::to_string(token.value);
}

}  // namespace hapax::wire
