// doctor: is everything as it should be, and if not, what to do.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <sys/statvfs.h>

#include "base/format.h"
#include "base/words.h"
#include "cli/doctor_database.h"
#include "cli/show.h"
#include "cli/store_commands.h"
#include "cli/way.h"
#include "config/load.h"
#include "host/clock.h"
#include "wire/json_text.h"

namespace hapax::cli {

namespace {

using wire::JsonValue;

constexpr double kSkewWarning = 2;  // seconds
constexpr double kSkewFailure = 60;
constexpr std::uint64_t kFreeWarning = std::uint64_t{2} << 30;  // bytes
constexpr std::uint64_t kFreeFailure = std::uint64_t{512} << 20;

struct DoctorOptions {
  Target target;
  std::string config;
};

enum class CheckResult : std::uint8_t { kGood, kWarning, kBad, kSkipped };

class Doctor {
 public:
  explicit Doctor(const DoctorOptions& options) : options_(options), way_(options.target) {}

  int run() {
    check_config();
    examine();
    print();
    return worst_;
  }

 private:
  void examine() {
    if (!options_.target.data.empty()) check_disk_of_folder();
    if (!way_.open()) {
      return tell("address", CheckResult::kBad, "see above", "correct what is named there",
                  way_.exit_code());
    }
    if (!check_reach() || !check_ready() || !check_credential()) return;
    check_version();
    check_clock();
    check_store();
  }

  void tell(const std::string& name, CheckResult health, const std::string& found,
            const std::string& advice = "", int exit_code = kExitFailed) {
    constexpr std::string_view kWords[] = {"ok", "warning", "FAILED", "skipped"};
    constexpr Tint kTints[] = {Tint::kGood, Tint::kWarning, Tint::kBad, Tint::kFaint};
    const auto at = static_cast<std::size_t>(health);
    text_ += base::format("{}{}  {:<11} {}\n", tinted(kTints[at], kWords[at]),
                          std::string(7 - kWords[at].size(), ' '), name, printable(found));
    if (!advice.empty()) text_ += base::format("         {:<11} do: {}\n", "", printable(advice));
    wire::JsonObject one;
    one.add("check", name).add("state", base::lower(kWords[at])).add("found", found);
    if (!advice.empty()) one.add("advice", advice);
    json_.add(one.text());
    if (health == CheckResult::kBad && worst_ == kExitOk) worst_ = exit_code;
  }

  void check_config() {
    if (options_.config.empty()) return;
    const auto file = config::read_file(options_.config);
    if (!file) {
      return tell("config", CheckResult::kBad, file.error().text(), "give a file that can be read");
    }
    const auto loaded = config::load(*file, config::environment());
    if (!loaded.good()) {
      return tell("config", CheckResult::kBad, loaded.findings.errors.front().text(),
                  "hapax check " + options_.config, kExitUsage);
    }
    tell("config", CheckResult::kGood, options_.config + " has no errors");
  }

  void check_disk_of_folder() {
    struct statvfs disk {};
    if (::statvfs(options_.target.data.c_str(), &disk) != 0) return;
    const std::uint64_t free = std::uint64_t{disk.f_bavail} * disk.f_frsize;
    const CheckResult health = free < kFreeFailure   ? CheckResult::kBad
                               : free < kFreeWarning ? CheckResult::kWarning
                                                     : CheckResult::kGood;
    tell("disk", health, base::format("{} MiB are free", free >> 20U),
         health == CheckResult::kGood ? "" : "make room: trim streams, or give it a larger disk");
  }

  bool check_reach() {
    const auto reply = way_.ask_raw({.method = "GET", .path = "/health/live"});
    if (!reply) {
      const bool nobody = reply.error().code != Errc::kUnsupportedMedia;
      tell("reach", CheckResult::kBad, way_.where() + ": " + reply.error().detail,
           nobody ? "start `hapax serve`, or set HAPAX_URL to where it listens"
                  : "set HAPAX_URL to a Hapax server",
           nobody ? kExitUnreachable : kExitStranger);
      return false;
    }
    if (reply->status != 200 || reply->body != R"({"status":"live"})") {
      tell("reach", CheckResult::kBad, way_.where() + " answers, but is no Hapax server",
           "set HAPAX_URL to a Hapax server", kExitStranger);
      return false;
    }
    tell("reach", CheckResult::kGood, way_.where() + " answers");
    return true;
  }

  bool check_ready() {
    const auto told = way_.ask({.method = "GET", .path = "/health/ready"});
    if (!told) {
      worst_ = way_.exit_code();
      return false;
    }
    if (told->good()) {
      tell("ready", CheckResult::kGood, "it takes requests");
      return true;
    }
    tell("ready", CheckResult::kBad, text_in(told->json, "detail"),
         "wait until it has started, or see its log and docs/guide/operations.md", kExitLater);
    return false;
  }

  bool check_credential() {
    const auto told = way_.ask({.method = "GET", .path = "/api/v1/streams"});
    if (!told || !told->good()) {
      tell("credential", CheckResult::kBad, told ? problem_text(*told) : "no answer",
           "make a token with `hapax token make`, and set HAPAX_TOKEN",
           told ? exit_of(*told) : way_.exit_code());
      return false;
    }
    tell("credential", CheckResult::kGood,
         base::format("{} streams can be seen", list_in(told->json, "streams").size()));
    return true;
  }

  void check_version() {
    const auto reply = way_.ask_raw({.method = "GET", .path = "/metrics"});
    const std::string mark = "hapax_build_info{version=\"";
    const std::size_t at = reply ? reply->body.find(mark) : std::string::npos;
    if (at == std::string::npos) {
      return tell("version", CheckResult::kSkipped, "the server tells it to administrators only");
    }
    const std::size_t from = at + mark.size();
    const std::string version = reply->body.substr(from, reply->body.find('"', from) - from);
    const bool same = version == HAPAX_VERSION;
    tell("version", same ? CheckResult::kGood : CheckResult::kWarning,
         base::format("server {}, this command {}", version, HAPAX_VERSION),
         same ? "" : "use the same version on both sides");
  }

  // A commit that reads a register is told the store's time, and changes nothing.
  // What it takes to ask is no difference: the answer may be from any moment of it.
  void check_clock() {
    host::HostClock clock;
    const std::int64_t asked = clock.wall_ms();
    const auto told =
        way_.ask({.method = "POST",
                  .path = "/api/v1/commit",
                  .body = R"({"ops":[{"op":"get","name":"hapax-doctor","tell_value":false}]})"});
    const std::int64_t log_time = told ? number_in(told->json, "time_ms") : 0;
    if (log_time == 0)
      return tell("clock", CheckResult::kSkipped, "this credential may not commit");
    const std::int64_t time = log_time + clock_lag_ms();
    const std::int64_t ahead = std::max<std::int64_t>(time - clock.wall_ms(), 0);
    const double skew = static_cast<double>(time < asked ? time - asked : ahead) / 1000;
    const CheckResult health = std::abs(skew) > kSkewFailure   ? CheckResult::kBad
                               : std::abs(skew) > kSkewWarning ? CheckResult::kWarning
                                                               : CheckResult::kGood;
    tell("clock", health, base::format("the store's time differs by {:.1f} s", skew),
         health == CheckResult::kGood ? "" : "synchronise the clocks (NTP) of both machines");
  }

  // Of log time behind the server's clock; 0 also for a credential that is not told.
  [[nodiscard]] std::int64_t clock_lag_ms() {
    const auto told = way_.ask({.method = "GET", .path = "/api/v1/statistics"});
    return told && told->good() ? number_in(told->json, "clock_lag_ms") : 0;
  }

  void check_store() {
    const auto told = way_.ask({.method = "GET", .path = "/api/v1/statistics"});
    if (!told || !told->good()) {
      return tell("store", CheckResult::kSkipped, "its figures are for the right admin");
    }
    const JsonValue& json = told->json;
    const auto is = [&](std::string_view name) {
      const JsonValue* found = json.find(name);
      return found != nullptr && found->get<bool>() != nullptr && *found->get<bool>();
    };
    if (is("writes_refused")) {
      return tell("store", CheckResult::kBad, "writes are refused: the disk is full",
                  "make room on its disk, or trim streams", kExitLater);
    }
    if (is("clock_jump_pending")) {
      tell("store", CheckResult::kWarning, "its wall clock jumped, and is not believed",
           "correct the clock, or restart the server to let log time approach it");
    }
    const std::int64_t lag_ms = number_in(json, "clock_lag_ms");
    if (std::abs(lag_ms) > static_cast<std::int64_t>(kSkewFailure * 1000)) {
      tell("log time", CheckResult::kWarning,
           base::format("is {:.0f} s {} the server's clock, and approaches it by a tenth",
                        std::abs(static_cast<double>(lag_ms)) / 1000,
                        lag_ms < 0 ? "ahead of" : "behind"),
           "nothing, or start once with HAPAX_STORE_ACCEPT_CLOCK_JUMP=true");
    }
    if (const std::int64_t unknown = number_in(json, "claims_unknown"); unknown != 0) {
      tell("claims", CheckResult::kWarning, base::format("{} have an unknown outcome", unknown),
           "see what happened, then hapax resolve SCOPE KEY …");
    }
    const std::int64_t lost = number_in(json, "records_lost") + number_in(json, "results_lost");
    if (lost != 0) {
      tell("losses", CheckResult::kWarning, base::format("repairs gave up {} payloads", lost),
           "restore them from their senders, or from a backup");
    }
    tell("store", CheckResult::kGood,
         json.find("journal_bytes") == nullptr
             ? base::format("{} streams, {} bytes", number_in(json, "streams"),
                            number_in(json, "bytes"))
             : base::format("{} streams, {} ids, journal of {} MiB", number_in(json, "streams"),
                            number_in(json, "ids"), number_in(json, "journal_bytes") >> 20));
  }

  void print() const {
    if (options_.target.output == Output::kJson) {
      base::print(
          "{}\n",
          wire::JsonObject().add("healthy", worst_ == kExitOk).raw("checks", json_.text()).text());
    } else {
      base::print("{}", text_);
    }
  }

  const DoctorOptions& options_;
  Way way_;
  std::string text_;
  wire::JsonArray json_;
  int worst_ = kExitOk;
};

}  // namespace

void declare_doctor(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<DoctorOptions>();
  const auto database = std::make_shared<DatabaseDoctorOptions>();
  CLI::App* doctor =
      app.add_subcommand("doctor", "Check a server, a folder or a database, and say what to do");
  doctor->add_option("database", database->database,
                     "An application's database: postgres://… or sqlite:FILE");
  doctor->add_option("--config", options->config, "Configuration file to look at, too");
  doctor->add_option("--schema", database->schema, "PostgreSQL: the schema of the tables")
      ->default_str("hapax");
  doctor->add_option("--store-schema", database->store_schema, "The schema of a shared store")
      ->capture_default_str();
  doctor->add_option("--prefix", database->prefix, "SQLite: what the tables' names begin with")
      ->capture_default_str();
  doctor
      ->add_option("--patience", database->patience,
                   "Databases: how long a record may wait or a transaction stay open")
      ->capture_default_str();
  add_target(*doctor, options->target);
  doctor->footer(
      "Example: hapax doctor\n         hapax doctor --config hapax.yaml --json\n"
      "         hapax doctor --data ./hapax-data\n"
      "         hapax doctor postgres://localhost/shop\n"
      "         hapax doctor sqlite:shop.db");
  doctor->callback([options, database, &exit_code] {
    database->output = options->target.output;
    exit_code =
        database->database.empty() ? Doctor(*options).run() : run_database_doctor(*database);
  });
}

}  // namespace hapax::cli
