#include "sqlite/migrate.h"

#include <utility>
#include <vector>

#include "base/format.h"

namespace hapax::sqlite {

namespace {

using tables::Applied;
using tables::Migration;
using tables::MigrationReport;

std::string table_sql(const std::string& prefix) {
  return tables::expanded(migrations_table_sql(), "prefix", prefix);
}

std::string step_sql(const std::string& prefix, const Migration& migration) {
  return base::format(
      "{}INSERT INTO {}migrations (version, name, checksum) VALUES ({}, '{}', '{}');\n",
      tables::expanded(migration.text, "prefix", prefix), prefix, migration.version, migration.name,
      tables::checksum_of(migration));
}

}  // namespace

Result<std::vector<Applied>> applied_in(Connection& connection, const std::string& prefix) {
  std::vector<Applied> all;
  HAPAX_TRY(const std::vector<Row> table,
            connection.ask("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1",
                           {Value::text(prefix + "migrations")}));
  if (table.empty()) return all;
  enum Column { kVersion, kName, kChecksum, kColumns };
  HAPAX_TRY(const std::vector<Row> rows, connection.ask("SELECT version, name, checksum FROM " +
                                                            prefix + "migrations ORDER BY version",
                                                        {}));
  for (const Row& row : rows) {
    all.push_back(
        {static_cast<std::uint32_t>(row[kVersion].number), row[kName].bytes, row[kChecksum].bytes});
  }
  return all;
}

namespace {

// In UTF-16 all bytes that are not UTF-8 become one character: different ids would be the same. And
// SQL would measure headers and payloads in bytes that nobody sent.
Status check_encoding(Connection& connection) {
  HAPAX_TRY(const std::vector<Row> rows, connection.ask("PRAGMA encoding", {}));
  const std::string& found = rows.at(0)[kOnly].bytes;
  if (found == "UTF-8") return Ok{};
  return Error{Errc::kPreconditionFailed,
               "the encoding of the file is " + found +
                   ", where different ids may become the same; Hapax needs UTF-8: copy the file "
                   "with sqlite3 OLD .dump | sqlite3 NEW"};
}

Result<MigrationReport> migrate_locked(Connection& connection, const MigrateOptions& options) {
  HAPAX_TRY(const std::vector<Applied> applied, applied_in(connection, options.prefix));
  HAPAX_TRY(const std::vector<Migration> left, tables::pending(options.known, applied));
  MigrationReport report;
  report.before = applied.empty() ? 0 : applied.back().version;
  report.after = options.known.back().version;
  if (!options.dry_run && !left.empty()) HAPAX_CHECK(connection.run(table_sql(options.prefix)));
  for (const Migration& one : left) {
    report.steps.push_back(base::format("{} {}", one.version, one.name));
    if (options.dry_run) continue;
    Status done = connection.run(step_sql(options.prefix, one));
    if (!done) return std::move(done).error().within(base::format("migration {}", one.version));
  }
  return report;
}

}  // namespace

Result<MigrationReport> migrate(Connection& connection, const MigrateOptions& options) {
  HAPAX_CHECK(tables::check_name("prefix", options.prefix));
  HAPAX_CHECK(check_encoding(connection));
  if (options.dry_run) return migrate_locked(connection, options);
  HAPAX_CHECK(connection.run("PRAGMA journal_mode = WAL"));
  HAPAX_CHECK(connection.run("BEGIN IMMEDIATE"));
  auto report = migrate_locked(connection, options);
  Status ended = report ? connection.run("COMMIT") : Status(Ok{});
  if (connection.in_transaction()) ignore(connection.run("ROLLBACK"), "it has failed already");
  if (!ended) return std::move(ended).error();
  return report;
}

std::string script(const MigrateOptions& options) {
  std::string all = "PRAGMA journal_mode = WAL;\nBEGIN IMMEDIATE;\n" + table_sql(options.prefix);
  for (const Migration& one : options.known) all += "\n" + step_sql(options.prefix, one);
  return all + "COMMIT;\n";
}

Status check_version(Connection& connection, const std::string& prefix, std::uint32_t needs) {
  HAPAX_CHECK(tables::check_name("prefix", prefix));
  HAPAX_CHECK(check_encoding(connection));
  HAPAX_TRY(const std::vector<Applied> applied, applied_in(connection, prefix));
  return tables::check_present(migrations(), applied, needs,
                               "hapax migrate sqlite:FILE --prefix " + prefix);
}

}  // namespace hapax::sqlite
