#include "cli/doctor_database.h"

#include <algorithm>

#include "base/format.h"
#include "base/span.h"
#include "cli/show.h"
#include "cli/span.h"
#include "postgres/checkup.h"
#include "shared_postgres/checkup.h"
#include "sqlite/checkup.h"
#include "tables/finding.h"
#include "tables/migration.h"
#include "wire/json_text.h"

namespace hapax::cli {

namespace {

using tables::Finding;
using tables::Findings;
using tables::Severity;

constexpr std::string_view kSeverityWords[] = {"ok", "warning", "critical"};

std::string_view word_of(Severity severity) {
  return kSeverityWords[static_cast<std::size_t>(severity)];
}

void check_postgres(const DatabaseDoctorOptions& options, std::int64_t patience_ms,
                    Findings& findings) {
  postgres::CheckupOptions checkup{.uri = options.database,
                                   .shown = without_password(options.database),
                                   .schema = options.schema.empty() ? "hapax" : options.schema,
                                   .patience_ms = patience_ms,
                                   .tables_expected = true};
  auto connection =
      postgres::Connection::open(options.database, {.application_name = "hapax doctor"});
  if (!connection) {
    const bool full = connection.error().detail.find("max_connections") != std::string::npos;
    return findings.critical(
        "reach", connection.error().detail,
        full ? "end sessions that nobody needs (pg_stat_activity, as a superuser), put a pool "
               "before the server, or raise max_connections and restart it"
             : "start the server, or correct the address or the role");
  }
  findings.ok("reach", checkup.shown + " answers");
  postgres::check_server(checkup, *connection, findings);
  const bool has_store = postgres::has_schema(*connection, options.store_schema);
  checkup.tables_expected = !has_store || !options.schema.empty();
  postgres::check_tables(checkup, *connection, findings);
  if (has_store) shared_postgres::check_store(options.store_schema, *connection, findings);
}

void print_text(const Findings& findings) {
  constexpr Tint kTints[] = {Tint::kGood, Tint::kWarning, Tint::kBad};
  for (const Finding& one : findings.all()) {
    const std::string_view word = word_of(one.severity);
    base::print("{}{}  {:<15} {}\n", tinted(kTints[static_cast<std::size_t>(one.severity)], word),
                std::string(8 - word.size(), ' '), one.check, printable(one.found));
    if (!one.remedy.empty()) base::print("{:26}do: {}\n", "", printable(one.remedy));
  }
}

void print_json(const std::string& database, const Findings& findings, Severity worst) {
  wire::JsonArray checks;
  for (const Finding& one : findings.all()) {
    wire::JsonObject object;
    object.add("check", one.check).add("state", word_of(one.severity)).add("found", one.found);
    if (!one.remedy.empty()) object.add("advice", one.remedy);
    wire::JsonObject figures;
    for (const auto& [name, value] : one.figures) figures.add(name, value);
    if (!one.figures.empty()) object.raw("figures", figures.text());
    checks.add(object.text());
  }
  base::print("{}\n", wire::JsonObject()
                          .add("database", without_password(database))
                          .add("healthy", worst == Severity::kOk)
                          .add("worst", word_of(worst))
                          .raw("checks", checks.text())
                          .text());
}

int usage(std::string_view text) {
  static_cast<void>(report(Error{Errc::kInvalidArgument, std::string(text)}));
  return kExitUsage;
}

}  // namespace

int run_database_doctor(const DatabaseDoctorOptions& options) {
  const auto patience = span_of(options.patience);
  if (!patience) {
    return usage("--patience " + options.patience + " is no span; units are " +
                 std::string(base::kSpanUnitNames));
  }
  for (const std::string* name : {&options.schema, &options.store_schema, &options.prefix}) {
    if (name == &options.schema && name->empty()) continue;
    const Status fits = tables::check_name("name", *name);
    if (!fits) return usage(fits.error().detail);
  }
  Findings findings;
  const std::string& database = options.database;
  if (is_postgres(database)) {
    check_postgres(options, patience->count(), findings);
  } else if (database.starts_with("sqlite:") && database.size() > 7) {
    sqlite::check_file({database.substr(7), options.prefix, patience->count()}, findings);
  } else {
    return usage("'" + database + "' is neither postgres://… nor sqlite:FILE");
  }
  Severity worst = Severity::kOk;
  for (const Finding& one : findings.all()) worst = std::max(worst, one.severity);
  options.output == Output::kJson ? print_json(database, findings, worst) : print_text(findings);
  return static_cast<int>(worst);
}

}  // namespace hapax::cli
