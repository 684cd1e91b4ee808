#include "postgres/migrate.h"

#include <algorithm>
#include <thread>
#include <vector>

#include "base/format.h"

namespace hapax::postgres {

namespace {

using tables::Applied;
using tables::Migration;
using tables::MigrationReport;

constexpr std::string_view kLockTimeout = "55P03";
constexpr int kLockTries = 20;  // of a second each, with as much again between them

std::string table_sql(const std::string& schema) {
  return tables::expanded(migrations_table_sql(), "schema", schema);
}

std::string noted_sql(const std::string& schema, const Migration& migration) {
  return base::format(
      "INSERT INTO \"{}\".migrations (version, name, checksum) VALUES ({}, '{}', '{}');\n", schema,
      migration.version, migration.name, tables::checksum_of(migration));
}

// Some comments have an ellipsis, which databases of other encodings than UTF-8 cannot take.
std::string in_ascii(std::string_view text) {
  constexpr std::string_view kEllipsis = "…";
  std::string out;
  for (;;) {
    const std::size_t at = text.find(kEllipsis);
    out += text.substr(0, at);
    if (at == std::string_view::npos) return out;
    out += "...";
    text.remove_prefix(at + kEllipsis.size());
  }
}

std::string step_sql(const std::string& schema, const Migration& migration) {
  return tables::expanded(in_ascii(migration.text), "schema", schema) +
         noted_sql(schema, migration);
}

// The partition of this moment, if each is used for so long. Days are the cheapest to count. Its
// text is read by the search_path of whoever publishes, so everything has its schema.
std::string part_sql(std::chrono::seconds period) {
  constexpr std::chrono::seconds kDay = std::chrono::days{1};
  if (period % kDay == std::chrono::seconds{0}) {
    const std::string day = "(CURRENT_DATE OPERATOR(pg_catalog.-) '1970-01-01'::pg_catalog.date)";
    const std::string count = base::format(" OPERATOR(pg_catalog./) {}", period / kDay);
    return day + (period == kDay ? "" : count) + " OPERATOR(pg_catalog.%) 32";
  }
  return base::format(
      "(pg_catalog.date_part('epoch', CURRENT_TIMESTAMP) OPERATOR(pg_catalog./) {}::double "
      "precision)::integer OPERATOR(pg_catalog.%) 32",
      period.count());
}

std::string retention_step(const std::string& schema, std::chrono::seconds retention) {
  std::string sql = tables::expanded(retention_sql(), "seconds", std::to_string(retention.count()));
  sql = tables::expanded(sql, "part", part_sql(part_period(retention)));
  return tables::expanded(sql, "schema", schema);
}

Result<bool> has_table(Connection& connection, const std::string& schema) {
  HAPAX_TRY(const Rows rows,
            connection.ask("SELECT 1 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n "
                           "ON n.oid OPERATOR(pg_catalog.=) c.relnamespace WHERE n.nspname "
                           "OPERATOR(pg_catalog.=) $1 AND c.relname OPERATOR(pg_catalog.=) "
                           "'migrations'",
                           Values().text(schema)));
  return rows.size() == 1;
}

}  // namespace

Result<std::vector<Applied>> applied_in(Connection& connection, const std::string& schema) {
  std::vector<Applied> all;
  HAPAX_TRY(const bool exists, has_table(connection, schema));
  if (!exists) return all;
  enum Column { kVersion, kName, kChecksum, kColumns };
  HAPAX_TRY(const Rows rows, connection.run("SELECT version, name, checksum FROM \"" + schema +
                                            "\".migrations ORDER BY version"));
  for (std::size_t row = 0; row < rows.size(); ++row) {
    all.push_back({static_cast<std::uint32_t>(rows.number(row, kVersion)), rows.text(row, kName),
                   rows.text(row, kChecksum)});
  }
  return all;
}

namespace {

// One run at a time does a step: a lock of its transaction, not of the session, which a pooler may
// hand to somebody else between two transactions, locked for good.
Status begin_step(Connection& connection, const MigrateOptions& options) {
  const auto begun = connection.run(
      base::format("BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = {}; SELECT "
                   "pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('hapax migrate "
                   "{}', 0)); SET LOCAL lock_timeout = '1s'; SET LOCAL search_path = ''; SET LOCAL "
                   "client_min_messages = warning",
                   options.patience.count(), options.schema));
  if (begun) return Ok{};
  const bool waited = connection.sqlstate() == kLockTimeout;
  if (!connection.lost()) ignore(connection.run("ROLLBACK"), "nothing was done");
  if (!waited) return begun.error();
  return Error{
      Errc::kLocked,
      base::format(
          "another migration of schema '{}' has worked on one step for {} ms (pg_stat_activity "
          "shows it as 'hapax migrate'). Run this one again when that one has ended.",
          options.schema, options.patience.count())};
}

// Another run may have done it since this one looked.
Result<bool> is_applied(Connection& connection, const std::string& schema, std::uint32_t version) {
  HAPAX_TRY(const std::vector<Applied> applied, applied_in(connection, schema));
  return std::any_of(applied.begin(), applied.end(),
                     [version](const Applied& each) { return each.version == version; });
}

struct Step {
  std::string sql;
  std::uint32_t version = 0;  // 0: not a migration, done each time
};

enum class StepDone : std::uint8_t { kHere, kByAnother };

Result<StepDone> try_step(Connection& connection, const std::string& schema, const Step& step) {
  if (step.version != 0) {
    HAPAX_TRY(const bool there, is_applied(connection, schema, step.version));
    if (there) {
      HAPAX_CHECK(connection.commit());
      return StepDone::kByAnother;
    }
  }
  HAPAX_CHECK(connection.run(step.sql));
  HAPAX_CHECK(connection.commit());
  return StepDone::kHere;
}

// In a transaction that gives up a lock it waits for, instead of making others wait behind it, and
// tries again.
Result<StepDone> run_step(Connection& connection, const MigrateOptions& options, const Step& step) {
  for (int tried = 1;; ++tried) {
    HAPAX_CHECK(begin_step(connection, options));
    auto done = try_step(connection, options.schema, step);
    if (done) return done;
    const bool again = connection.sqlstate() == kLockTimeout && tried < kLockTries;
    if (!connection.lost()) ignore(connection.run("ROLLBACK"), "the step has failed already");
    if (!again) return done;
    std::this_thread::sleep_for(std::chrono::seconds{1});
  }
}

std::string name_of(const Migration& one) { return base::format("{} {}", one.version, one.name); }

Status apply(Connection& connection, const MigrateOptions& options,
             const std::vector<Migration>& left, MigrationReport& report) {
  if (!left.empty()) {
    HAPAX_CHECK(run_step(connection, options, {.sql = table_sql(options.schema)}));
  }
  for (const Migration& one : left) {
    const Step step{.sql = step_sql(options.schema, one), .version = one.version};
    auto done = run_step(connection, options, step);
    if (!done) return std::move(done).error().within(base::format("migration {}", one.version));
    if (*done == StepDone::kHere) report.steps.push_back(name_of(one));
  }
  if (options.retention) {
    const Step step{.sql = retention_step(options.schema, *options.retention)};
    HAPAX_CHECK(run_step(connection, options, step));
  }
  return Ok{};
}

}  // namespace

std::chrono::seconds part_period(std::chrono::seconds retention) {
  constexpr std::chrono::seconds kDay = std::chrono::days{1};
  constexpr std::chrono::seconds kLeast = std::chrono::minutes{2};
  const auto up = [](std::chrono::seconds span, std::int64_t parts) {
    return std::chrono::seconds{(span.count() + parts - 1) / parts};
  };
  const std::chrono::seconds least = std::max(up(retention, kPartitions - 2), kLeast);
  return least <= kDay ? least : kDay * up(least, kDay.count()).count();
}

Result<MigrationReport> migrate(Connection& connection, const MigrateOptions& options) {
  HAPAX_CHECK(tables::check_name("schema", options.schema));
  HAPAX_TRY(const std::vector<Applied> applied, applied_in(connection, options.schema));
  HAPAX_TRY(const std::vector<Migration> left, tables::pending(options.known, applied));
  MigrationReport report;
  report.before = applied.empty() ? 0 : applied.back().version;
  report.after = options.known.back().version;
  if (options.dry_run) {
    for (const Migration& one : left) report.steps.push_back(name_of(one));
  } else {
    HAPAX_CHECK(apply(connection, options, left, report));
  }
  if (options.retention) {
    report.steps.push_back(base::format("retention {}s", options.retention->count()));
  }
  return report;
}

std::string script(const MigrateOptions& options) {
  const std::string begin = "BEGIN;\nSET LOCAL search_path = '';\n";
  std::string all = begin + table_sql(options.schema) + "COMMIT;\n";
  for (const Migration& one : options.known) {
    all += "\n" + begin + step_sql(options.schema, one) + "COMMIT;\n";
  }
  if (options.retention) all += "\n" + retention_step(options.schema, *options.retention);
  return all;
}

Status check_version(Connection& connection, const std::string& schema, std::uint32_t needs) {
  HAPAX_CHECK(tables::check_name("schema", schema));
  HAPAX_TRY(const std::vector<Applied> applied, applied_in(connection, schema));
  return tables::check_present(migrations(), applied, needs,
                               "hapax migrate postgres://… --schema " + schema);
}

}  // namespace hapax::postgres
