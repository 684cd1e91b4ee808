// clean: forgets what is over in the inbox and among the claims of an application's database.
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>

#include <hapax/inbox.h>
#include <hapax/job_claims.h>
#include <hapax/postgres.h>
#include <hapax/sqlite.h>

#include "base/format.h"
#include "cli/commands.h"
#include "cli/show.h"
#include "cli/span.h"
#include "cli/store_commands.h"
#include "postgres/migrate.h"
#include "sqlite/migrate.h"
#include "wire/json_text.h"

namespace hapax::cli {

namespace {

// Between two batches, at least; after a batch that took longer, as long as that took.
constexpr std::chrono::milliseconds kRestMin{10};

struct CleanArguments {
  std::string database;
  std::string schema{postgres::kSchemaDefault};
  std::string prefix{sqlite::kPrefixDefault};
  std::vector<std::string> subscribers;
  std::vector<std::string> scopes;
  std::string retention;
  std::uint32_t batch = 1'000;
  Output output = Output::kText;
};

Error misused(std::string detail) { return {Errc::kInvalidArgument, std::move(detail)}; }

// Small transactions with rests between them, so that the application's own never wait for long.
class Cleaning {
 public:
  Cleaning(Database& database, const CleanArguments& arguments)
      : database_(database), inbox_(database), arguments_(arguments) {}

  Status run() {
    HAPAX_CHECK(set_retentions());
    for (std::uint64_t done = 1; done > 0;) {
      HAPAX_CHECK(paced([&]() -> Status {
        HAPAX_TRY(done, inbox_.forget_expired(arguments_.batch));
        forgotten_ += done;
        return Ok{};
      }));
    }
    return Ok{};
  }
  [[nodiscard]] std::uint64_t forgotten() const { return forgotten_; }

 private:
  using Last = Result<std::optional<std::string>>;

  Status set_retentions() {
    if (arguments_.retention.empty()) return Ok{};
    HAPAX_TRY(const Window retention, retention_of(arguments_.retention));
    for (const std::string& subscriber : arguments_.subscribers) {
      HAPAX_CHECK(for_all([&](const std::string& behind) {
        return inbox_.retain(subscriber, retention, behind, arguments_.batch);
      }));
    }
    for (const std::string& scope : arguments_.scopes) {
      JobClaims claims(database_, scope);
      HAPAX_CHECK(for_all([&](const std::string& behind) {
        return claims.retain(retention, behind, arguments_.batch);
      }));
    }
    return Ok{};
  }
  static Result<Window> retention_of(const std::string& text) {
    if (text == "forever") return Window::forever();
    const auto span = span_of(text);
    if (span) return Window{std::chrono::ceil<std::chrono::seconds>(*span)};
    return misused("--retention '" + text + "' is not a span such as 30d, nor forever");
  }
  static Status for_all(const std::function<Last(const std::string&)>& retain) {
    std::string behind;
    for (bool more = true; more;) {
      HAPAX_CHECK(paced([&]() -> Status {
        HAPAX_TRY(std::optional<std::string> last, retain(behind));
        more = last.has_value();
        behind = std::move(last).value_or("");
        return Ok{};
      }));
    }
    return Ok{};
  }
  static Status paced(const std::function<Status()>& batch) {
    const auto since = std::chrono::steady_clock::now();
    HAPAX_CHECK(batch());
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - since);
    std::this_thread::sleep_for(std::max(took, kRestMin));
    return Ok{};
  }

  Database& database_;
  Inbox inbox_;
  const CleanArguments& arguments_;
  std::uint64_t forgotten_ = 0;
};

Status clean_with(Database& database, const CleanArguments& arguments) {
  Cleaning cleaning(database, arguments);
  HAPAX_CHECK(cleaning.run());
  if (arguments.output == Output::kJson) {
    base::print("{}\n", wire::JsonObject().add("forgotten", cleaning.forgotten()).text());
  } else {
    base::print("forgot {} ids and claims whose time was over\n", cleaning.forgotten());
  }
  return Ok{};
}

Status clean_database(const CleanArguments& arguments) {
  const bool named = !arguments.subscribers.empty() || !arguments.scopes.empty();
  if (named != !arguments.retention.empty()) {
    return misused("--retention goes with --subscriber or --scope: whose ids or claims get it");
  }
  const std::string& where = arguments.database;
  if (is_postgres(where)) {
    HAPAX_TRY(postgres::Connection connection,
              postgres::Connection::open(where, {.application_name = "hapax clean"}));
    HAPAX_TRY(const auto database, on_postgres(connection.raw(), {.schema = arguments.schema}));
    return clean_with(*database, arguments);
  }
  if (!where.starts_with("sqlite:") || where.size() == 7) {
    return misused("'" + where + "' is neither postgres://… nor sqlite:FILE");
  }
  HAPAX_TRY(sqlite::Connection connection,
            sqlite::Connection::open(where.substr(7), sqlite::Opening::kWrite));
  HAPAX_TRY(const auto database, on_sqlite(connection.raw(), {.prefix = arguments.prefix}));
  return clean_with(*database, arguments);
}

}  // namespace

void declare_clean(CLI::App& app, int& exit_code) {
  const auto arguments = std::make_shared<CleanArguments>();
  CLI::App* sub = app.add_subcommand(
      "clean", "Forget what is over in the inbox and among the claims of a database");
  sub->add_option("database", arguments->database, "postgres://… or sqlite:FILE")->required();
  sub->add_option("--schema", arguments->schema, "PostgreSQL: the schema of the tables")
      ->capture_default_str();
  sub->add_option("--prefix", arguments->prefix, "SQLite: what the tables' names begin with")
      ->capture_default_str();
  sub->add_option("--retention", arguments->retention,
                  "First give this retention to what is remembered: 30d, or forever");
  sub->add_option("--subscriber", arguments->subscribers, "Whose ids in the inbox get it; several");
  sub->add_option("--scope", arguments->scopes, "Whose completed claims get it; several");
  sub->add_option("--batch", arguments->batch, "Rows in one transaction")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  sub->add_flag_callback(
      "--json", [arguments] { arguments->output = Output::kJson; }, "Print JSON");
  sub->footer(
      "Example: hapax clean postgres://app@db/shop\n"
      "         hapax clean sqlite:shop.db --retention 30d --subscriber billing");
  sub->callback([arguments, &exit_code] {
    const Status done = clean_database(*arguments);
    exit_code = done ? kExitOk : report_database(done.error());
  });
}

}  // namespace hapax::cli
