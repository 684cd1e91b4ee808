#include "tables/numbered.h"

#include <string_view>

#include <gtest/gtest.h>

#include "tables/migration.h"

namespace hapax::tables {
namespace {

TEST(Numbered, AMessageOfOursHasItsNumberInFront) {
  EXPECT_EQ(number_of("HX1002: the key is empty"), Errc::kLimitExceeded);
  EXPECT_EQ(without_number("HX1002: the key is empty"), "the key is empty");
  EXPECT_EQ(without_number("HX1002: "), "");
}

TEST(Numbered, WhatOnlyLooksLikeOneStaysWhole) {
  for (const std::string_view message :
       {"", "HX1002", "HX1002:", "HX1002:x y", "hx1002: x", "HX9999: x", "HX 100: x", "HX10a2: x",
        "HX-100: x", " HX1002: x", "HX10021: x"}) {
    EXPECT_FALSE(number_of(message)) << message;
    EXPECT_EQ(without_number(message), message);
  }
}

TEST(Expanded, ReplacesEveryMarkAndNothingInWhatItPutThere) {
  EXPECT_EQ(expanded("{p}a, {p}b, {q}", "p", "x_"), "x_a, x_b, {q}");
  EXPECT_EQ(expanded("{p}", "p", "{p}"), "{p}");
  EXPECT_EQ(expanded("", "p", "x"), "");
}

}  // namespace
}  // namespace hapax::tables
