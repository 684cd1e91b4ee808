// copy: a store from a data folder into a database, and back.
#include "shared_postgres/copy.h"

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include <hapax/postgres_store.h>

#include "base/format.h"
#include "cli/commands.h"
#include "cli/show.h"
#include "cli/store_commands.h"
#include "tables/finding.h"
#include "tables/migration.h"
#include "wire/json_text.h"

namespace hapax::cli {

namespace {

struct CopyArguments {
  std::string from;
  std::string to;
  std::string schema = "hapax_store";
  bool keep = false;
  bool progress = false;
  Output output = Output::kText;
};

Error unfit(std::string detail) { return {Errc::kInvalidArgument, std::move(detail)}; }

// As it can be said again from another folder; no password.
std::string place_text(const std::string& place) {
  if (is_postgres(place)) return printable(without_password(place));
  std::error_code failed;
  auto whole = std::filesystem::absolute(place, failed).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();  // "data/"
  return printable(failed ? place : whole.string());
}

std::string shell_word(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/:.,_-+=@%";
  if (word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

journal::Journey journey_of(const CopyArguments& arguments) {
  journal::Journey journey{place_text(arguments.from), place_text(arguments.to), {}};
  journey.command = "hapax copy " + shell_word(journey.from) + " " + shell_word(journey.to);
  if (arguments.schema != CopyArguments{}.schema) {
    journey.command += " --schema " + shell_word(arguments.schema);
    (is_postgres(arguments.from) ? journey.from : journey.to) += ", schema " + arguments.schema;
  }
  return journey;
}

// A line a second.
class CopyProgress {
 public:
  explicit CopyProgress(bool wanted) : wanted_(wanted || ::isatty(STDERR_FILENO) == 1) {}

  bool operator()(const shared_postgres::CopyStep& step) {
    const auto now = std::chrono::steady_clock::now();
    if (!wanted_ || now - told_ < std::chrono::seconds{1}) return true;
    told_ = now;
    base::print(stderr, "{}: {} of about {}\n", step.doing,
                tables::bytes_text(static_cast<std::int64_t>(step.done)),
                tables::bytes_text(static_cast<std::int64_t>(step.all)));
    return true;
  }

 private:
  const bool wanted_;
  std::chrono::steady_clock::time_point told_ = std::chrono::steady_clock::now();
};

Result<std::unique_ptr<shared_postgres::CopySide>> side_of(const CopyArguments& arguments,
                                                           shared_postgres::CopyRole role) {
  const std::string& place =
      role == shared_postgres::CopyRole::kSource ? arguments.from : arguments.to;
  if (!is_postgres(place)) return shared_postgres::folder_side(place, role);
  return shared_postgres::tables_side(
      {place, arguments.schema}, role,
      static_cast<std::uint32_t>(PostgresStoreOptions{}.segment_bytes));
}

void show_json(const shared_postgres::CopyReport& report, const CopyArguments& arguments,
               const journal::Journey& journey) {
  wire::JsonObject out;
  out.add("from", journey.from).add("to", journey.to).add("store", report.store_id);
  out.add("history", report.history).add("last_lsn", report.last_lsn);
  out.add("snapshot_lsn", report.snapshot_lsn).add("streams", report.streams);
  out.add("ids", report.ids).add("state_sha256", report.state_digest);
  out.add("done_before", report.done_before);
  if (!report.done_before) {
    out.add("files", report.files).add("file_bytes", report.file_bytes);
    out.add("batches", report.batches).add("log_bytes", report.log_bytes);
    out.add("copied_bytes", report.copied_bytes).add("left_out", report.left_out);
  }
  out.add("moved", report.done_before || !arguments.keep);
  base::print("{}\n", out.text());
}

void show_text(const shared_postgres::CopyReport& report, const CopyArguments& arguments,
               const journal::Journey& journey) {
  if (report.done_before) {
    base::print("{} was moved to {} before: nothing to do\n", journey.from, journey.to);
    return;
  }
  const auto size = [](std::uint64_t bytes) {
    return tables::bytes_text(static_cast<std::int64_t>(bytes));
  };
  base::print("store     {} (history {}), {} streams, {} ids\n", report.store_id, report.history,
              report.streams, report.ids);
  base::print("log       {} facts in {} batches, {}\n", report.last_lsn, report.batches,
              size(report.log_bytes));
  base::print("snapshot  {}\n",
              report.snapshot_lsn == 0
                  ? std::string("none")
                  : base::format("up to fact {}, {} files, {}", report.snapshot_lsn, report.files,
                                 size(report.file_bytes)));
  const std::uint64_t found = report.log_bytes + report.file_bytes - report.copied_bytes;
  base::print("copied    {}{}\n", size(report.copied_bytes),
              found == 0 ? "" : base::format("; {} were there already", size(found)));
  if (report.left_out != 0) {
    base::print("left out  {} damaged batches that nothing needs\n", report.left_out);
  }
  base::print("verified  every batch is the same, and so is the state: sha256 {}\n",
              report.state_digest);
  base::print("{} {}\n", journey.from,
              arguments.keep ? "stays a store. Never use both: they have one identity."
                             : "is marked as moved and starts no more.");
}

Status copy(const CopyArguments& arguments) {
  if (is_postgres(arguments.from) == is_postgres(arguments.to)) {
    return unfit("one of FROM and TO is a data folder, the other postgres://…");
  }
  HAPAX_CHECK(tables::check_name("schema", arguments.schema));
  HAPAX_TRY(const auto source, side_of(arguments, shared_postgres::CopyRole::kSource));
  HAPAX_TRY(const auto target, side_of(arguments, shared_postgres::CopyRole::kTarget));
  shared_postgres::CopyOptions options;
  options.journey = journey_of(arguments);
  options.keep = arguments.keep;
  options.step = CopyProgress(arguments.progress);
  HAPAX_TRY(const shared_postgres::CopyReport report,
            shared_postgres::copy_store(*source, *target, options));
  arguments.output == Output::kJson ? show_json(report, arguments, options.journey)
                                    : show_text(report, arguments, options.journey);
  return Ok{};
}

}  // namespace

void declare_copy(CLI::App& app, int& exit_code) {
  const auto arguments = std::make_shared<CopyArguments>();
  CLI::App* sub =
      app.add_subcommand("copy", "Move a store from a data folder into PostgreSQL, or back");
  sub->add_option("from", arguments->from, "Data folder, or postgres://…")->required();
  sub->add_option("to", arguments->to, "postgres://…, or data folder: empty, or not there yet")
      ->required();
  sub->add_option("--schema", arguments->schema, "The schema of the shared store")
      ->capture_default_str();
  sub->add_flag("--keep", arguments->keep, "Do not mark the source as moved: the copy is a backup");
  sub->add_flag("--progress", arguments->progress,
                "A line a second on standard error, also if that is no terminal");
  sub->add_flag_callback(
      "--json", [arguments] { arguments->output = Output::kJson; }, "Print JSON");
  sub->footer(
      "A copy that was interrupted goes on when the command is given again.\n"
      "Example: hapax copy ./hapax-data postgres://localhost/hapax\n"
      "         hapax copy postgres://localhost/hapax ./hapax-data-2 --progress");
  sub->callback([arguments, &exit_code] {
    const Status done = copy(*arguments);
    exit_code = done ? kExitOk : report_database(done.error());
  });
}

}  // namespace hapax::cli
