#include "wire/json_source.h"

#include <gtest/gtest.h>

namespace hapax::wire {
namespace {

TEST(JsonSource, AValueEndsWhereItEnds) {
  EXPECT_EQ(json_value_at(" 1.50 ,"), "1.50");
  EXPECT_EQ(json_value_at("true]"), "true");
  EXPECT_EQ(json_value_at("\"a\\\"]\\\\\"}"), R"("a\"]\\")");
  EXPECT_EQ(json_value_at(R"({"]": ["}", {}]} , 1)"), R"({"]": ["}", {}]})");
  EXPECT_EQ(json_value_at("-0"), "-0");
}

TEST(JsonSource, ItemsAreCountedInTheirOrder) {
  JsonItems array(" [ 1 ,[2, 3],\"4,\" , {} ] ");
  EXPECT_EQ(json_value_at(array.from(0)), "1");
  EXPECT_EQ(json_value_at(array.from(1)), "[2, 3]");
  EXPECT_EQ(json_value_at(array.from(1)), "[2, 3]");
  EXPECT_EQ(json_value_at(array.from(3)), "{}");
  JsonItems object(R"({ "a:,\"" : 1,"b":{"c":2} , "d":3})");
  EXPECT_EQ(json_value_at(object.from(0)), "1");
  EXPECT_EQ(json_value_at(object.from(1)), R"({"c":2})");
  EXPECT_EQ(json_value_at(object.from(2)), "3");
}

// It is never asked about such texts, and must not run beyond them if it were.
TEST(JsonSource, WhatIsNoJsonIsReadWithinItsBounds) {
  for (const std::string_view text :
       {"", " ", "[", "{", "{\"", "{\"a\\", "[[[", "[\"\\", "]", "}}"}) {
    EXPECT_LE(json_value_at(text).size(), text.size());
    EXPECT_TRUE(JsonItems(text).from(3).empty()) << text;
  }
}

}  // namespace
}  // namespace hapax::wire
