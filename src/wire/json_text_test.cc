#include "wire/json_text.h"

#include <limits>

#include <gtest/gtest.h>

namespace hapax::wire {
namespace {

TEST(JsonObject, IsWrittenIntoOneBufferHoweverDeep) {
  JsonObject out;
  out.add("text", "a\"b\n")
      .add("flag", true)
      .add("least", std::numeric_limits<std::int64_t>::min())
      .add("most", std::numeric_limits<std::uint64_t>::max());
  out.object("empty", [](JsonObject&) {});
  out.list("none", std::vector<int>{}, [](JsonObject&, int) {});
  out.list("all", std::vector<int>{1, 2}, [](JsonObject& one, int n) {
    one.add("n", n).object("inner", [&](JsonObject& inner) { inner.raw("raw", "[{}]"); });
  });
  out.pairs("pairs", {{"k", "v"}, {"", ""}});
  EXPECT_EQ(out.text(), R"({"text":"a\"b\n","flag":true,"least":-9223372036854775808,)"
                        R"("most":18446744073709551615,"empty":{},"none":[],)"
                        R"("all":[{"n":1,"inner":{"raw":[{}]}},{"n":2,"inner":{"raw":[{}]}}],)"
                        R"("pairs":[["k","v"],["",""]]})");
}

TEST(JsonObject, ATextThatEndsLikeAnObjectBeginsIsATextAllTheSame) {
  EXPECT_EQ(JsonObject().add("{", "{").add("[", "[").text(), R"({"{":"{","[":"["})");
  EXPECT_EQ(JsonObject().text(), "{}");
}

TEST(JsonObject, MayBeMovedAndCopied) {
  JsonObject first;
  first.add("a", 1);
  JsonObject second = first;
  second.add("b", 2);
  const JsonObject third = std::move(second);
  EXPECT_EQ(first.text(), R"({"a":1})");
  EXPECT_EQ(third.text(), R"({"a":1,"b":2})");
}

TEST(JsonObject, WhatNeverEndsIsNull) {
  EXPECT_EQ(JsonObject().time("t", Time::max()).time("u", time_from_ms(5)).text(),
            R"({"t":null,"u":5})");
}

TEST(JsonArray, KeepsItsOrder) {
  JsonArray array;
  EXPECT_EQ(array.text(), "[]");
  array.add("1");
  array.add("{}");
  EXPECT_EQ(array.text(), "[1,{}]");
}

}  // namespace
}  // namespace hapax::wire
