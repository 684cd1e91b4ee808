// What an SQLite file has of its own among the databases of applications: values of any type in any
// column, texts with any bytes, and encodings.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hapax/inbox.h>
#include <hapax/outbox.h>
#include <hapax/sqlite.h>

#include "host/temporary_folder_test.h"
#include "sqlite/checkup.h"
#include "sqlite/migrate.h"

namespace hapax::sqlite {
namespace {

using testing::HasSubstr;

class SqliteTables : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(migrate(app_, {}));
    database_ = *on_sqlite(app_.raw());
  }

  std::string refusal(const std::string& sql) {
    const Status done = app_.run(sql);
    return done ? "none" : done.error().detail;
  }
  std::int64_t number(const std::string& sql) { return app_.ask(sql, {})->at(0)[kOnly].number; }

  const host::TemporaryFolder folder_;
  Connection app_ = *Connection::open(folder_.text() + "/app.db");
  std::unique_ptr<Database> database_;
};

// A driver may bind bytes as a blob, which equals no text: the order of a key would be lost, and a
// message be taken twice.
TEST_F(SqliteTables, WhatRowsAreFoundByIsNoBlob) {
  const std::string outbox = "INSERT INTO hapax_outbox (id, type, key, payload) VALUES ";
  EXPECT_THAT(refusal(outbox + "(x'61', 't', 'k', '')"), HasSubstr("id must be text, not a blob"));
  EXPECT_THAT(refusal(outbox + "('a', x'74', 'k', '')"), HasSubstr("type must be text"));
  EXPECT_THAT(refusal(outbox + "('a', 't', x'6b', '')"), HasSubstr("key must be text"));
  EXPECT_EQ(refusal(outbox + "('a', 't', NULL, x'00'), (7, 't', 8, '')"), "none");
  EXPECT_EQ(number("SELECT count(*) FROM hapax_outbox WHERE id = '7' AND key = '8'"), 1);

  const std::string inbox = " INTO hapax_inbox (subscriber, message_id) VALUES ";
  EXPECT_EQ(refusal("INSERT" + inbox + "('s', 'p-1')"), "none");
  for (const char* values : {"('s', x'702d31')", "(x'73', 'p-1')"}) {
    EXPECT_THAT(refusal("INSERT" + inbox + values + " ON CONFLICT DO NOTHING"),
                HasSubstr("message_id must be text, not a blob"));
    EXPECT_THAT(refusal("INSERT OR IGNORE" + inbox + values), HasSubstr("must be text"));
  }
  EXPECT_THAT(refusal("UPDATE hapax_inbox SET message_id = x'01'"), HasSubstr("must be text"));
  EXPECT_EQ(number("SELECT count(*) FROM hapax_inbox"), 1);

  const std::string claims =
      "INSERT INTO hapax_claims (state, owner, fence, attempts, lease_until, first_seen, scope, "
      "key) VALUES ('processing', 'o', 1, 1, 0, 0, ";
  EXPECT_THAT(refusal(claims + "x'73', 'k')"), HasSubstr("scope must be text, not a blob"));
  EXPECT_THAT(refusal(claims + "'s', x'6b')"), HasSubstr("key must be text, not a blob"));
  EXPECT_EQ(refusal(claims + "'s', 'k')"), "none");
}

TEST_F(SqliteTables, IdsOfAnyBytesAreKeptAndToldApart) {
  const std::vector<std::string> ids = {
      "a",    std::string("a\0", 2), std::string("a\0b", 3), std::string("a\0c", 3), "\xff",
      "\xfe", "\xef\xbf\xbd"};
  Inbox inbox(*database_);
  const Work work = []() -> Result<std::string> { return std::string(); };
  for (const Taking expected : {Taking::kFresh, Taking::kDuplicate}) {
    for (const std::string& id : ids) {
      EXPECT_EQ(inbox.handle("s", Message{id, ""}, work)->taking, expected);
    }
  }
  ASSERT_TRUE(database_->with_transaction([&]() -> Status {
    for (const std::string& id : ids) {
      HAPAX_CHECK(Outbox(*database_).publish(Event{.id = id, .type = "t", .key = id}));
    }
    return Ok{};
  }));
  enum Column { kId, kKey, kColumns };
  const auto rows = *app_.ask("SELECT id, key FROM hapax_outbox ORDER BY seq", {});
  ASSERT_EQ(rows.size(), ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(rows[i][kId].bytes, ids[i]);
    EXPECT_EQ(rows[i][kKey].bytes, ids[i]);
    EXPECT_EQ(rows[i][kKey].kind, Value::Kind::kText);
  }
}

// SQLite's JSON ends a string at a NUL byte: what would arrive is not what was published.
TEST_F(SqliteTables, AHeaderWithANulByteIsRefusedAndNotCut) {
  using Headers = std::vector<std::pair<std::string, std::string>>;
  const std::string cut("a\0b", 3);
  const std::pair<Headers, std::string> bad[] = {
      {{{"trace", "1"}, {"span", cut}}, "the value of the header 'span' of the event 'e-2'"},
      {{{cut, "1"}}, "the name of the header 'a' of the event 'e-2'"}};
  for (const auto& [headers, told] : bad) {
    const std::vector<Event> events = {{.id = "e-1", .type = "t"},
                                       {.id = "e-2", .type = "t", .headers = headers}};
    ASSERT_TRUE(database_->with_transaction([&]() -> Status {
      const auto published = Outbox(*database_).publish(events);
      EXPECT_FALSE(published);
      EXPECT_EQ(published.error().code, Errc::kInvalidArgument);
      EXPECT_THAT(published.error().detail, HasSubstr(told + " has a NUL byte"));
      return Ok{};
    }));
  }
  EXPECT_EQ(number("SELECT count(*) FROM hapax_outbox"), 0);
}

// There all bytes that are not UTF-8 are one character, so ids would not be told apart.
TEST_F(SqliteTables, AFileOfUtf16IsReadAndRefused) {
  const std::string path = folder_.text() + "/utf16.db";
  Connection other = *Connection::open(path);
  ASSERT_TRUE(other.run("PRAGMA encoding = 'UTF-16'; CREATE TABLE mine (x TEXT)"));
  EXPECT_EQ(other.ask("SELECT 'grün' || char(0) || ?1", {Value::text("\xf0\x9f\x8d\xb5")})
                ->at(0)[kOnly]
                .bytes,
            std::string("grün\0\xf0\x9f\x8d\xb5", 10));
  for (const bool dry_run : {true, false}) {
    const auto made = migrate(other, {.dry_run = dry_run});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, Errc::kPreconditionFailed);
    EXPECT_THAT(made.error().detail, HasSubstr("the encoding of the file is UTF-16le"));
  }
  EXPECT_EQ(other.ask("SELECT name FROM sqlite_schema", {})->size(), 1U);
  // Whoever runs the script there is told when the tables are used.
  ASSERT_TRUE(other.run(script({})));
  const auto opened = on_sqlite(other.raw());
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().detail, HasSubstr("UTF-16le"));
  tables::Findings findings;
  check_file({.path = path}, findings);
  EXPECT_TRUE(std::any_of(findings.all().begin(), findings.all().end(), [](const auto& each) {
    return each.check == "encoding" && each.severity == tables::Severity::kCritical;
  }));
}

}  // namespace
}  // namespace hapax::sqlite
