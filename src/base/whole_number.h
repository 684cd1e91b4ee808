// Whole numbers as Redis reads them: just as they are written, without a plus, space or zero
// before.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hapax::base {

[[nodiscard]] inline std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc{} || std::to_string(number) != text) return std::nullopt;
  return number;
}

}  // namespace hapax::base
