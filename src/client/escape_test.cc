#include "client/escape.h"

#include <set>

#include <gtest/gtest.h>

namespace hapax::client {
namespace {

TEST(Encoded, EscapesEveryByteThatMeansSomething) {
  EXPECT_EQ(encoded("a-Z_0.~"), "a-Z_0.~");
  EXPECT_EQ(encoded("a/b c%\xc3\xa4"), "a%2Fb%20c%25%C3%A4");
}

TEST(AsValue, LeavesVisibleAsciiAndSpacesInside) {
  for (const char* plain : {"placed-o-1", "a  b", "\"q\"", "{1, 2}", ""}) {
    EXPECT_EQ(as_value(plain), plain);
  }
  EXPECT_EQ(as_value("a\r\nX-Evil: 1"), "a%0D%0AX-Evil: 1");
  EXPECT_EQ(as_value(" a "), "%20a%20");
  EXPECT_EQ(as_value(" "), "%20");
  EXPECT_EQ(as_value("100%"), "100%25");
  EXPECT_EQ(as_value("\xc3\xa4\t\x7f"), "%C3%A4%09%7F");
}

// Y7: no two texts become one value, and each value is one.
TEST(AsValue, KeepsTextsApart) {
  constexpr std::string_view kBytes("a %2\n\0\xc3", 7);
  std::set<std::string> values;
  std::size_t texts = 0;
  for (const char a : kBytes) {
    for (const char b : kBytes) {
      for (const char c : kBytes) {
        for (const std::string& text : {std::string{a, b, c}, std::string{a, b, c} + "0"}) {
          EXPECT_TRUE(is_value(as_value(text)));
          values.insert(as_value(text));
          ++texts;
        }
      }
    }
  }
  EXPECT_EQ(values.size(), texts);
}

TEST(IsValueAndIsWord, RefuseWhatWouldArriveAsSomethingElse) {
  EXPECT_TRUE(is_value("Bearer a.b%"));
  for (const char* bad : {" a", "a ", "a\rb", "a\nb", "a\tb", "\xc3\xa4", "\x7f"}) {
    EXPECT_FALSE(is_value(bad)) << bad;
    EXPECT_FALSE(is_word(bad)) << bad;
  }
  EXPECT_TRUE(is_word("/a/b?c=%20"));
  EXPECT_FALSE(is_word("/a b"));
  EXPECT_FALSE(is_word(""));
}

}  // namespace
}  // namespace hapax::client
