#include "wire/json_check.h"

#include <string>

#include <boost/json/storage_ptr.hpp>
#include <gtest/gtest.h>

#include "wire/json_reader.h"

namespace hapax::wire {
namespace {

// As the one reader sees it.
bool is_read(std::string_view text) {
  JsonReader reader(kRequestRules);
  return reader.read(text, {}).ok();
}

std::string nested(std::size_t levels) {
  return std::string(levels, '[') + std::string(levels, ']');
}

TEST(StrictJson, IsWhatTheReaderReads) {
  for (const std::string& text :
       {std::string("{}"), std::string("[]"), std::string("null"), std::string("\"\""),
        std::string(" { \"a\" : [ 1 , { \"a\" : 2 } ] , \"b\" : { \"a\" : 3 } }\n"),
        std::string("-0"), std::string("1e400"), std::string("-12345678901234567890123"),
        std::string("0.1000000000000000055511151231257827"), std::string("[{},{},{\"\":1}]"),
        std::string("\"\\u0000\\ud83d\\ude00\""), std::string("\"\xf0\x9f\x98\x80\""),
        nested(64)}) {
    EXPECT_TRUE(is_strict_json(text)) << text;
    EXPECT_TRUE(is_read(text)) << text;
  }
}

TEST(StrictJson, IsNothingElse) {
  for (const std::string& text : {std::string(),
                                  std::string(" "),
                                  std::string("{"),
                                  std::string("{}{}"),
                                  std::string("{} x"),
                                  std::string("[1,]"),
                                  std::string("{\"a\":1,}"),
                                  std::string("{a:1}"),
                                  std::string("'a'"),
                                  std::string("NaN"),
                                  std::string("Infinity"),
                                  std::string("01"),
                                  std::string("+1"),
                                  std::string("1."),
                                  std::string(".5"),
                                  std::string("0x1"),
                                  std::string("tru"),
                                  std::string("// c\n1"),
                                  std::string("/**/1"),
                                  std::string("\xef\xbb\xbf{}"),
                                  std::string("\"\xff\""),
                                  std::string("\"\xc0\xa0\""),
                                  std::string("\"\xed\xa0\x80\""),
                                  std::string("\"\\ud800\""),
                                  std::string("\"\\x\""),
                                  std::string("\"a\nb\""),
                                  std::string("\"\0\"", 3),
                                  std::string("{}\0", 3),
                                  std::string("{\"a\":1,\"a\":2}"),
                                  std::string("{\"a\":1,\"\\u0061\":2}"),
                                  std::string("[{\"b\":{\"\":1,\"c\":{},\"\":2}}]"),
                                  nested(65)}) {
    EXPECT_FALSE(is_strict_json(text)) << text;
    EXPECT_FALSE(is_read(text)) << text;
  }
}

// A name belongs to its own object: what is inside of it or beside it may use it again.
TEST(StrictJson, ComparesNamesWithinOneObjectOnly) {
  EXPECT_TRUE(is_strict_json(R"({"a":{"a":{"a":1},"b":2},"b":[{"a":1},{"a":1}],"ab":1})"));
  EXPECT_FALSE(is_strict_json(R"({"a":{"x":1},"b":{"y":1},"a":{}})"));
  EXPECT_FALSE(is_strict_json(R"({"b":1,"a":{"x":1,"x":2}})"));
}

TEST(StrictJson, MayHaveManyMembers) {
  std::string text = "{";
  for (int i = 0; i < 20'000; ++i) text += "\"" + std::to_string(i) + "\":0,";
  EXPECT_TRUE(is_strict_json(text + "\"x\":0}"));
  EXPECT_FALSE(is_strict_json(text + "\"7\":0}"));
}

}  // namespace
}  // namespace hapax::wire
