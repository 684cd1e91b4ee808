#include "transform/json_check.h"

#include <string>

#include <gtest/gtest.h>

namespace hapax::transform {
namespace {

std::string verdict(std::string_view text, TransformNumbers numbers = TransformNumbers::kExact) {
  const auto refused = check_json(text, numbers);
  if (!refused) return "good";
  return refused->fault == TransformFault::kBadInput ? "bad" : "alters";
}

TEST(CheckJson, TakesEveryValue) {
  for (const char* text :
       {"1", " null ", "true", "false", "\"\"", "[]", "{}", "[1,2]", "[[],{}]",
        "{\"a\":{\"b\":[1]}}", "-0.5e-3", "{\"a\":1,\"b\":2}", "[true,false,null,\"x\"]",
        "\t\r\n[ 1 , 2 ]\n", R"("\"\\\/\b\f\n\r\t\u00e9\u0000")", R"("\ud83d\ude00")", "\"ü€😀\"",
        "\"\x7f\""}) {
    EXPECT_EQ(verdict(text), "good") << text;
  }
}

TEST(CheckJson, RefusesWhatIsNotJson) {
  for (const char* text : {"",
                           " ",
                           "nan",
                           "NaN",
                           "Infinity",
                           "nul",
                           "truee",
                           "1 2",
                           "[1,]",
                           "[,1]",
                           "{\"a\"}",
                           "{\"a\":}",
                           "{\"a\":1,}",
                           "{a:1}",
                           "{1:2}",
                           "[1",
                           "{",
                           "]",
                           "[}",
                           "[1}",
                           "{\"a\":1]",
                           "01",
                           "-",
                           "1.",
                           ".5",
                           "1e",
                           "1e+",
                           "+1",
                           "0x10",
                           "'a'",
                           "\"",
                           "\"\\x\"",
                           "\"\\u12\"",
                           "\"\\u12g4\"",
                           "\"\n\"",
                           "\"\x1f\"",
                           "\"\\",
                           "\xef\xbb\xbf"
                           "1",
                           "// a\n1",
                           "[1 2]",
                           "{\"a\" 1}",
                           "{\"a\":1 \"b\":2}"}) {
    EXPECT_EQ(verdict(text), "bad") << text;
  }
  EXPECT_EQ(verdict(std::string_view("1\0", 2)), "bad");
  EXPECT_EQ(verdict(std::string_view("\"\0\"", 3)), "bad");
}

TEST(CheckJson, RefusesWhatJqWouldChange) {
  for (const char* text :
       {"\"\xff\"", "\"\xc3\"", "\"\xed\xa0\x80\"", "\"\xc0\x80\"", R"("\ud800")", R"("\udc00")",
        R"("\ud800\ud800")", R"("\ud800x")", "{\"\xff\":1}", R"([1,{"id":9007199254740993}])"}) {
    EXPECT_EQ(verdict(text), "alters") << text;
    const auto refused = check_json(text, TransformNumbers::kExact);
    EXPECT_TRUE(refused->message.starts_with("transform would alter it: ")) << refused->message;
  }
}

TEST(CheckJson, NumbersMayBecomeDoublesIfTheSettingSaysSo) {
  EXPECT_EQ(verdict("9007199254740993", TransformNumbers::kDouble), "good");
  EXPECT_EQ(verdict("\"\xff\"", TransformNumbers::kDouble), "alters");
}

TEST(CheckJson, SaysWhere) {
  EXPECT_EQ(check_json(R"({"id": 9007199254740993})", TransformNumbers::kExact)->message,
            "transform would alter it: the number 9007199254740993 at byte 7");
  EXPECT_EQ(check_json("[1 2]", TransformNumbers::kExact)->message,
            "the input is not JSON: a comma or a closing bracket is missing at byte 3");
}

TEST(CheckJson, NestsAsDeeplyAsJqReads) {
  EXPECT_EQ(verdict(std::string(256, '[') + std::string(256, ']')), "good");
  EXPECT_EQ(verdict(std::string(257, '[') + std::string(257, ']')), "bad");
  EXPECT_EQ(verdict(std::string(100'000, '[')), "bad");
}

}  // namespace
}  // namespace hapax::transform
