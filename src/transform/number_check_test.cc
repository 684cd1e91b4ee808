#include "transform/number_check.h"

#include <array>
#include <charconv>
#include <cstring>
#include <random>
#include <string>

#include <gtest/gtest.h>

namespace hapax::transform {
namespace {

struct Case {
  const char* number;
  bool kept;
};

TEST(DoubleKeeps, SaysWhetherTheSameDecimalComesBack) {
  constexpr Case kCases[] = {
      {"0", true},
      {"-0", true},
      {"-0.0", true},
      {"0e999999999999999999999", true},
      {"1", true},
      {"1.0", true},  // becomes 1, the same value
      {"1.50", true},
      {"1e2", true},  // becomes 100
      {"1E+2", true},
      {"100e-2", true},
      {"0.1", true},  // no double is a tenth, but the shortest text of the nearest is 0.1
      {"0.3", true},
      {"0.30000000000000004", true},
      {"0.30000000000000000004", false},
      {"0.1000000000000000055511151231257827", false},
      {"123456789012345", true},
      {"9007199254740991", true},
      {"9007199254740992", true},
      {"9007199254740993", false},  // 2^53 + 1
      {"-9007199254740993", false},
      {"9007199254740994", true},
      {"9007199254740993.0", false},
      {"9223372036854775807", false},  // the largest id of many databases
      {"9223372036854775808", true},   // 2^63: 9223372036854775808 comes back
      {"18446744073709551615", false},
      {"12345678901234567890", false},
      {"10000000000000000000000", true},
      {"100000000000000000000000", true},  // 1e23 comes back although no double is 1e23
      {"1e23", true},
      {"123456789.123456789", false},
      {"19.99", true},
      {"1.7976931348623157e308", true},
      {"1.7976931348623157e+308", true},
      {"1.7976931348623158e308", false},
      {"1e308", true},
      {"1e309", false},
      {"1e400", false},
      {"-1e400", false},
      {"1e99999999999999999999", false},
      {"5e-324", true},
      {"4.9406564584124654e-324", false},
      {"2e-324", false},
      {"1e-400", false},
      {"1e-99999999999999999999", false},
      {"2.2250738585072014e-308", true},
      {"0.000000000000000000000000000000000000001", true},
  };
  for (const Case& each : kCases) {
    EXPECT_EQ(double_keeps(each.number), each.kept) << each.number;
  }
}

// Whatever a double prints as, it keeps; one more digit in the middle of two doubles, it does not.
TEST(DoubleKeeps, EveryShortestTextOfADouble) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t bits = random();
    double value = 0;
    std::memcpy(&value, &bits, sizeof value);
    if (!(value - value == 0)) continue;  // an infinity or not a number
    std::array<char, 64> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
    EXPECT_TRUE(double_keeps({text.data(), end})) << text.data();
  }
}

// The integer between two neighbouring doubles above 2^53 is never kept.
TEST(DoubleKeeps, NoOddIntegerAboveTwoToThe53) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t odd = (std::uint64_t{1} << 53) + (random() >> 11) + 1;
    EXPECT_FALSE(double_keeps(std::to_string(odd | 1))) << (odd | 1);
  }
}

}  // namespace
}  // namespace hapax::transform
