#include "rest/commits.h"

#include <gtest/gtest.h>

namespace hapax::rest {
namespace {

// The id that a request with this Idempotency-Key gives its commit, or nothing if it is refused.
std::optional<std::string> key_of(std::string_view field) {
  http::Request http;
  http.fields.add("Idempotency-Key", field);
  wire::Request request;
  if (!give_id(http, request)) return std::nullopt;
  return std::string(request.id.value_or(""));
}

// RFC 9651: a backslash stands before a quote or a backslash, and nowhere else.
TEST(IdempotencyKey, OnlyTwoCharactersCanBeEscaped) {
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    const auto key = key_of(std::string("\"a\\") + c + "b\"");
    if (c == '"' || c == '\\') {
      EXPECT_EQ(key, std::string("a") + c + "b");
    } else {
      EXPECT_FALSE(key) << byte;
    }
  }
}

TEST(IdempotencyKey, OnlyPrintableAsciiIsAllowedQuotedOrNot) {
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    const bool printable = byte >= 0x20 && byte <= 0x7e;
    const bool special = c == '"' || c == '\\';
    EXPECT_EQ(key_of(std::string("\"a") + c + "b\"").has_value(), printable && !special) << byte;
    EXPECT_EQ(key_of(std::string("a") + c + "b").has_value(), printable && c != ',') << byte;
  }
}

TEST(IdempotencyKey, AKeyIsWholeAndAlone) {
  EXPECT_EQ(key_of("\"8e03978e\""), "8e03978e");
  EXPECT_EQ(key_of("8e03978e"), "8e03978e");
  EXPECT_EQ(key_of(std::string(255, 'x')), std::string(255, 'x'));
  for (const std::string& bad :
       {std::string(), std::string("\"\""), std::string("\""), std::string("\"a"),
        std::string("\"a\\\""), std::string("\"a\";x=1"), std::string("\"a\", \"b\""),
        std::string(256, 'x')}) {
    EXPECT_FALSE(key_of(bad)) << bad;
  }
}

}  // namespace
}  // namespace hapax::rest
