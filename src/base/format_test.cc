#include "base/format.h"

#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace hapax::base {
namespace {

using namespace std::literals;

TEST(Format, PutsArgumentsWhereTheBracesAre) {
  EXPECT_EQ(format("record {} of {}", 7, "orders"s), "record 7 of orders");
  EXPECT_EQ(format("{{}} {}", 'x'), "{} x");
  EXPECT_EQ(format("{}", std::numeric_limits<std::uint64_t>::max()), "18446744073709551615");
  EXPECT_EQ(format("{}", std::numeric_limits<std::int64_t>::min()), "-9223372036854775808");
}

TEST(Format, KeepsBytesOfTextsAsTheyAre) { EXPECT_EQ(format("[{}]", "a\0b\xff"sv), "[a\0b\xff]"s); }

TEST(Format, AlignsAndRounds) {
  EXPECT_EQ(format("{:<4}|{:>4}|{:<{}}|", "ab", 12, "c", 3), "ab  |  12|c  |");
  EXPECT_EQ(format("{:.2f} {:02x} {:06}", 1.005, 10, 42), "1.00 0a 000042");
}

TEST(Format, AppendsToWhatIsThere) {
  std::string text = "a";
  append_format(text, "{}{}", 1, "b"sv);
  append_format(text, "");
  EXPECT_EQ(text, "a1b");
}

TEST(Format, JoinsWithASeparatorBetween) {
  EXPECT_EQ(joined(std::vector<std::string>{}, ", "), "");
  EXPECT_EQ(joined(std::vector<std::string>{"a"}, ", "), "a");
  EXPECT_EQ(joined(std::vector<std::string_view>{"a", "a", ""}, " "), "a a ");
  EXPECT_EQ(joined(std::set<std::string>{"b", "a"}, ", "), "a, b");
}

}  // namespace
}  // namespace hapax::base
