#include "resp/expiry.h"

#include <vector>

#include <gtest/gtest.h>

namespace hapax::resp {
namespace {

std::string problem(const ExpiryOrProblem& read) {
  const auto* text = std::get_if<std::string>(&read);
  return text == nullptr ? "" : *text;
}

TEST(Expiry, IsReadInItsUnit) {
  const Expiry seconds{Expiry::Kind::kAfter, {}, Duration{5'000}};
  EXPECT_EQ(std::get<Expiry>(expiry_of("5", ExpiryUnit::kSeconds, "expire")), seconds);
  const Expiry at{Expiry::Kind::kAt, time_from_ms(5), {}};
  EXPECT_EQ(std::get<Expiry>(expiry_of("5", ExpiryUnit::kMillisecondsSince1970, "x")), at);
  const Expiry past{Expiry::Kind::kAt, time_from_ms(0), {}};
  EXPECT_EQ(std::get<Expiry>(expiry_of("-7", ExpiryUnit::kSecondsSince1970, "x")), past);
}

TEST(Expiry, WhatIsWrongIsSaidInTheWordsOfRedis) {
  const std::string number = "value is not an integer or out of range";
  const std::string invalid = "invalid expire time in 'set' command";
  for (const char* text : {"", "x", "1.5", " 1", "+1", "01", "9223372036854775808"}) {
    EXPECT_EQ(problem(expiry_from_now_on(text, ExpiryUnit::kSeconds, "set")), number) << text;
  }
  for (const char* text : {"0", "-1", "9223372036854775807", "70368744177665"}) {
    EXPECT_EQ(problem(expiry_from_now_on(text, ExpiryUnit::kSeconds, "set")), invalid) << text;
  }
  EXPECT_EQ(problem(expiry_from_now_on("70368744177664", ExpiryUnit::kMilliseconds, "set")), "");
  EXPECT_EQ(problem(expiry_of("-9223372036854775808", ExpiryUnit::kSeconds, "set")), invalid);
}

TEST(Expiry, ConditionsThatDoNotGoTogetherAreRefused) {
  const auto read = [](std::vector<std::string_view> words) { return read_expire_if(words); };
  EXPECT_EQ(std::get<ExpireIf>(read({})), ExpireIf::kAlways);
  EXPECT_EQ(std::get<ExpireIf>(read({"nx"})), ExpireIf::kNever);
  EXPECT_EQ(std::get<ExpireIf>(read({"XX"})), ExpireIf::kSome);
  EXPECT_EQ(std::get<ExpireIf>(read({"XX", "GT"})), ExpireIf::kLater);
  EXPECT_EQ(std::get<ExpireIf>(read({"LT"})), ExpireIf::kEarlier);
  EXPECT_TRUE(std::holds_alternative<std::string>(read({"NX", "GT"})));
  EXPECT_TRUE(std::holds_alternative<std::string>(read({"GT", "LT"})));
  EXPECT_EQ(std::get<ExpireIf>(read({"LT", "XX"})), ExpireIf::kSomeEarlier);
  EXPECT_TRUE(std::holds_alternative<std::string>(read({"ZZ"})));
}

}  // namespace
}  // namespace hapax::resp
