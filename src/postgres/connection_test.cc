// What needs no server: how values are written, and what a SQLSTATE means.
#include "postgres/connection.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace hapax::postgres {
namespace {

using Elements = std::vector<std::optional<std::string>>;

std::string written(const Elements& elements) {
  return array_of({elements.begin(), elements.end()});
}

// As PostgreSQL reads an array of texts: quoted elements, a backslash before any character.
Elements read_array(std::string_view text) {
  Elements all;
  std::size_t at = 1;
  while (text[at] != '}') {
    if (text[at] == ',') ++at;
    if (text.substr(at, 4) == "NULL") {
      all.emplace_back(std::nullopt);
      at += 4;
      continue;
    }
    std::string element;
    for (++at; text[at] != '"'; ++at) {
      if (text[at] == '\\') ++at;
      element += text[at];
    }
    all.emplace_back(element);
    ++at;
  }
  return all;
}

TEST(ArrayOf, TellsNullFromItsWordAndFromAnEmptyText) {
  EXPECT_EQ(written({}), "{}");
  EXPECT_EQ(written({""}), R"({""})");
  EXPECT_EQ(written({std::nullopt, "NULL"}), R"({NULL,"NULL"})");
}

TEST(ArrayOf, NoElementEndsItself) {
  EXPECT_EQ(written({R"(a"b)", R"(c\)", "},{"}), R"({"a\"b","c\\","},{"})");
}

// Texts of the characters that mean something in an array; every third is NULL.
RC_GTEST_PROP(ArrayOf, IsReadBackAsItWas, ()) {
  const auto text =
      rc::gen::container<std::string>(rc::gen::element('"', '\\', ',', '{', '}', 'N', ' '));
  Elements elements;
  for (const std::string& one : *rc::gen::container<std::vector<std::string>>(text)) {
    if (elements.size() % 3 == 2) elements.emplace_back(std::nullopt);
    elements.emplace_back(one);
  }
  RC_ASSERT(read_array(written(elements)) == elements);
}

TEST(HexOf, IsABytea) { EXPECT_EQ(hex_of(std::string_view("h\0\xff", 3)), "\\x6800ff"); }

TEST(CodeOf, ASingleStateCountsBeforeItsClass) {
  EXPECT_EQ(code_of("53100"), Errc::kNoSpace);
  EXPECT_EQ(code_of("53200"), Errc::kUnavailable);
  EXPECT_EQ(code_of("42501"), Errc::kForbidden);
  EXPECT_EQ(code_of("42P01"), Errc::kNotFound);
  EXPECT_EQ(code_of("42601"), Errc::kInvalidArgument);
  EXPECT_EQ(code_of("23505"), Errc::kAlreadyExists);
  EXPECT_EQ(code_of("23502"), Errc::kInvalidArgument);
  EXPECT_EQ(code_of("40003"), Errc::kOutcomeUnknown);
}

// Ours has the last three digits of the number.
TEST(CodeOf, OursIsFoundByItsNumber) {
  EXPECT_EQ(code_of("HX012"), Errc::kPreconditionFailed);
  for (const std::string_view state : {"", "HX", "HX01", "HX0012", "HX-12", "HX01x", "XX000"}) {
    EXPECT_EQ(code_of(state), Errc::kUnavailable) << state;
  }
}

}  // namespace
}  // namespace hapax::postgres
