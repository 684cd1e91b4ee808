// Messages of our SQL begin with the number of an error, as "HX1001: the key is empty": people see
// them without our library.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>

#include <hapax/result.h>

namespace hapax::tables {

[[nodiscard]] inline std::optional<Errc> number_of(std::string_view message) {
  if (message.size() < 8 || !message.starts_with("HX") || message.substr(6, 2) != ": ") return {};
  unsigned number = 0;
  const auto [end, failed] = std::from_chars(message.data() + 2, message.data() + 6, number);
  const auto code = static_cast<Errc>(number);
  if (failed != std::errc{} || end != message.data() + 6 || !is_known(code)) return {};
  return code;
}

// The rest: an Error tells its number itself.
[[nodiscard]] inline std::string_view without_number(std::string_view message) {
  return number_of(message) ? message.substr(8) : message;
}

}  // namespace hapax::tables
