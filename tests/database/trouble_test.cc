// What can go wrong with a database, and what is said then: nothing is lost, nothing half done.
#include <thread>

#include <hapax/hapax.h>
#include <hapax/postgres_store.h>
#include <hapax/uuid.h>

#include "application.h"
#include "base/format.h"
#include "postgres/outbox_source.h"

namespace hapax::application {
namespace {

using testing::HasSubstr;
using testing_postgres::Cluster;

class PostgresTest : public testing::Test {
 protected:
  std::string address_ = prepare_postgres("");
  OnPostgres app_{address_};
  Outbox outbox_{app_.database()};
};

// O1: a row with a number below one that a snapshot sees had its transaction's id before the
// snapshot was made, so the snapshot knows that transaction as running.
TEST_F(PostgresTest, a_row_that_commits_late_is_known_to_earlier_snapshots_as_running) {
  OnPostgres early(address_);
  OnPostgres late(address_);
  ASSERT_TRUE(late.run("BEGIN; SELECT hapax.publish('t', 'late')"));
  ASSERT_TRUE(early.run("SELECT hapax.publish('t', 'early')"));
  ASSERT_TRUE(
      app_.run("CREATE TABLE seen AS SELECT pg_current_snapshot() AS s, "
               "(SELECT max(seq) FROM hapax.outbox) AS pos"));
  EXPECT_EQ(app_.number("SELECT pos FROM seen"), 2);
  ASSERT_TRUE(late.run("COMMIT"));
  EXPECT_EQ(app_.number("SELECT seq FROM hapax.outbox, seen WHERE seq <= pos AND "
                        "(xid >= pg_snapshot_xmax(s) OR xid IN (SELECT pg_snapshot_xip(s)))"),
            1);
}

TEST_F(PostgresTest, a_connection_lost_at_commit_is_an_unknown_outcome) {
  OnPostgres other(address_);
  const std::int64_t backend = app_.number("SELECT pg_backend_pid()");
  const Status done = app_.database().with_transaction([&]() -> Status {
    HAPAX_CHECK(outbox_.publish({.id = "look-for-me", .type = "t"}));
    return other.run(base::format("SELECT pg_terminate_backend({}, 5000)", backend));
  });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Errc::kOutcomeUnknown) << done.error().text();
  EXPECT_EQ(other.number("SELECT count(*) FROM hapax.outbox"), 0);
}

TEST_F(PostgresTest, a_connection_lost_before_commit_is_unavailable) {
  OnPostgres other(address_);
  const std::int64_t backend = app_.number("SELECT pg_backend_pid()");
  const Status done = app_.database().with_transaction([&]() -> Status {
    HAPAX_CHECK(other.run(base::format("SELECT pg_terminate_backend({}, 5000)", backend)));
    HAPAX_CHECK(outbox_.publish({.type = "t"}));
    return Ok{};
  });
  EXPECT_EQ(done.error().code, Errc::kUnavailable) << done.error().text();
}

TEST_F(PostgresTest, a_deadlock_says_run_it_again) {
  OnPostgres other(address_);
  Outbox theirs(other.database());
  ASSERT_TRUE(app_.run("BEGIN"));
  ASSERT_TRUE(other.run("BEGIN"));
  ASSERT_TRUE(outbox_.publish({.type = "t", .key = "a"}));
  ASSERT_TRUE(theirs.publish({.type = "t", .key = "b"}));
  Result<std::string> one = std::string();
  std::thread waits([&] { one = outbox_.publish({.type = "t", .key = "b"}); });
  const Result<std::string> two = theirs.publish({.type = "t", .key = "a"});
  waits.join();
  const Error& error = one ? two.error() : one.error();
  EXPECT_EQ(error.code, Errc::kLocked);
  EXPECT_EQ(retry_of(error.code), Retry::kLater);
  EXPECT_THAT(error.detail, HasSubstr("[40P01]; the transaction is undone: run it again"));
}

// O2: locks of keys are few enough for the server's table of locks …
TEST_F(PostgresTest, a_transaction_with_very_many_keys_leaves_room_for_others) {
  ASSERT_TRUE(app_.run("BEGIN"));
  ASSERT_TRUE(
      app_.run("SELECT count(hapax.publish('t', '', 'k' || i)) FROM generate_series(1, 40000) i"));
  OnPostgres other(address_);
  EXPECT_GT(other.number("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"), 4'000);
  EXPECT_TRUE(other.run("SELECT hapax.publish('t', '')"));
  EXPECT_TRUE(other.run("SELECT hapax.forget_expired(), hapax.relay_clean()"));
  EXPECT_TRUE(
      other.run("BEGIN; CREATE TABLE more (a int PRIMARY KEY) PARTITION BY LIST (a); "
                "DO $$ BEGIN FOR i IN 1..100 LOOP EXECUTE format('CREATE TABLE more_%s "
                "PARTITION OF more FOR VALUES IN (%s)', i, i); END LOOP; END $$; ROLLBACK"));
}

// … and many enough for transactions with other keys, of which some meet all the same.
TEST_F(PostgresTest, unrelated_keys_seldom_wait_for_each_other) {
  ASSERT_TRUE(app_.run("BEGIN"));
  ASSERT_TRUE(
      app_.run("SELECT count(hapax.publish('t', '', 'a' || i)) FROM generate_series(1, 300) i"));
  OnPostgres other(address_);
  ASSERT_TRUE(other.run(R"(
    CREATE FUNCTION pg_temp.waits(key text) RETURNS boolean LANGUAGE plpgsql AS $$
    BEGIN
      PERFORM hapax.publish('t', '', key);
      RETURN false;
    EXCEPTION WHEN lock_not_available THEN
      RETURN true;
    END $$;
    SET lock_timeout = '1ms')"));
  EXPECT_LT(other.number("SELECT count(*) FROM generate_series(1, 1000) i "
                         "WHERE pg_temp.waits('b' || i)"),
            100);
}

// A sleeping relay is notified, which cannot be prepared; whoever prepares can do without.
TEST_F(PostgresTest, a_transaction_that_publishes_can_be_prepared) {
  const std::string statements[] = {
      "SELECT hapax.publish('t', 'x')",
      "SELECT hapax.publish_all('{t}', '{x}', '{k}', '{i}', '{NULL}', '{NULL}', '{NULL}')",
      "INSERT INTO hapax.outbox (xid, lane, id, type, key, payload) VALUES "
      "(hapax.outbox_xid('k'), hapax.outbox_lane('k', 'i'), 'i', 't', 'k', 'x')",
  };
  ASSERT_TRUE(app_.run("SELECT hapax.relay_announce(60000)"));
  for (const std::string& sql : statements) {
    ASSERT_TRUE(app_.run("BEGIN"));
    ASSERT_TRUE(app_.run(sql));
    const Status refused = app_.run("PREPARE TRANSACTION 'p'");
    ASSERT_FALSE(refused) << sql;
    EXPECT_THAT(refused.error().detail, HasSubstr("NOTIFY"));
    ASSERT_TRUE(app_.run("BEGIN"));
    ASSERT_TRUE(app_.run("SET LOCAL hapax.notify = off"));
    ASSERT_TRUE(app_.run(sql));
    const Status prepared = app_.run("PREPARE TRANSACTION 'p'");
    ASSERT_TRUE(prepared) << sql << ": " << prepared.error().text();
    ASSERT_TRUE(app_.run("COMMIT PREPARED 'p'"));
  }
  EXPECT_EQ(app_.number("SELECT count(*) FROM hapax.outbox"), 3);
}

TEST_F(PostgresTest, a_failed_transaction_does_not_commit) {
  const Status done = app_.database().with_transaction([&]() -> Status {
    HAPAX_CHECK(outbox_.publish({.type = "t"}));
    ignore(app_.run("SELECT 1 / 0"), "the application does not look");
    return Ok{};
  });
  EXPECT_EQ(done.error().code, Errc::kPreconditionFailed) << done.error().text();
  EXPECT_EQ(app_.number("SELECT count(*) FROM hapax.outbox"), 0);
}

TEST_F(PostgresTest, missing_rights_are_named) {
  ASSERT_TRUE(
      app_.run("CREATE ROLE writer; GRANT USAGE ON SCHEMA hapax TO writer;"
               "GRANT SELECT ON hapax.migrations TO writer; SET ROLE writer"));
  const Status done = app_.database().with_transaction([&]() -> Status {
    HAPAX_CHECK(outbox_.publish({.type = "t"}));
    return Ok{};
  });
  EXPECT_EQ(done.error().code, Errc::kForbidden);
  EXPECT_THAT(done.error().detail, HasSubstr("permission denied for"));
}

// What a role needs that publishes, accepts and claims; the guide has these lines.
TEST_F(PostgresTest, the_rights_of_the_guide_are_enough) {
  ASSERT_TRUE(
      app_.run("CREATE ROLE shop; GRANT USAGE ON SCHEMA hapax TO shop;"
               "GRANT SELECT ON hapax.migrations TO shop;"
               "GRANT INSERT, SELECT ON hapax.outbox TO shop;"
               "GRANT SELECT, INSERT, UPDATE, DELETE ON hapax.inbox, hapax.claims TO shop;"
               "GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA hapax TO shop;"
               "SET ROLE shop"));
  const Status done = app_.database().with_transaction([&]() -> Status {
    HAPAX_CHECK(outbox_.publish({.type = "t", .key = "k"}));
    return Ok{};
  });
  EXPECT_TRUE(done) << done.error().text();
  Inbox inbox(app_.database());
  const auto handled = inbox.handle("s", {"m", ""}, [] { return Result<std::string>("done"); });
  EXPECT_TRUE(handled) << handled.error().text();
  as<Claimed>(inbox.begin("s", {"n", ""}, "w"));
  EXPECT_TRUE(inbox.forget_expired());
}

TEST_F(PostgresTest, a_read_only_server_is_named) {
  ASSERT_TRUE(app_.run("SET default_transaction_read_only = on"));
  const Status done = app_.database().with_transaction([&]() -> Status {
    HAPAX_CHECK(outbox_.publish({.type = "t"}));
    return Ok{};
  });
  EXPECT_EQ(done.error().code, Errc::kUnavailable);
  EXPECT_THAT(done.error().detail, HasSubstr("connect to the primary"));
}

// Who is connected goes on; who is not is told why, and gets through as soon as there is room.
TEST_F(PostgresTest, a_server_without_free_connections_is_named) {
  const auto store = open_postgres(address_, {.patience = std::chrono::milliseconds{100}}).value();
  const auto append = [&](std::string_view id) -> Status {
    const std::vector<Op> ops{Append{.stream = "s", .payload = "p", .id = id}};
    HAPAX_CHECK(store->commit({.ops = ops}));
    return Ok{};
  };
  ASSERT_TRUE(store->commit({.ops = std::vector<Op>{CreateStream{"s", {}}}}));
  std::vector<postgres::Connection> all;
  const auto take_all = [&] {
    for (;;) {
      auto more = postgres::Connection::open(address_);
      if (!more) return more.error();
      all.push_back(*std::move(more));
    }
  };
  const auto is_named = [](const Error& error) {
    EXPECT_EQ(error.code, Errc::kUnavailable);
    EXPECT_THAT(error.detail, HasSubstr("all connections are in use: use fewer or raise max_conn"));
  };
  is_named(take_all());
  is_named(open_postgres(address_).error());
  is_named(postgres::OutboxSource::open({.uri = address_}).error());
  std::uint64_t last = 1;
  Status told = append("1");
  EXPECT_TRUE(told);
  while (told) {  // The store may have found the free connection before it was taken.
    ASSERT_TRUE(
        app_.run("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE "
                 "application_name = 'hapax store log' AND datname = current_database()"));
    is_named(take_all());
    told = append(std::to_string(++last));
  }
  // What was sent over the connection that is gone may have happened, for all that is known.
  EXPECT_THAT(told.error().detail, HasSubstr("max_connections"));
  all.clear();
  while (!append(std::to_string(last))) std::this_thread::yield();
  EXPECT_EQ(store->describe("s")->last, Sequence{last});
}

TEST_F(PostgresTest, states_become_codes) {
  EXPECT_EQ(postgres::code_of("53100"), Errc::kNoSpace);
  EXPECT_EQ(postgres::code_of("53300"), Errc::kUnavailable);
  EXPECT_EQ(postgres::code_of("40001"), Errc::kLocked);
  EXPECT_EQ(postgres::code_of("HX002"), Errc::kLimitExceeded);
  EXPECT_EQ(postgres::code_of("HX999"), Errc::kUnavailable);
  EXPECT_EQ(postgres::Connection::open(Cluster::instance().uri("none")).error().code,
            Errc::kNotFound);
  EXPECT_EQ(postgres::Connection::open("host=/nowhere").error().code, Errc::kUnavailable);
}

TEST_F(PostgresTest, a_password_that_cannot_be_read_is_not_shown) {
  const Error error = postgres::Connection::open("postgres://u:se%zzcret@h/db").error();
  EXPECT_EQ(error.code, Errc::kInvalidArgument);
  EXPECT_THAT(error.text(), testing::Not(HasSubstr("cret")));
}

TEST_F(PostgresTest, notifies_only_who_waits) {
  auto listener = *postgres::Connection::open(address_);
  ASSERT_TRUE(listener.run("LISTEN hapax_outbox"));
  ASSERT_TRUE(app_.run("SELECT hapax.publish('t', 'x')"));
  EXPECT_EQ(*listener.wait_notified(std::chrono::milliseconds{0}), postgres::Notified::kNothing);
  ASSERT_TRUE(
      app_.run("SELECT setval('hapax.outbox_listening', "
               "extract(epoch FROM now())::bigint + 60)"));
  ASSERT_TRUE(app_.run("SELECT hapax.publish('t', 'x')"));
  EXPECT_EQ(*listener.wait_notified(std::chrono::seconds{30}), postgres::Notified::kChannel);
}

TEST_F(PostgresTest, a_text_with_a_nul_byte_is_refused_and_not_cut) {
  OnPostgres prepared(address_, {.prepared = true});
  const std::string id("a\0b", 3);
  for (Process* process : {static_cast<Process*>(&app_), static_cast<Process*>(&prepared)}) {
    const Status done = process->database().with_transaction([&]() -> Status {
      HAPAX_CHECK(Outbox(process->database()).publish(Event{.id = id, .type = "t"}));
      return Ok{};
    });
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, Errc::kInvalidArgument);
    EXPECT_THAT(done.error().detail, HasSubstr("NUL byte behind 'a'"));
  }
  EXPECT_EQ(app_.number("SELECT count(*) FROM hapax.outbox"), 0);
}

// The connection is the application's, which may have set what it likes.
TEST_F(PostgresTest, a_session_that_converts_texts_is_refused) {
  for (const bool prepared : {false, true}) {
    OnPostgres app(address_, {.prepared = prepared});
    Inbox inbox(app.database());
    const auto handle = [&] {
      return inbox.handle("s", {"caf\xc3\xa9", ""}, [] { return Result<std::string>(""); });
    };
    const auto publish = [&] {
      return app.database().with_transaction([&]() -> Status {
        HAPAX_CHECK(Outbox(app.database()).publish({.type = "t"}));
        return Ok{};
      });
    };
    ASSERT_TRUE(handle());
    ASSERT_TRUE(publish());
    ASSERT_TRUE(app.run("SET client_encoding TO 'LATIN1'"));
    for (const Error& error : {handle().error(), publish().error()}) {
      EXPECT_EQ(error.code, Errc::kPreconditionFailed);
      EXPECT_THAT(error.detail, HasSubstr("is LATIN1"));
      EXPECT_THAT(error.detail, HasSubstr("SET client_encoding TO 'UTF8'"));
    }
    ASSERT_TRUE(app.run("SET client_encoding TO 'SQL_ASCII'"));  // Which converts nothing.
    EXPECT_EQ(handle()->taking, Taking::kDuplicate);
    EXPECT_TRUE(publish());
  }
  auto connection = *postgres::Connection::open(address_);
  ASSERT_TRUE(connection.run("SET client_encoding TO 'LATIN1'"));
  EXPECT_EQ(on_postgres(connection.raw()).error().code, Errc::kPreconditionFailed);
  EXPECT_EQ(app_.number("SELECT count(*) FROM hapax.inbox"), 1);
}

TEST_F(PostgresTest, outcomes_are_the_same_bytes_however_the_session_writes_them) {
  const std::string outcome("a\\x41\0'\xff\\", 9);
  Inbox inbox(app_.database());
  for (const char* const written : {"hex", "escape", "hex"}) {
    ASSERT_TRUE(app_.run(std::string("SET bytea_output TO '") + written + "'"));
    const auto handled = inbox.handle("s", {"m", "content"}, [&] { return Result(outcome); });
    ASSERT_TRUE(handled) << handled.error().text();
    EXPECT_EQ(handled->outcome, outcome) << written;
  }
  ASSERT_TRUE(app_.run("SET bytea_output TO 'escape'"));
  const Fence fence = as<Claimed>(inbox.begin("s", {"n", "content"}, "w")).fence;
  as<Done>(inbox.finish("s", {"n", "content"}, fence, [&] { return Result(outcome); }));
  EXPECT_EQ(as<DuplicateClaim>(inbox.begin("s", {"n", "content"}, "w")).result->body, outcome);
}

// One event, by a process whose session keeps the statement.
class PreparedTest : public PostgresTest {
 protected:
  Status publish() {
    return prepared_.database().with_transaction([this]() -> Status {
      HAPAX_CHECK(Outbox(prepared_.database()).publish(Event{.type = "t"}));
      return Ok{};
    });
  }
  OnPostgres prepared_{address_, {.prepared = true}};
};

TEST_F(PreparedTest, an_event_notifies_only_who_waits) {
  auto listener = *postgres::Connection::open(address_);
  ASSERT_TRUE(listener.run("LISTEN hapax_outbox"));
  ASSERT_TRUE(publish());
  EXPECT_EQ(*listener.wait_notified(std::chrono::milliseconds{0}), postgres::Notified::kNothing);
  ASSERT_TRUE(app_.run("SELECT hapax.relay_announce(60000)"));
  ASSERT_TRUE(publish());
  EXPECT_EQ(*listener.wait_notified(std::chrono::seconds{30}), postgres::Notified::kChannel);
}

TEST_F(PreparedTest, a_statement_that_is_discarded_is_prepared_again) {
  ASSERT_TRUE(publish());
  ASSERT_TRUE(prepared_.run("DEALLOCATE ALL"));
  const Status lost = publish();
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, Errc::kLocked);
  EXPECT_THAT(lost.error().detail, HasSubstr("PostgresOptions::prepared"));
  ASSERT_TRUE(publish());
  EXPECT_EQ(app_.number("SELECT count(*) FROM hapax.outbox"), 2);
}

// A Database is made anew where a pool of the application hands out its connection again.
TEST_F(PreparedTest, a_second_database_on_the_connection_finds_the_statement) {
  auto connection = *postgres::Connection::open(address_);
  const auto publish_on = [](Database& database) {
    return database.with_transaction([&]() -> Status {
      HAPAX_CHECK(Outbox(database).publish(Event{.type = "t"}));
      return Ok{};
    });
  };
  const auto first = *on_postgres(connection.raw(), {.prepared = true});
  const auto second = *on_postgres(connection.raw(), {.prepared = true});
  for (Database* each : {first.get(), second.get(), first.get()}) {
    const Status done = publish_on(*each);
    EXPECT_TRUE(done) << done.error().text();
  }
  EXPECT_EQ(app_.number("SELECT count(*) FROM hapax.outbox"), 3);
}

TEST_F(PostgresTest, ids_are_the_same_in_sql) {
  const Uuid space = uuid_of({}, "tests");
  auto connection = *postgres::Connection::open(address_);
  enum Column { kNamed, kVersion, kColumns };
  const auto rows =
      connection.run("SELECT hapax.uuid_of('" + space.text() + "', 'näme') AS named, " +
                     "substr(hapax.uuid7()::text, 15, 1) AS version");
  ASSERT_TRUE(rows) << rows.error().text();
  EXPECT_EQ(rows->at(0, kNamed), uuid_of(space, "näme").text());
  EXPECT_EQ(rows->at(0, kVersion), "7");
  EXPECT_EQ(uuid_of(space, "x").text()[14], '8');
}

TEST(Uuid, of_version_7_grow) {
  std::string before;
  for (int i = 0; i < 10'000; ++i) {
    const std::string now = uuid7().text();
    ASSERT_LT(before, now);
    ASSERT_EQ(now[14], '7');
    before = now;
  }
}

class SqliteTest : public testing::Test {
 protected:
  const host::TemporaryFolder folder_;
  const std::string path_ = prepare_sqlite(folder_.text());
};

TEST_F(SqliteTest, another_writer_is_waited_for_with_a_bound) {
  OnSqlite holder(path_);
  OnSqlite app(path_);
  ASSERT_TRUE(holder.run("BEGIN IMMEDIATE"));
  const auto began = std::chrono::steady_clock::now();
  const Status done = app.database().with_transaction([]() -> Status { return Ok{}; });
  EXPECT_EQ(done.error().code, Errc::kLocked) << done.error().text();
  EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::milliseconds{200});
  ASSERT_TRUE(holder.run("COMMIT"));
  EXPECT_TRUE(app.database().with_transaction([]() -> Status { return Ok{}; }));
}

// The first statement of a connection reads the schema when it is compiled, which a process that
// recovers the file, or has it to itself, does not let it.
TEST_F(SqliteTest, a_file_that_another_has_to_itself_is_waited_for_from_the_first_statement_on) {
  OnSqlite holder(path_);
  ASSERT_TRUE(holder.run("PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE"));
  constexpr std::chrono::milliseconds kPatience{100};
  const auto is_waited_for = [&](const std::function<Errc(sqlite::Connection&)>& first) {
    auto connection = *sqlite::Connection::open(path_);
    connection.set_patience(kPatience);
    const auto began = std::chrono::steady_clock::now();
    EXPECT_EQ(first(connection), Errc::kLocked);
    EXPECT_GE(std::chrono::steady_clock::now() - began, kPatience);
  };
  const std::string sql = "SELECT count(*) FROM hapax_outbox";
  is_waited_for([&](sqlite::Connection& connection) { return connection.run(sql).error().code; });
  is_waited_for(
      [&](sqlite::Connection& connection) { return connection.ask(sql, {}).error().code; });
}

TEST_F(SqliteTest, a_transaction_that_began_as_a_reader_is_told_how_to_begin) {
  OnSqlite writer(path_);
  OnSqlite app(path_);
  Outbox outbox(app.database());
  ASSERT_TRUE(app.run("BEGIN"));
  EXPECT_EQ(app.number("SELECT count(*) FROM hapax_outbox"), 0);
  ASSERT_TRUE(writer.run("INSERT INTO hapax_outbox (id, type, payload) VALUES ('1', 't', 'x')"));
  const auto refused = outbox.publish({.type = "t"});
  EXPECT_EQ(refused.error().code, Errc::kLocked);
  EXPECT_THAT(refused.error().detail, HasSubstr("BEGIN IMMEDIATE"));
}

TEST_F(SqliteTest, a_file_that_cannot_be_written_is_named) {
  OnSqlite app(path_);
  ASSERT_TRUE(app.run("PRAGMA query_only = on"));
  Outbox outbox(app.database());
  ASSERT_TRUE(app.run("BEGIN"));
  EXPECT_EQ(outbox.publish({.type = "t"}).error().code, Errc::kForbidden);
  EXPECT_EQ(sqlite::Connection::open(folder_.text() + "/no/such.db").error().code, Errc::kNotFound);
}

TEST_F(SqliteTest, a_full_disk_stores_nothing) {
  OnSqlite app(path_);
  ASSERT_GT(app.number("PRAGMA max_page_count = 20"), 0);
  Outbox outbox(app.database());
  const Status done = app.database().with_transaction([&]() -> Status {
    HAPAX_CHECK(outbox.publish({.type = "t", .payload = std::string(1 << 20, 'x')}));
    return Ok{};
  });
  EXPECT_EQ(done.error().code, Errc::kNoSpace) << done.error().text();
  EXPECT_FALSE(app.database().in_transaction());
  EXPECT_EQ(app.number("SELECT count(*) FROM hapax_outbox"), 0);
}

}  // namespace
}  // namespace hapax::application
