#include "transform/number_check.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string>

#include "base/assert.h"

namespace hapax::transform {

namespace {

// 15 significant digits always survive a double whose exponent is far from the limits.
constexpr std::size_t kDigitsSafe = 15;
constexpr std::int64_t kExponentSafe = 290;
// Beyond this no double is near, whatever the digits; it keeps sums of exponents from overflowing.
constexpr std::int64_t kExponentMax = 1'000'000'000;

// The value is 0.DIGITS times ten to the exponent. Without leading and trailing zeros there is one
// such form for each value; zero has no digits.
struct Decimal {
  std::string digits;
  std::int64_t exponent = 0;
  friend bool operator==(const Decimal&, const Decimal&) = default;
};

std::int64_t exponent_of(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  std::int64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool negative = text.starts_with('-');
  if (failed == std::errc::result_out_of_range) return negative ? -kExponentMax : kExponentMax;
  return std::clamp(value, -kExponentMax, kExponentMax);
}

Decimal decimal_of(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  Decimal decimal;
  if (const auto e = text.find_first_of("eE"); e != std::string_view::npos) {
    decimal.exponent = exponent_of(text.substr(e + 1));
    text = text.substr(0, e);
  }
  const auto point = std::min(text.find('.'), text.size());
  decimal.exponent += static_cast<std::int64_t>(point);
  decimal.digits = text.substr(0, point);
  if (point < text.size()) decimal.digits += text.substr(point + 1);
  const auto first = decimal.digits.find_first_not_of('0');
  if (first == std::string::npos) return {};
  decimal.digits.erase(0, first);
  decimal.exponent -= static_cast<std::int64_t>(first);
  decimal.digits.erase(decimal.digits.find_last_not_of('0') + 1);
  return decimal;
}

}  // namespace

bool double_keeps(std::string_view number) {
  if (number.size() <= kDigitsSafe && number.find_first_of("eE") == std::string_view::npos) {
    return true;  // Most numbers end here.
  }
  const Decimal given = decimal_of(number);
  if (given.digits.empty()) return true;
  if (given.digits.size() <= kDigitsSafe && given.exponent < kExponentSafe &&
      given.exponent > -kExponentSafe) {
    return true;
  }
  double nearest = 0;
  const auto read = std::from_chars(number.data(), number.data() + number.size(), nearest);
  if (read.ec != std::errc{}) return false;  // Beyond the largest double, or below the smallest.
  std::array<char, 32> buffer{};
  const auto wrote = std::to_chars(buffer.data(), buffer.data() + buffer.size(), nearest);
  HAPAX_ASSERT(wrote.ec == std::errc{}, "the shortest text of a double fits");
  return decimal_of({buffer.data(), wrote.ptr}) == given;
}

}  // namespace hapax::transform
