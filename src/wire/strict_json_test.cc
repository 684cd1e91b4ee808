#include "wire/strict_json.h"

#include <gtest/gtest.h>

namespace hapax::wire {
namespace {

TEST(StrictJson, ReadsEveryKindOfValue) {
  const auto read = read_strict_json(
      R"({"n":null,"b":true,"i":-3,"d":1.5,"big":18446744073709551615,"huge":18446744073709551616,)"
      R"("t":"a\u00e9\n","a":[1,[]],"o":{}})");
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_NE(read->find("n")->get<std::monostate>(), nullptr);
  EXPECT_TRUE(*read->find("b")->get<bool>());
  EXPECT_EQ(*read->find("i")->get<std::int64_t>(), -3);
  EXPECT_EQ(*read->find("d")->get<double>(), 1.5);
  EXPECT_EQ(*read->find("big")->get<std::uint64_t>(), 18'446'744'073'709'551'615U);
  EXPECT_EQ(*read->find("huge")->get<double>(), 0x1p64);
  EXPECT_EQ(*read->find("t")->get<std::string>(), "a\xc3\xa9\n");
  const auto* array = read->find("a")->get<JsonValue::Array>();
  ASSERT_EQ(array->size(), 2U);
  EXPECT_EQ(*(*array)[0].get<std::int64_t>(), 1);
  EXPECT_TRUE((*array)[1].get<JsonValue::Array>()->empty());
  EXPECT_TRUE(read->find("o")->get<JsonValue::Object>()->empty());
  EXPECT_EQ(read->find("missing"), nullptr);
  EXPECT_EQ(read->find("i")->find("x"), nullptr);
}

TEST(StrictJson, RefusesAMemberThatIsThereTwice) {
  EXPECT_FALSE(read_strict_json(R"({"a":1,"a":1})"));
  EXPECT_FALSE(read_strict_json(R"({"a":1,"\u0061":2})"));
  EXPECT_FALSE(read_strict_json(R"({"x":[{"a":1,"b":2,"a":1}]})"));
  EXPECT_TRUE(read_strict_json(R"({"a":{"a":1},"b":{"a":1},"A":0})"));
}

TEST(StrictJson, RefusesWhatIsNotExactlyOneValue) {
  for (const char* text : {"", " ", "{", "{}x", "{} {}", "[1,]", "{\"a\":1,}", "'a'", "nul", "01",
                           "// c\n1", "\"\xff\"", "\"\xed\xa0\x80\"", "\"\\ud800\"", "NaN"}) {
    EXPECT_FALSE(read_strict_json(text)) << text;
  }
  EXPECT_TRUE(read_strict_json(" {} \n"));
}

TEST(StrictJson, BoundsDepthAndMembers) {
  EXPECT_TRUE(read_strict_json(std::string(16, '[') + std::string(16, ']')));
  EXPECT_FALSE(read_strict_json(std::string(17, '[') + std::string(17, ']')));
  std::string many = "{";
  for (std::size_t i = 0; i < 256; ++i) {
    many += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":0";
  }
  EXPECT_TRUE(read_strict_json(many + "}"));
  EXPECT_FALSE(read_strict_json(many + ",\"more\":0}"));
}

// Documents may be secret: the error says where, and nothing that stands there.
TEST(StrictJson, AnErrorTellsItsPlaceAndNoByte) {
  const auto error = [](std::string_view text) {
    const auto read = read_strict_json(text);
    return read ? "accepted" : read.error().detail;
  };
  EXPECT_EQ(error("{\n \"secret\": oops}"), "it is not JSON (line 2, column 12): syntax error");
  EXPECT_EQ(error("{} {}"), "it is not JSON (line 1, column 4): extra data");
  EXPECT_EQ(error("{\"secret\":1,\n\"b\":{},\"secret\":2}"),
            "a member stands twice in one object (line 2, column 15)");
}

}  // namespace
}  // namespace hapax::wire
