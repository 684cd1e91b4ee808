#include "cli/show.h"

#include <gtest/gtest.h>

namespace hapax::cli {
namespace {

wire::JsonValue json(std::string_view text) { return *wire::read_strict_json(text); }

TEST(Show, TablesAreAsWideAsTheirCellsAndNumbersStandToTheRight) {
  Table table({"stream", "last"});
  table.add({"orders", "7"});
  table.add({"\xc3\xa4", "12345"});
  EXPECT_EQ(table.text(), "stream   last\norders      7\n\xc3\xa4       12345\n");
}

TEST(Show, AColumnWithAWordInItStandsToTheLeft) {
  Table table({"lag", "x"});
  table.add({"a", "-"});
  table.add({"100", "2"});
  EXPECT_EQ(table.text(), "lag  x\na    -\n100  2\n");
}

TEST(Show, NoByteOfANameIsACommandToTheTerminal) {
  EXPECT_EQ(printable("a\x1b[2J\n\xc2\x9b"), "a\\x1b[2J\\x0a\\xc2\\x9b");
  EXPECT_EQ(printable("\xc3\xa4"), "\xc3\xa4");
}

TEST(Show, InstantsAreDates) {
  EXPECT_EQ(instant_text(1'794'818'675'006), "2026-11-16T08:44:35.006Z");
  EXPECT_EQ(shown("lease_until_ms", json("1794818675006")).name, "lease until");
  EXPECT_EQ(shown("delay_ms", json("5000")).value, "5000");
  EXPECT_EQ(shown("expires_at_ms", json("null")).value, "never ends");
}

TEST(Show, AVerdictIsALine) {
  EXPECT_EQ(verdict_line(json(R"({"verdict":"fresh","fence":1,"owner":""})")),
            "fresh  fence 1  owner -");
  EXPECT_EQ(verdict_line(json(R"({"type":"t","title":"x","status":409,"detail":"d",)"
                              R"("verdict":"fenced","current":2})")),
            "fenced  current 2");
  EXPECT_EQ(verdict_line(json(R"({"verdict":"duplicate","status":201,"body":"b"})")),
            "duplicate  status 201  body b");
}

TEST(Show, JsonComesOutAsItWentIn) {
  constexpr std::string_view kText = R"({"a":[1,-2,true,null,"x\n"],"b":{"c":0.5}})";
  EXPECT_EQ(json_of(json(kText)), kText);
}

TEST(Show, MembersInsideAreIndented) {
  EXPECT_EQ(member_lines(json(R"({"stream":"a","settings":{"window_s":5},"list":[1]})")),
            "stream    a\nsettings\n  window s  5\n");
}

TEST(WithoutPassword, WhereverItStands) {
  EXPECT_EQ(without_password("postgres://u:secret@h/db"), "postgres://u@h/db");
  EXPECT_EQ(without_password("postgres://u:se@cret@h/db"), "postgres://u@h/db");
  EXPECT_EQ(without_password("postgres:///db?password=secret&host=/x"),
            "postgres:///db?password=…&host=/x");
  EXPECT_EQ(without_password("postgres:///db?sslpassword=secret&password=secret"),
            "postgres:///db?sslpassword=…&password=…");
  EXPECT_EQ(without_password("postgres://u@h:5432/db"), "postgres://u@h:5432/db");
  EXPECT_EQ(without_password("sqlite:shop.db"), "sqlite:shop.db");
}

}  // namespace
}  // namespace hapax::cli
