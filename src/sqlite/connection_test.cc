// One connection to a database in memory.
#include "sqlite/connection.h"

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace hapax::sqlite {
namespace {

Connection open_memory() { return *Connection::open(":memory:"); }

Value echoed(Connection& connection, const Value& value) {
  const auto rows = connection.ask("SELECT ?1", {value});
  return rows && rows->size() == 1 ? rows->front()[tables::kOnly] : Value::text("no row");
}

TEST(SqliteConnection, ValuesComeBackAsTheyWere) {
  Connection connection = open_memory();
  for (const std::int64_t number :
       {std::int64_t{0}, std::int64_t{-1}, std::numeric_limits<std::int64_t>::min(),
        std::numeric_limits<std::int64_t>::max()}) {
    const Value back = echoed(connection, Value::of(number));
    EXPECT_EQ(back.kind, Value::Kind::kNumber);
    EXPECT_EQ(back.number, number);
  }
  const std::string_view with_nul("a\0b", 3);
  for (const Value& value :
       {Value::text(with_nul), Value::blob(with_nul), Value::text("ä"), Value::blob("\xff")}) {
    const Value back = echoed(connection, value);
    EXPECT_EQ(back.kind, value.kind);
    EXPECT_EQ(back.bytes, value.bytes);
  }
}

TEST(SqliteConnection, AnEmptyValueIsNotNull) {
  Connection connection = open_memory();
  EXPECT_EQ(echoed(connection, Value::text("")).kind, Value::Kind::kText);
  EXPECT_EQ(echoed(connection, Value::blob("")).kind, Value::Kind::kBlob);
  EXPECT_TRUE(echoed(connection, Value::null()).is_null());
  EXPECT_TRUE(echoed(connection, Value::text_or_null("")).is_null());
  EXPECT_TRUE(echoed(connection, Value::blob_or_null("")).is_null());
}

TEST(SqliteConnection, AValueIsGoneWithItsCall) {
  Connection connection = open_memory();
  EXPECT_FALSE(echoed(connection, Value::text("first")).is_null());
  const auto without = connection.ask("SELECT ?1", {});
  ASSERT_TRUE(without);
  EXPECT_TRUE(without->front()[tables::kOnly].is_null());
}

// The values of a call that fails point to what the caller frees.
TEST(SqliteConnection, AValueIsGoneWithACallThatFails) {
  Connection connection = open_memory();
  const auto failed = connection.ask("SELECT ?1", {Value::text("first"), Value::text("second")});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Errc::kInvalidArgument);
  const auto without = connection.ask("SELECT ?1", {});
  ASSERT_TRUE(without);
  EXPECT_TRUE(without->front()[tables::kOnly].is_null());
}

// The connection may be the application's, and so are its settings.
TEST(SqliteConnection, ColumnsAreKnownByTheirNamesWhateverTheApplicationSet) {
  enum Column { kLeaseUntil, kColumns };
  Connection connection = open_memory();
  ASSERT_TRUE(
      connection.run("PRAGMA short_column_names = 0; PRAGMA full_column_names = 1;"
                     "CREATE TABLE t (lease_until); INSERT INTO t VALUES (7)"));
  const auto rows = connection.ask("SELECT lease_until FROM t", {});
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->front()[kLeaseUntil].number, 7);
}

TEST(SqliteConnection, StatementsRunUntilOneFails) {
  Connection connection = open_memory();
  EXPECT_TRUE(connection.run(""));
  EXPECT_TRUE(connection.run(" -- nothing\n"));
  const Status status = connection.run(
      "CREATE TABLE t (x UNIQUE); INSERT INTO t VALUES (1); INSERT INTO t VALUES (1);"
      "INSERT INTO t VALUES (2)");
  EXPECT_FALSE(status);
  const auto rows = connection.ask("SELECT count(*) FROM t", {});
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->front()[tables::kOnly].number, 1);
}

TEST(SqliteConnection, ATriggerOfOursTellsItsNumber) {
  Connection connection = open_memory();
  ASSERT_TRUE(
      connection.run("CREATE TABLE t (x); CREATE TRIGGER ours BEFORE INSERT ON t BEGIN"
                     " SELECT RAISE(ABORT, 'HX1002: the key is too long'); END;"
                     "CREATE TABLE u (x); CREATE TRIGGER theirs BEFORE INSERT ON u BEGIN"
                     " SELECT RAISE(ABORT, 'HX9999: not a number of ours'); END;"));
  const Status ours = connection.run("INSERT INTO t VALUES (1)");
  ASSERT_FALSE(ours);
  EXPECT_EQ(ours.error().code, Errc::kLimitExceeded);
  EXPECT_EQ(ours.error().text().find("HX1002", 1), std::string::npos) << "it is told once";
  const Status theirs = connection.run("INSERT INTO u VALUES (1)");
  ASSERT_FALSE(theirs);
  EXPECT_EQ(theirs.error().code, Errc::kInvalidArgument);
  EXPECT_NE(theirs.error().detail.find("HX9999"), std::string::npos);
}

TEST(SqliteConnection, ChangesAndTransactionsAreThoseOfTheFile) {
  Connection connection = open_memory();
  ASSERT_TRUE(connection.run("CREATE TABLE t (x); INSERT INTO t VALUES (1), (2), (3)"));
  EXPECT_FALSE(connection.in_transaction());
  ASSERT_TRUE(connection.run("BEGIN"));
  EXPECT_TRUE(connection.in_transaction());
  ASSERT_TRUE(connection.ask("DELETE FROM t WHERE x > ?1", {Value::of(1)}));
  EXPECT_EQ(connection.changes(), 2U);
  ASSERT_TRUE(connection.run("ROLLBACK"));
  EXPECT_FALSE(connection.in_transaction());
}

TEST(SqliteConnection, AMissingFileIsNotMadeUnlessAskedTo) {
  const std::string path = testing::TempDir() + "hapax-there-is-no-such-folder/x.db";
  for (const Opening opening : {Opening::kReadOnly, Opening::kWrite, Opening::kCreate}) {
    const auto opened = Connection::open(path, opening);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, Errc::kNotFound);
  }
}

}  // namespace
}  // namespace hapax::sqlite
