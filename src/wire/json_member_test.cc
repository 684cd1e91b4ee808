#include "wire/json_member.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json_pointer.h"
#include "wire/json_check.h"

namespace hapax::wire {
namespace {

using testing::Optional;

constexpr std::string_view kText =
    R"( { "id" : 17 , "order":{"lines":[{"sku":"a"}, "x\n\"y\u00e9" ,[]],"n":-1.50e+2},
 "a\/b":true , "" :null,"e":"", "\u0069d2":"two" } )";

std::optional<std::string_view> at(std::string_view pointer, std::string_view text = kText) {
  EXPECT_TRUE(is_strict_json(text));
  return json_member(text, *base::read_json_pointer(pointer));
}

TEST(JsonMember, IsAsItStandsInTheText) {
  EXPECT_THAT(at("/id"), Optional(std::string_view("17")));
  EXPECT_THAT(at("/order/lines/0/sku"), Optional(std::string_view("\"a\"")));
  EXPECT_THAT(at("/order/lines/1"), Optional(std::string_view(R"("x\n\"y\u00e9")")));
  EXPECT_THAT(at("/order/lines/2"), Optional(std::string_view("[]")));
  EXPECT_THAT(at("/order/n"), Optional(std::string_view("-1.50e+2")));
  EXPECT_THAT(at("/a~1b"), Optional(std::string_view("true")));
  EXPECT_THAT(at("/"), Optional(std::string_view("null")));
  EXPECT_THAT(at("/id2"), Optional(std::string_view("\"two\""))) << "names may be escaped";
  EXPECT_THAT(at("/0", "[1,2]"), Optional(std::string_view("1")));
  EXPECT_THAT(at("/0", R"({"0":3})"), Optional(std::string_view("3")));
  EXPECT_THAT(at("", " 5 "), Optional(std::string_view("5")));
}

TEST(JsonMember, IsNothingWhereThereIsNone) {
  for (const char* one : {"/x", "/id/x", "/order/lines/3", "/order/lines/00", "/order/lines/-",
                          "/order/lines/sku", "/order/lines/0/sku/0", "/ID", "/order/lines/"}) {
    EXPECT_EQ(at(one), std::nullopt) << one;
  }
  EXPECT_EQ(at("/a", "{}"), std::nullopt);
  EXPECT_EQ(at("/0", "[]"), std::nullopt);
  EXPECT_EQ(at("/a", "\"{}\""), std::nullopt);
}

TEST(JsonMember, ScalarsHaveOneText) {
  EXPECT_THAT(json_scalar_text("17"), Optional(std::string("17")));
  EXPECT_THAT(json_scalar_text("1.0"), Optional(std::string("1.0")));
  EXPECT_THAT(json_scalar_text("false"), Optional(std::string("false")));
  EXPECT_THAT(json_scalar_text(R"("x\n\"y\u00e9")"), Optional(std::string("x\n\"y\xc3\xa9")));
  EXPECT_THAT(json_scalar_text("\"\""), Optional(std::string()));
  for (const char* one : {"null", "{}", "[1]", ""}) {
    EXPECT_EQ(json_scalar_text(one), std::nullopt) << one;
  }
}

}  // namespace
}  // namespace hapax::wire
