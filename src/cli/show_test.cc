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

TEST(Show, NumbersAreThoseThatWereTold) {
  for (const char* number : {"-9223372036854775808", "18446744073709551615"}) {
    EXPECT_EQ(json_of(json(number)), number);
  }
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

TEST(WithoutPassword, AnAddressOfNumbersKeepsItsPort) {
  EXPECT_EQ(without_password("postgres://u:secret@[::1]:5432/db"), "postgres://u@[::1]:5432/db");
  EXPECT_EQ(without_password("postgres://[::1]:5432/db"), "postgres://[::1]:5432/db");
  EXPECT_EQ(without_password("postgres://u:@h/db"), "postgres://u@h/db");
  EXPECT_EQ(without_password("postgres://h/db?password="), "postgres://h/db?password=…");
}

TEST(Show, ATableCountsCharactersNotBytesNorColours) {
  Table table({"name", "n"});
  table.add({"zwölf", "1"});
  table.add({"\x1b[32mgreen\x1b[0m", "22"});
  EXPECT_EQ(table.text(), "name    n\nzwölf   1\n\x1b[32mgreen\x1b[0m  22\n");
}

TEST(Show, ATableWithoutRowsHasItsHeader) {
  const Table table({"name", "n"});
  EXPECT_TRUE(table.empty());
  EXPECT_EQ(table.text(), "name  n\n");
}

TEST(Show, AMomentIsADateAndASpanANumber) {
  const auto text = [](std::string_view name, std::string_view value) {
    const Shown both = shown(name, json(value));
    return both.name + "=" + both.value;
  };
  EXPECT_EQ(text("lease_until_ms", "1700000000000"), "lease until=2023-11-14T22:13:20.000Z");
  EXPECT_EQ(text("lease_ms", "30000"), "lease ms=30000");
  EXPECT_EQ(text("expires_at_ms", "null"), "expires at=never ends");
  EXPECT_EQ(text("result", "null"), "result=null");
}

TEST(Show, BytesComeAsTextOrInBase64) {
  EXPECT_EQ(bytes_in(json(R"({"payload":"tea"})"), "payload"), "tea");
  EXPECT_EQ(bytes_in(json(R"({"payload_base64":"/wA="})"), "payload"), std::string("\xff\0", 2));
  EXPECT_EQ(bytes_in(json(R"({"payload_base64":"!"})"), "payload"), "");
  EXPECT_EQ(bytes_in(json("{}"), "payload"), "");
}

TEST(Show, WhatAnAnswerLacksIsEmpty) {
  const auto answer = json(R"({"n":"7","list":{},"text":7})");
  EXPECT_EQ(number_in(answer, "n"), 0);
  EXPECT_EQ(text_in(answer, "text"), "");
  EXPECT_TRUE(list_in(answer, "list").empty());
  EXPECT_TRUE(list_in(json("[1]"), "list").empty());
}

}  // namespace
}  // namespace hapax::cli
