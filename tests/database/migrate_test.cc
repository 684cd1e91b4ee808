// How tables are made and made newer, in PostgreSQL and SQLite.
#include "postgres/migrate.h"

#include <filesystem>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../postgres/cluster.h"
#include "base/format.h"
#include "sqlite/migrate.h"
#include "tables/migration.h"

namespace hapax {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_postgres::Cluster;

constexpr tables::Migration kOne{1, "one", "first"};
constexpr tables::Migration kTwo{2, "two", "second"};

TEST(Migration, what_is_not_applied_is_pending) {
  const tables::Migration known[] = {kOne, kTwo};
  const tables::Applied applied[] = {{1, "one", tables::checksum_of(kOne)}};
  const auto left = tables::pending(known, applied);
  ASSERT_TRUE(left);
  ASSERT_EQ(left->size(), 1u);
  EXPECT_EQ(left->front().version, 2u);
}

TEST(Migration, an_altered_or_a_newer_one_is_refused) {
  const tables::Migration known[] = {kOne};
  const tables::Applied altered[] = {{1, "one", "0123"}};
  EXPECT_THAT(tables::pending(known, altered).error().text(),
              HasSubstr("HX1022 format_version: migration 1 (one) was applied with checksum 0123"));
  const tables::Applied newer[] = {{1, "one", tables::checksum_of(kOne)}, {7, "seven", "x"}};
  EXPECT_THAT(tables::pending(known, newer).error().detail,
              HasSubstr("have migration 7 (seven), this program knows them up to 1"));
  // A program that is not upgraded yet goes on.
  EXPECT_TRUE(tables::check_present(known, newer, 1, "x"));
}

TEST(Migration, names_that_would_be_sql_are_refused) {
  EXPECT_TRUE(tables::check_name("schema", "my_hapax2"));
  for (const char* name : {"", "2x", "a\"b", "a b", "A", "a'; drop table x; --"}) {
    EXPECT_FALSE(tables::check_name("schema", name)) << name;
  }
}

TEST(PostgresMigrate, is_idempotent_and_says_what_it_did) {
  auto connection = *postgres::Connection::open(Cluster::instance().make_database());
  const auto dry = postgres::migrate(connection, {.dry_run = true});
  ASSERT_TRUE(dry) << dry.error().text();
  EXPECT_EQ(dry->steps.front(), "1 outbox_inbox");
  EXPECT_EQ(postgres::check_version(connection, "hapax", 1).error().code, Errc::kFormatVersion);

  const auto first = postgres::migrate(connection, {});
  ASSERT_TRUE(first) << first.error().text();
  EXPECT_EQ(first->before, 0u);
  const auto second = postgres::migrate(connection, {});
  ASSERT_TRUE(second) << second.error().text();
  EXPECT_THAT(second->steps, ElementsAre());
  EXPECT_EQ(second->before, first->after);
  EXPECT_TRUE(postgres::check_version(connection, "hapax", 1));
}

TEST(PostgresMigrate, several_schemas_live_side_by_side) {
  auto connection = *postgres::Connection::open(Cluster::instance().make_database());
  ASSERT_TRUE(postgres::migrate(connection, {.schema = "one"}));
  ASSERT_TRUE(postgres::migrate(connection, {.schema = "two"}));
  ASSERT_TRUE(connection.run("SELECT one.publish('t', 'x')"));
  enum Column { kInOne, kInTwo, kColumns };
  const auto rows = connection.run(
      "SELECT (SELECT count(*) FROM one.outbox) AS in_one, (SELECT count(*) FROM two.outbox) AS "
      "in_two");
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->number(0, kInOne), 1);
  EXPECT_EQ(rows->number(0, kInTwo), 0);
}

// Each step is done by one of them, not all by the same.
TEST(PostgresMigrate, concurrent_runs_do_each_step_once) {
  const std::string uri = Cluster::instance().make_database();
  std::vector<std::thread> threads;
  std::atomic<std::size_t> steps{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      auto connection = *postgres::Connection::open(uri);
      const auto report = postgres::migrate(connection, {});
      ASSERT_TRUE(report) << report.error().text();
      EXPECT_EQ(report->after, postgres::migrations().size());
      steps += report->steps.size();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(steps, postgres::migrations().size());
}

// O5: every partition can be emptied before it is used again, whatever the retention is.
TEST(PostgresMigrate, partitions_rest_for_longer_than_the_retention) {
  using std::chrono::seconds;
  constexpr seconds kLongest = std::chrono::days{800};
  for (seconds retention{1}; retention < kLongest;
       retention += seconds{retention.count() / 5'000 + 1}) {
    const seconds period = postgres::part_period(retention);
    const seconds rests = period * (postgres::kPartitions - 1);
    ASSERT_GE(rests - retention, std::max(period, seconds{120})) << retention.count();
    // Nor is much kept for longer than was asked.
    ASSERT_LE(period,
              std::max<seconds>(retention / 30 + seconds{1} + std::chrono::days{1}, seconds{120}));
    ASSERT_TRUE(period <= std::chrono::days{1} || period % seconds{86'400} == seconds{0});
  }
}

TEST(PostgresMigrate, retention_chooses_the_partition) {
  const std::pair<std::int64_t, std::string> retentions[] = {
      {1, "(date_part('epoch', now()) / 120)::integer"},
      {7'199, "(date_part('epoch', now()) / 240)::integer"},
      {30 * 86'399, "(date_part('epoch', now()) / 86399)::integer"},
      {30 * 86'400, "current_date - date '1970-01-01'"},
      {30 * 86'400 + 1, "(current_date - date '1970-01-01') / 2"},
      {70 * 86'400, "(current_date - date '1970-01-01') / 3"}};
  auto connection = *postgres::Connection::open(Cluster::instance().make_database());
  for (const auto& [retention, part] : retentions) {
    ASSERT_TRUE(postgres::migrate(connection, {.retention = std::chrono::seconds{retention}}));
    enum Column { kRetention, kPart, kColumns };
    const auto rows =
        connection.run(base::format("SELECT hapax.outbox_retention() = interval '{} s' AS "
                                    "retention, hapax.outbox_part() = ({}) % 32 AS part",
                                    retention, part));
    ASSERT_TRUE(rows) << rows.error().text();
    EXPECT_TRUE(rows->is_true(0, kRetention)) << retention;
    EXPECT_TRUE(rows->is_true(0, kPart)) << retention;
  }
}

// The text of outbox_part() was written by an earlier migration, for another retention.
TEST(PostgresMigrate, a_retention_survives_later_migrations) {
  for (const std::int64_t retention : {1LL, 7'199LL, 30 * 86'400LL, 30 * 86'400LL + 1}) {
    const std::string uri = Cluster::instance().make_database();
    auto connection = *postgres::Connection::open(uri);
    const std::chrono::seconds span{retention};
    const auto old = postgres::migrations().first(2);
    ASSERT_TRUE(postgres::migrate(connection, {.retention = span, .known = old}));
    ASSERT_TRUE(postgres::migrate(connection, {}));
    enum Column { kRetention, kPart, kColumns };
    const auto kept = connection.run(
        "SELECT extract(epoch FROM hapax.outbox_retention())::bigint AS retention, "
        "(SELECT trim(prosrc) FROM pg_proc WHERE proname = 'outbox_part') AS part");
    ASSERT_TRUE(kept) << kept.error().text();
    EXPECT_EQ(kept->number(0, kRetention), retention);
    ASSERT_TRUE(postgres::migrate(connection, {.retention = span}));
    const auto set = connection.run(
        "SELECT trim(prosrc) FROM pg_proc WHERE proname = "
        "'outbox_part'");
    EXPECT_EQ(kept->at(0, kPart), set->at(0, postgres::kOnly));
  }
}

// Comments have characters that such a database does not know.
TEST(PostgresMigrate, a_database_of_another_encoding_is_migrated) {
  std::string uri = Cluster::instance().make_database();
  auto any = *postgres::Connection::open(uri);
  const auto made =
      any.run("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0");
  ASSERT_TRUE(made) << made.error().text();
  const std::size_t name = uri.find("///") + 3;
  uri.replace(name, uri.find('?') - name, "latin");
  auto connection = *postgres::Connection::open(uri);
  const auto report = postgres::migrate(connection, {});
  ASSERT_TRUE(report) << report.error().text();
  const auto rows = connection.run(
      "SELECT hapax.publish('t', 'caf\xc3\xa9', 'k\xc3\xa9'); SELECT payload FROM hapax.outbox");
  ASSERT_TRUE(rows) << rows.error().text();
  EXPECT_EQ(rows->bytes(0, postgres::kOnly), "caf\xc3\xa9");
}

TEST(PostgresMigrate, new_migrations_are_ascii) {
  for (const tables::Migration& one : postgres::migrations().subspan(2)) {
    for (const char c : one.text) ASSERT_GE(c, 0) << one.name;
  }
}

TEST(PostgresMigrate, a_role_without_rights_is_told_which) {
  Cluster& cluster = Cluster::instance();
  std::string uri = cluster.make_database();
  auto owner = *postgres::Connection::open(uri);
  ASSERT_TRUE(owner.run("CREATE ROLE stranger LOGIN"));
  uri.replace(uri.find("user=postgres"), 13, "user=stranger");
  auto stranger = *postgres::Connection::open(uri);
  const auto refused = postgres::migrate(stranger, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kForbidden) << refused.error().text();
}

TEST(PostgresMigrate, another_run_is_waited_for_with_a_bound) {
  const std::string uri = Cluster::instance().make_database();
  auto stuck = *postgres::Connection::open(uri);
  ASSERT_TRUE(stuck.run("SELECT pg_advisory_lock(hashtextextended('hapax migrate hapax', 0))"));
  auto connection = *postgres::Connection::open(uri);
  const auto refused = postgres::migrate(connection, {.patience = std::chrono::milliseconds{50}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kLocked);
  EXPECT_THAT(refused.error().text(), HasSubstr("another migration of schema 'hapax'"));
  EXPECT_FALSE(connection.in_transaction());
  ASSERT_TRUE(stuck.run("SELECT pg_advisory_unlock_all()"));
  EXPECT_TRUE(postgres::migrate(connection, {.patience = std::chrono::seconds{60}}));
}

// A table with many rows, and somebody who writes all the while.
class PostgresUpgrade : public testing::Test {
 protected:
  PostgresUpgrade() {
    EXPECT_TRUE(postgres::migrate(connection_, {.known = postgres::migrations().first(1)}));
    run(connection_,
        "INSERT INTO hapax.outbox (part, xid, lane, id, type, payload) "
        "SELECT hapax.outbox_part(), pg_current_xact_id(), n % 16, n, 't', 'p' "
        "FROM generate_series(1, 20000) AS n");
    run(holder_, "BEGIN; SELECT hapax.publish('t', 'held')");
  }
  static std::int64_t run(postgres::Connection& connection, const std::string& sql) {
    const auto rows = connection.run(sql);
    EXPECT_TRUE(rows) << sql << ": " << rows.error().text();
    return rows && rows->size() > 0 ? rows->number(0, postgres::kOnly) : 0;
  }
  // Changes when a table or an index of the outbox is written anew.
  std::int64_t files() {
    return run(connection_,
               "SELECT sum(hashtext(c.oid || ':' || c.relfilenode)) FROM pg_class AS c WHERE "
               "c.relnamespace = 'hapax'::regnamespace AND c.relispartition");
  }

  const std::string uri_ = Cluster::instance().make_database();
  postgres::Connection connection_ = *postgres::Connection::open(uri_);
  postgres::Connection holder_ = *postgres::Connection::open(uri_);
};

// No step waits for a transaction that writes, so nobody waits behind it.
TEST_F(PostgresUpgrade, needs_no_lock_that_a_writer_holds_and_rewrites_nothing) {
  const std::int64_t before = files();
  const auto report = postgres::migrate(connection_, {});
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_EQ(report->before, 1u);
  EXPECT_EQ(files(), before);
  run(holder_, "COMMIT");
  EXPECT_EQ(run(connection_, "SELECT count(*) FROM hapax.outbox"), 20'001);
}

// A step that cannot do without: it lets go again and again, and writers pass.
TEST_F(PostgresUpgrade, that_must_lock_a_table_lets_writers_pass_while_it_waits) {
  std::vector<tables::Migration> known(postgres::migrations().begin(),
                                       postgres::migrations().end());
  known.push_back({static_cast<std::uint32_t>(known.size() + 1), "later",
                   "ALTER TABLE \"{schema}\".outbox ADD COLUMN later text;\n"});
  auto upgrading = *postgres::Connection::open(uri_);
  std::thread upgrade([&] {
    const auto report = postgres::migrate(upgrading, {.known = known});
    EXPECT_TRUE(report) << report.error().text();
  });
  while (run(connection_,
             "SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = "
             "'AccessExclusiveLock'") == 0) {
    std::this_thread::yield();
  }
  // Behind the waiting one; the transaction that it waits for is still open when this returns.
  run(connection_, "SELECT hapax.publish('t', 'passes')");
  run(holder_, "COMMIT");
  upgrade.join();
  EXPECT_EQ(run(connection_, "SELECT count(*) FROM hapax.outbox WHERE later IS NULL"), 20'002);
}

TEST(SqliteMigrate, is_idempotent_and_says_what_it_did) {
  auto connection = *sqlite::Connection::open(":memory:");
  EXPECT_EQ(sqlite::check_version(connection, "hapax_", 1).error().code, Errc::kFormatVersion);
  const auto dry = sqlite::migrate(connection, {.dry_run = true});
  ASSERT_TRUE(dry);
  EXPECT_EQ(dry->steps.front(), "1 outbox_inbox");
  const auto first = sqlite::migrate(connection, {});
  ASSERT_TRUE(first) << first.error().text();
  const auto second = sqlite::migrate(connection, {});
  ASSERT_TRUE(second) << second.error().text();
  EXPECT_THAT(second->steps, ElementsAre());
  EXPECT_TRUE(sqlite::check_version(connection, "hapax_", 1));
}

// The table of claims is made again, with what it holds.
TEST(SqliteMigrate, claims_survive_later_migrations) {
  auto connection = *sqlite::Connection::open(":memory:");
  ASSERT_TRUE(sqlite::migrate(connection, {.known = sqlite::migrations().first(2)}));
  ASSERT_TRUE(connection.run(
      "INSERT INTO hapax_claims VALUES ('s', 'k', 'completed', 'w', 7, 2, 3, x'01', x'0002', "
      "'why', 4, 5, 6)"));
  ASSERT_TRUE(sqlite::migrate(connection, {}));
  const auto rows = connection.ask(
      "SELECT count(*) FROM hapax_claims WHERE (scope, key, state, owner, fence, attempts, "
      "lease_until, fingerprint, outcome, reason, first_seen, settled_at, expires_at, on_lapse, "
      "lapsed) = ('s', 'k', 'completed', 'w', 7, 2, 3, x'01', x'0002', 'why', 4, 5, 6, "
      "'take_over', 0)",
      {});
  ASSERT_TRUE(rows) << rows.error().text();
  EXPECT_EQ(rows->at(0)[sqlite::kOnly].number, 1);
}

}  // namespace
}  // namespace hapax
