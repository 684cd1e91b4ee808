// relay: drains outboxes of applications' databases into a stream or an endpoint.
#include "cli/relay.h"

#include <atomic>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "base/format.h"
#include "base/span.h"
#include "cli/commands.h"
#include "cli/relay_destination.h"
#include "cli/show.h"
#include "cli/span.h"
#include "cli/store_commands.h"
#include "cli/way.h"
#include "delivery/database_outbox.h"
#include "delivery/outbox_driver.h"
#include "host/clock.h"
#include "host/signals.h"
#include "serve/relay_door.h"
#include "wire/json_text.h"

namespace hapax::cli {

namespace {

constexpr Duration kNamesakeSlack{200};
constexpr std::uint32_t kStreamStarts = 2;  // One is sent while the other is settled and taken.
constexpr Duration kLeaseMin{1'000};
constexpr Duration kLeaseMax{3'600'000};  // what is longer is taken for one of a wrong clock

// One outbox of those that a command relays.
class Drain {
 public:
  Drain(const RelayOptions& options, std::string from, const std::string& label,
        RelayDestination& destination, ports::Clock& clock, const delivery::RelaySettings& settings)
      : options_(options),
        uri_(std::move(from)),
        from_(without_password(uri_)),
        owner_(label + "#" + fresh_key()),
        clock_(clock),
        driver_([this] { return open_outbox(); }, destination.make_sink(clock_), clock_,
                driver_settings(options, owner_, settings),
                [this](std::string_view text) { say(from_ + ": " + std::string(text)); }) {}

  [[nodiscard]] Status open() { return driver_.open(); }
  void run() {
    if (const Status ended = driver_.run(); !ended) {
      refused_ = ended.error().code == Errc::kConflict;
      if (refused_) say(from_ + ": " + ended.error().text());
      exit_code_ = database_exit_code_of(ended.error());
    } else if (driver_.left() == delivery::OutboxDriver::Left::kSome) {
      exit_code_ = kExitLater;
    }
  }
  void stop() { driver_.stop(); }

  // Another relay of this name lives.
  [[nodiscard]] bool refused() const { return refused_; }
  // What --once ends with.
  [[nodiscard]] int exit_code() const { return exit_code_; }
  [[nodiscard]] delivery::EngineCounts counts() const { return driver_.counts(); }
  [[nodiscard]] const std::string& from() const { return from_; }

 private:
  static delivery::DriverSettings driver_settings(const RelayOptions& options,
                                                  const std::string& owner,
                                                  const delivery::RelaySettings& settings) {
    return {.engine = settings.engine(),
            .lanes = settings.lanes(),
            .policy = settings.policy(),
            .owner = owner,
            .once = options.once};
  }
  Result<std::unique_ptr<relay::Source>> open_outbox() {
    HAPAX_TRY(auto outbox, open_source(options_, uri_, owner_));
    HAPAX_CHECK(check_name(*outbox));
    return outbox;
  }
  // Two relays of one name, and a relay beside a workflow, are a mistake of whoever starts them.
  // One that was killed is waited for: its lease ends, and that of one which lives is renewed.
  Status check_name(relay::Source& source) {
    const std::string_view label = delivery::label_of(owner_);
    HAPAX_TRY(const relay::OutboxReport report, source.report());
    const std::int64_t now = clock_.steady_ms();
    Duration left{0};
    std::string holder;
    for (const relay::LaneReport& lane : report.lanes) {
      const std::string_view other = delivery::label_of(lane.owner);
      const bool rival = other == label || other.starts_with(delivery::kWorkflowLabel);
      if (!rival || lane.owner == owner_ || lane.lease_left <= left) continue;
      left = lane.lease_left;
      holder = other == label ? base::format("another relay named '{}'", label)
                              : base::format("'{}' of a server", other);
    }
    if (left == Duration{0}) return Ok{};
    if (!namesake_until_ms_) namesake_until_ms_ = now + (left + kNamesakeSlack).count();
    if (now + left.count() <= *namesake_until_ms_) {
      return Error{Errc::kLocked,
                   base::format("{} holds lanes for {} ms; if it is dead, this one goes on then",
                                holder, left.count())};
    }
    if (holder.starts_with('\'')) {
      return Error{Errc::kConflict,
                   holder +
                       " sends from this outbox, and each record would go to one of the two; "
                       "disable the workflow, or do without the relay"};
    }
    return Error{Errc::kConflict,
                 holder + " is running; give every relay a --name of its own, or leave --name out"};
  }

  const RelayOptions& options_;
  const std::string uri_;
  const std::string from_;  // as it may be shown
  const std::string owner_;
  ports::Clock& clock_;
  std::optional<std::int64_t> namesake_until_ms_{};  // then the lease of one that is dead has ended
  std::atomic<bool> refused_ = false;
  std::atomic<int> exit_code_ = kExitOk;
  delivery::OutboxDriver driver_;
};

int print_counts(const RelayOptions& options, const std::vector<std::unique_ptr<Drain>>& drains) {
  int exit_code = kExitOk;
  for (const auto& drain : drains) {
    const delivery::EngineCounts counts = drain->counts();
    if (exit_code == kExitOk) exit_code = drain->exit_code();
    if (options.output == Output::kJson) {
      base::print("{}\n", wire::JsonObject()
                              .add("from", drain->from())
                              .add("accepted", counts.delivered)
                              .add("retried", counts.retried)
                              .add("dead", counts.dead)
                              .text());
    } else {
      base::print("{}: {} accepted, {} to be tried again, {} dead letters\n", drain->from(),
                  counts.delivered, counts.retried, counts.dead);
    }
  }
  for (const auto& drain : drains) {
    if (drain->refused()) return kExitContradicted;
  }
  return options.once ? exit_code : kExitOk;
}

Result<delivery::RelaySettings> settings_of(const RelayOptions& options) {
  delivery::RelaySettings settings;
  settings.batch = options.batch;
  settings.attempts_max = options.attempts;
  const auto lease = span_of(options.lease);
  if (!lease || *lease < kLeaseMin || *lease > kLeaseMax) {
    return Error{Errc::kInvalidArgument, "--lease " + options.lease +
                                             " is no span of 1s to 1h; units are " +
                                             std::string(base::kSpanUnitNames)};
  }
  settings.lease = *lease;
  settings.margin = std::min(settings.margin, settings.lease / 5);
  return settings;
}

// Nothing: nobody wants to know how the relay does.
Result<std::unique_ptr<serve::RelayDoor>> open_door(const RelayOptions& options,
                                                    ports::Clock& clock) {
  if (options.metrics.empty()) return std::unique_ptr<serve::RelayDoor>();
  RelayOptions looking = options;
  looking.status = true;
  std::vector<serve::RelayedOutbox> outboxes;
  for (const std::string& from : options.from) {
    outboxes.push_back({without_password(from),
                        [looking, from] { return open_source(looking, from, looking.name); }});
  }
  HAPAX_TRY(auto door, serve::RelayDoor::open(options.metrics, outboxes, clock));
  say(base::format("metrics and health at http://{}", door->address()));
  return door;
}

Result<int> relay_all(const RelayOptions& options) {
  // SIGUSR1: the last drain has ended by itself, or one was refused.
  const host::Signals signals{SIGTERM, SIGINT, SIGUSR1};
  HAPAX_TRY(delivery::RelaySettings settings, settings_of(options));
  host::HostClock clock;  // Requests that are under way at the end still ask it.
  RelayDestination destination;
  HAPAX_CHECK(destination.open(options));
  settings.concurrency = destination.is_stream() ? kStreamStarts : options.concurrency;
  HAPAX_CHECK(destination.check_window(settings));
  HAPAX_TRY(const auto door, open_door(options, clock));
  std::vector<std::unique_ptr<Drain>> drains;
  for (const std::string& from : options.from) {
    const std::string suffix = drains.empty() ? "" : base::format("/{}", drains.size() + 1);
    drains.push_back(std::make_unique<Drain>(options, from, options.name + suffix, destination,
                                             clock, settings));
    HAPAX_CHECK(drains.back()->open());
  }
  std::atomic<std::size_t> left = drains.size();
  std::vector<std::jthread> threads;
  for (const auto& drain : drains) {
    threads.emplace_back([&left, &drain] {
      drain->run();
      if (--left == 0 || drain->refused()) host::raise_in_process(SIGUSR1);
    });
  }
  if (!options.once) say("relaying to " + options.to);
  std::ignore = signals.wait();
  if (door) door->draining();
  for (const auto& drain : drains) drain->stop();
  threads.clear();
  return print_counts(options, drains);
}

Result<int> done_by(const RelayOptions& options) {
  if (options.sends()) return relay_all(options);
  if (options.status) return show_status(options);
  return options.dead_letters ? list_dead_letters(options) : redrive_dead_letters(options);
}

int run_relay(RelayOptions options) {
  if (options.name.empty()) options.name = who() + "/" + fresh_key();
  if (options.sends() && options.to.empty()) {
    base::print(
        stderr,
        "hapax: --to is required, unless --status, --dead-letters or --redrive is wanted\n");
    return kExitUsage;
  }
  if (!options.redrives() && (!options.rate.empty() || !options.since.empty() || options.dry_run)) {
    base::print(stderr,
                "hapax: --rate, --since and --dry-run are of --redrive and --redrive-all\n");
    return kExitUsage;
  }
  if (!options.sends() && !options.metrics.empty()) {
    base::print(stderr, "hapax: --metrics is of a relay that sends\n");
    return kExitUsage;
  }
  if (options.log == "json") say_as_json();
  const auto done = done_by(options);
  return done ? *done : report_database(done.error());
}

}  // namespace

void declare_relay(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<RelayOptions>();
  CLI::App* relay = app.add_subcommand("relay", "Send what outboxes of databases hold");
  relay
      ->add_option("--from", options->from,
                   "Outbox: postgres://… or sqlite:FILE; may be given several times")
      ->required();
  relay->add_option("--to", options->to,
                    "URL/streams/NAME or FOLDER/streams/NAME; another URL gets a POST per record");
  relay->add_option("--schema", options->schema, "Schema of our tables")->capture_default_str();
  relay->add_option("--prefix", options->prefix, "Prefix of our tables in SQLite")
      ->capture_default_str();
  relay
      ->add_option("--retention", options->retention,
                   "Of what was sent, in SQLite; in PostgreSQL `hapax migrate` says it")
      ->capture_default_str();
  relay->add_option("--name", options->name,
                    "For people; unique among relays, made up if left out");
  relay->add_option("--lease", options->lease, "For how long lanes are held")
      ->capture_default_str();
  relay->add_option("--batch", options->batch, "Most records of a lane at once")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  relay->add_option("--attempts", options->attempts, "Then a record is a dead letter")
      ->check(CLI::Range(1, 1'000))
      ->capture_default_str();
  relay
      ->add_option("--concurrency", options->concurrency,
                   "Requests to an endpoint at once; records of one key go one by one")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  relay->add_option("--token-file", options->token_file,
                    "File with the token; for a stream, or HAPAX_TOKEN");
  relay->add_option("--ca-file", options->authorities, "PEM file of who may sign for https");
  relay->add_option("--metrics", options->metrics,
                    "Address for /metrics, /health/live and /health/ready: 127.0.0.1:9180");
  relay->add_option("--log", options->log, "How it is logged")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  relay->add_flag("--once", options->once, "Send what is there, and leave");
  relay->add_flag("--status", options->status, "Only say what waits, and who holds what");
  CLI::Option* list =
      relay->add_flag("--dead-letters", options->dead_letters, "Only list what was given up");
  CLI::Option* some = relay->add_option("--redrive", options->redrive,
                                        "Only publish the dead letter of this id again; several");
  CLI::Option* every =
      relay->add_flag("--redrive-all", options->redrive_all, "Only publish all of them again");
  relay->add_option("--rate", options->rate, "Redrive so many per second, as 50/s");
  relay->add_option("--since", options->since,
                    "Redrive what died since then: a span, as 2h, or a time (RFC 3339)");
  relay->add_flag("--dry-run", options->dry_run, "Only show what would be redriven");
  list->excludes(some)->excludes(every);
  some->excludes(every);
  relay->add_flag_callback(
      "--json", [options] { options->output = Output::kJson; }, "Print JSON");
  relay->footer(
      "Example: hapax relay --from postgres://app@db/shop --to "
      "http://127.0.0.1:7171/streams/orders\n"
      "         hapax relay --from sqlite:shop.db --to ./hapax-data/streams/orders --once\n"
      "         hapax relay --from postgres:///shop --status --json");
  relay->callback([options, &exit_code] { exit_code = run_relay(*options); });
}

}  // namespace hapax::cli
