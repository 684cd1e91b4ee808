#include "postgres/migrate.h"

#include <algorithm>
#include <thread>
#include <vector>

namespace hapax::postgres {

namespace {

using database::Applied;
using database::Migration;
using database::MigrationReport;

constexpr std::string_view kLockTimeout = "55P03";
constexpr int kLockTries = 20;  // of a second each, with as much again between them

std::string table_sql(const std::string& schema) {
  return "CREATE SCHEMA IF NOT EXISTS \"" + schema +
         "\";\n"
         "CREATE TABLE IF NOT EXISTS \"" +
         schema +
         "\".migrations (\n"
         "  version integer PRIMARY KEY, name text NOT NULL, checksum text NOT NULL,\n"
         "  applied_at timestamptz NOT NULL DEFAULT clock_timestamp());\n";
}

std::string noted_sql(const std::string& schema, const Migration& migration) {
  return "INSERT INTO \"" + schema + "\".migrations (version, name, checksum) VALUES (" +
         std::to_string(migration.version) + ", '" + std::string(migration.name) + "', '" +
         database::checksum_of(migration) + "');\n";
}

std::string step_sql(const std::string& schema, const Migration& migration) {
  return database::expanded(migration.text, "schema", schema) + noted_sql(schema, migration);
}

std::string retention_sql(const std::string& schema, std::chrono::seconds retention) {
  const auto period = std::max<std::int64_t>(1, retention.count() / 30);
  return "CREATE OR REPLACE FUNCTION \"" + schema +
         "\".outbox_retention() RETURNS interval LANGUAGE sql IMMUTABLE AS\n"
         "  $$ SELECT interval '" +
         std::to_string(retention.count()) +
         " seconds' $$;\n"
         "CREATE OR REPLACE FUNCTION \"" +
         schema +
         "\".outbox_part(\n"
         "  moment double precision DEFAULT date_part('epoch', CURRENT_TIMESTAMP))\n"
         "RETURNS integer LANGUAGE sql IMMUTABLE AS $$ SELECT (moment / " +
         std::to_string(period) + ")::integer % 32 $$;\n";
}

Result<bool> has_table(Connection& connection, const std::string& schema) {
  HAPAX_TRY(const Rows rows,
            connection.ask("SELECT 1 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n "
                           "ON n.oid = c.relnamespace WHERE n.nspname = $1 AND "
                           "c.relname = 'migrations'",
                           Values().text(schema)));
  return rows.size() == 1;
}

}  // namespace

Result<std::vector<Applied>> applied_in(Connection& connection, const std::string& schema) {
  std::vector<Applied> all;
  HAPAX_TRY(const bool exists, has_table(connection, schema));
  if (!exists) return all;
  HAPAX_TRY(const Rows rows, connection.run("SELECT version, name, checksum FROM \"" + schema +
                                            "\".migrations ORDER BY version"));
  for (std::size_t row = 0; row < rows.size(); ++row) {
    all.push_back({static_cast<std::uint32_t>(rows.number(row, 0)), std::string(rows.at(row, 1)),
                   std::string(rows.at(row, 2))});
  }
  return all;
}

namespace {

// Runs SQL in a transaction that gives up a lock it waits for, instead of making others wait behind
// it, and tries again.
Status run_step(Connection& connection, const std::string& sql) {
  for (int tried = 1;; ++tried) {
    HAPAX_CHECK(
        connection.run("BEGIN; SET LOCAL lock_timeout = '1s'; SET LOCAL search_path = ''; "
                       "SET LOCAL client_min_messages = warning"));
    auto done = connection.run(sql);
    if (done) return connection.commit();
    const bool again = connection.sqlstate() == kLockTimeout && tried < kLockTries;
    ignore(connection.run("ROLLBACK"), "the step has failed already");
    if (!again) return std::move(done).error();
    std::this_thread::sleep_for(std::chrono::seconds{1});
  }
}

// A lock of the session, not of a transaction: the steps commit one by one.
Status lock(Connection& connection, const std::string& key, const MigrateOptions& options) {
  HAPAX_CHECK(connection.run("BEGIN; SET LOCAL lock_timeout = " +
                             std::to_string(options.patience.count())));
  const auto locked =
      connection.run("SELECT pg_catalog.pg_advisory_lock(pg_catalog." + key + "); COMMIT");
  if (locked) return Ok{};
  const bool waited = connection.sqlstate() == kLockTimeout;
  ignore(connection.run("ROLLBACK"), "nothing was done");
  if (!waited) return locked.error();
  return Error{Errc::kLocked, "another migration of schema '" + options.schema + "' has run for " +
                                  std::to_string(options.patience.count()) +
                                  " ms (pg_stat_activity shows it as 'hapax migrate'). Nothing "
                                  "was changed; run it again when that one has ended."};
}

Result<MigrationReport> migrate_locked(Connection& connection, const MigrateOptions& options) {
  HAPAX_TRY(const std::vector<Applied> applied, applied_in(connection, options.schema));
  HAPAX_TRY(const std::vector<Migration> left, database::pending(options.known, applied));
  MigrationReport report;
  report.before = applied.empty() ? 0 : applied.back().version;
  report.after = options.known.back().version;
  for (const Migration& one : left) {
    report.steps.push_back(std::to_string(one.version) + " " + std::string(one.name));
  }
  if (options.retention) {
    report.steps.push_back("retention " + std::to_string(options.retention->count()) + "s");
  }
  if (options.dry_run) return report;
  if (!left.empty()) HAPAX_CHECK(run_step(connection, table_sql(options.schema)));
  for (const Migration& one : left) {
    auto done = run_step(connection, step_sql(options.schema, one));
    if (!done) return std::move(done).error().within("migration " + std::to_string(one.version));
  }
  if (options.retention) {
    HAPAX_CHECK(run_step(connection, retention_sql(options.schema, *options.retention)));
  }
  return report;
}

}  // namespace

Result<MigrationReport> migrate(Connection& connection, const MigrateOptions& options) {
  HAPAX_CHECK(database::check_name("schema", options.schema));
  const std::string key = "hashtextextended('hapax migrate " + options.schema + "', 0)";
  HAPAX_CHECK(lock(connection, key, options));
  auto report = migrate_locked(connection, options);
  ignore(connection.run("SELECT pg_catalog.pg_advisory_unlock(pg_catalog." + key + ")"),
         "the session's end unlocks, too");
  return report;
}

std::string script(const MigrateOptions& options) {
  std::string all = "BEGIN;\n" + table_sql(options.schema) + "COMMIT;\n";
  for (const Migration& one : options.known) {
    all += "\nBEGIN;\n" + step_sql(options.schema, one) + "COMMIT;\n";
  }
  if (options.retention) all += "\n" + retention_sql(options.schema, *options.retention);
  return all;
}

Status check_version(Connection& connection, const std::string& schema, std::uint32_t needs) {
  HAPAX_CHECK(database::check_name("schema", schema));
  HAPAX_TRY(const std::vector<Applied> applied, applied_in(connection, schema));
  return database::check_present(migrations(), applied, needs,
                                 "hapax migrate postgres://… --schema " + schema);
}

}  // namespace hapax::postgres
