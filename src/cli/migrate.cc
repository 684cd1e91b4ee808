// migrate: our tables in an application's database.
#include "postgres/migrate.h"

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "base/format.h"
#include "cli/commands.h"
#include "cli/show.h"
#include "cli/span.h"
#include "cli/store_commands.h"
#include "sqlite/migrate.h"
#include "wire/json_text.h"

namespace hapax::cli {

namespace {

constexpr std::chrono::seconds kRetentionMin{60};

struct MigrateArguments {
  std::string database;
  std::string schema;
  std::string prefix;
  std::string retention;
  bool dry_run = false;
  bool print = false;
  Output output = Output::kText;
};

Error wrong(std::string detail) { return {Errc::kInvalidArgument, std::move(detail)}; }

Result<postgres::MigrateOptions> postgres_options(const MigrateArguments& arguments) {
  postgres::MigrateOptions options;
  options.dry_run = arguments.dry_run;
  if (!arguments.schema.empty()) options.schema = arguments.schema;
  HAPAX_CHECK(tables::check_name("schema", options.schema));
  if (!arguments.prefix.empty()) return wrong("--prefix is for SQLite; PostgreSQL has --schema");
  if (arguments.retention.empty()) return options;
  const auto span = span_of(arguments.retention);
  if (!span || *span < kRetentionMin) {
    return wrong("--retention '" + arguments.retention +
                 "' is no span of at least a minute such as 30d or 12h");
  }
  options.retention = std::chrono::duration_cast<std::chrono::seconds>(*span);
  return options;
}

Result<sqlite::MigrateOptions> sqlite_options(const MigrateArguments& arguments) {
  sqlite::MigrateOptions options;
  options.dry_run = arguments.dry_run;
  if (!arguments.prefix.empty()) options.prefix = arguments.prefix;
  HAPAX_CHECK(tables::check_name("prefix", options.prefix));
  if (!arguments.schema.empty()) return wrong("--schema is for PostgreSQL; SQLite has --prefix");
  if (!arguments.retention.empty()) {
    return wrong("--retention is for PostgreSQL; on SQLite the relay has it");
  }
  return options;
}

void show(const tables::MigrationReport& report, const MigrateArguments& arguments) {
  if (arguments.output == Output::kJson) {
    wire::JsonArray steps;
    for (const std::string& step : report.steps) steps.add(wire::json_text(step));
    base::print("{}\n", wire::JsonObject()
                            .add("before", report.before)
                            .add("after", report.after)
                            .add("dry_run", arguments.dry_run)
                            .raw("steps", steps.text())
                            .text());
    return;
  }
  for (const std::string& step : report.steps) {
    base::print("{} {}\n", arguments.dry_run ? "would apply" : "applied", step);
  }
  if (report.steps.empty()) base::print("nothing to do, version {}\n", report.after);
}

// Prints, too, what was asked for.
Status migrate_postgres(const MigrateArguments& arguments) {
  HAPAX_TRY(const postgres::MigrateOptions options, postgres_options(arguments));
  if (arguments.print) {
    base::print("{}", postgres::script(options));
    return Ok{};
  }
  HAPAX_TRY(postgres::Connection connection,
            postgres::Connection::open(arguments.database, {.application_name = "hapax migrate"}));
  HAPAX_TRY(const tables::MigrationReport report, postgres::migrate(connection, options));
  show(report, arguments);
  return Ok{};
}

Status migrate_sqlite(const MigrateArguments& arguments, const std::string& path) {
  HAPAX_TRY(const sqlite::MigrateOptions options, sqlite_options(arguments));
  if (arguments.print) {
    base::print("{}", sqlite::script(options));
    return Ok{};
  }
  if (path.empty()) return wrong("sqlite: is followed by a file, as in sqlite:shop.db");
  // A file that is not there yet is not made by looking at it.
  const bool look_only = options.dry_run && !std::filesystem::exists(path);
  HAPAX_TRY(sqlite::Connection connection,
            sqlite::Connection::open(look_only ? ":memory:" : path,
                                     options.dry_run && !look_only ? sqlite::Opening::kReadOnly
                                                                   : sqlite::Opening::kCreate));
  HAPAX_TRY(const tables::MigrationReport report, sqlite::migrate(connection, options));
  show(report, arguments);
  return Ok{};
}

Status migrate(const MigrateArguments& arguments) {
  const std::string& database = arguments.database;
  if (is_postgres(database)) {
    return migrate_postgres(arguments);
  }
  if (database.starts_with("sqlite:")) return migrate_sqlite(arguments, database.substr(7));
  return wrong("'" + database + "' is neither postgres://… nor sqlite:FILE");
}

}  // namespace

int report_database(const Error& error) {
  static_cast<void>(report(error));
  return database_exit_code_of(error);
}

int database_exit_code_of(const Error& error) {
  switch (error.code) {
    case Errc::kUnavailable:
      return kExitUnreachable;
    case Errc::kNotFound:
      return kExitMissing;
    case Errc::kLocked:
    case Errc::kNoSpace:
      return kExitLater;
    case Errc::kForbidden:
    case Errc::kUnauthenticated:
      return kExitForbidden;
    default:
      return exit_code_of(error);
  }
}

void declare_migrate(CLI::App& app, int& exit_code) {
  const auto arguments = std::make_shared<MigrateArguments>();
  CLI::App* sub =
      app.add_subcommand("migrate", "Make or renew the tables in an application's database");
  sub->add_option("database", arguments->database, "postgres://… or sqlite:FILE")->required();
  sub->add_option("--schema", arguments->schema, "PostgreSQL: the schema of the tables")
      ->default_str("hapax");
  sub->add_option("--prefix", arguments->prefix, "SQLite: what the tables' names begin with")
      ->default_str("hapax_");
  sub->add_option("--retention", arguments->retention,
                  "PostgreSQL: how long the outbox keeps events; 30d when it is made");
  sub->add_flag("--dry-run", arguments->dry_run, "Only say what would be done");
  sub->add_flag("--print", arguments->print, "Print the SQL of all steps instead");
  sub->add_flag_callback(
      "--json", [arguments] { arguments->output = Output::kJson; }, "Print JSON");
  sub->footer(
      "Example: hapax migrate postgres://localhost/shop --retention 14d\n"
      "         hapax migrate sqlite:shop.db --dry-run\n"
      "         hapax migrate postgres:// --print | psql");
  sub->callback([arguments, &exit_code] {
    const Status done = migrate(*arguments);
    exit_code = done ? kExitOk : report_database(done.error());
  });
}

}  // namespace hapax::cli
