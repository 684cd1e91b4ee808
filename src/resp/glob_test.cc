#include "resp/glob.h"

#include <string>

#include <gtest/gtest.h>

namespace hapax::resp {
namespace {

TEST(Glob, MatchesAsRedisDoes) {
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("*", "anything"));
  EXPECT_TRUE(matches("", ""));
  EXPECT_FALSE(matches("", "a"));
  EXPECT_TRUE(matches("h?llo", "hello"));
  EXPECT_FALSE(matches("h?llo", "hllo"));
  EXPECT_TRUE(matches("h*llo", "heeeello"));
  EXPECT_TRUE(matches("h[ae]llo", "hallo"));
  EXPECT_FALSE(matches("h[ae]llo", "hillo"));
  EXPECT_TRUE(matches("h[^e]llo", "hallo"));
  EXPECT_FALSE(matches("h[^e]llo", "hello"));
  EXPECT_TRUE(matches("h[a-b]llo", "hbllo"));
  EXPECT_TRUE(matches("h[b-a]llo", "hallo"));
  EXPECT_TRUE(matches("\\*", "*"));
  EXPECT_FALSE(matches("\\*", "a"));
  EXPECT_TRUE(matches("[\\]]", "]"));
  EXPECT_TRUE(matches("dedup:*:job-[0-9]", "dedup:queue:job-7"));
  EXPECT_TRUE(matches("*a*b", "xaybab"));
  EXPECT_FALSE(matches("*a*b", "xayba"));
  EXPECT_TRUE(matches("a**", "a"));
}

TEST(Glob, TakesNoLongerThanTheProductOfBothLengths) {
  std::string pattern;
  for (int i = 0; i < 100; ++i) pattern += "a*";
  EXPECT_FALSE(matches(pattern + "b", std::string(5'000, 'a')));
}

}  // namespace
}  // namespace hapax::resp
