// relay: drains outboxes of applications' databases into a stream or an endpoint.
#include "cli/relay.h"

#include <atomic>
#include <csignal>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include <hapax/embedded.h>

#include "base/format.h"
#include "base/mutex.h"
#include "base/span.h"
#include "cli/commands.h"
#include "cli/show.h"
#include "cli/span.h"
#include "cli/store_commands.h"
#include "cli/way.h"
#include "client/sinks.h"
#include "host/clock.h"
#include "host/signals.h"
#include "relay/relay.h"
#include "relay/stream_sink.h"
#include "wire/json_text.h"

namespace hapax::cli {

namespace {

constexpr Duration kTroubleFirst{500};  // after an error of the database, doubled …
constexpr Duration kTroubleMax{15'000};
constexpr std::int64_t kCleanEveryMs = 60'000;
constexpr Duration kLeaseMin{1'000};
constexpr Duration kLeaseMax{3'600'000};  // what is longer is taken for one of a wrong clock

// WHERE/streams/NAME is a stream of a server or of a data folder; another URL takes a record per
// request.
class Destination {
 public:
  Status open(const RelayOptions& options) {
    const std::size_t streams = options.to.rfind("/streams/");
    const bool is_url = options.to.starts_with("http://") || options.to.starts_with("https://");
    std::string where = options.to;
    if (streams != std::string::npos) {
      where = options.to.substr(0, streams);
      stream_ = options.to.substr(streams + 9);
      if (where.ends_with("/api/v1")) where.resize(where.size() - 7);
    }
    if (is_url) return open_url(options, where);
    if (stream_.empty()) {
      return Error{Errc::kInvalidArgument, "unknown destination '" + options.to +
                                               "'; expected a URL or FOLDER/streams/NAME, such as "
                                               "http://127.0.0.1:7171/streams/orders"};
    }
    HAPAX_CHECK(check_is_store(where));
    HAPAX_TRY(store_, open_embedded(where));
    return Ok{};
  }

  [[nodiscard]] std::unique_ptr<relay::Sink> make_sink() {
    if (store_) return std::make_unique<relay::StoreSink>(*store_, stream_);
    if (!stream_.empty()) return std::make_unique<client::StreamSink>(client_, stream_);
    client::ClientOptions options = client_;
    options.url.prefix.clear();
    return std::make_unique<client::EndpointSink>(options, client_.url.prefix);
  }

 private:
  Status open_url(const RelayOptions& options, const std::string& where) {
    HAPAX_TRY(client_.url, client::parse_url(where));
    client_.authorities = options.authorities;
    // HAPAX_TOKEN is for a Hapax server; an endpoint belongs to somebody else.
    const bool ours = !stream_.empty();
    if (ours || !options.token_file.empty()) {
      HAPAX_TRY(client_.token, token_of(options.token_file));
    }
    return Ok{};
  }

  std::string stream_;
  client::ClientOptions client_;
  std::unique_ptr<Store> store_;
};

// What waits in lanes that a relay does not hold, and who does.
struct OthersLanes {
  OthersLanes(const relay::OutboxReport& report, std::string_view own) {
    for (const relay::LaneReport& lane : report.lanes) {
      if (lane.waiting == 0 || lane.owner == own) continue;
      waiting += lane.waiting;
      if (!lane.owner.empty()) holders.insert(lane.owner);
    }
  }
  [[nodiscard]] std::string text() const {
    return base::format("records wait ({}) in lanes that others hold: {}", waiting,
                        base::joined(holders, ", "));
  }

  std::uint64_t waiting = 0;
  std::set<std::string> holders{};
};

std::uint64_t retries_in(const relay::OutboxReport& report) {
  std::uint64_t retries = 0;
  for (const relay::LaneReport& lane : report.lanes) retries += lane.retries;
  return retries;
}

// One outbox, on a thread of its own. A database that is away is waited for, also at the start.
class Drain {
 public:
  Drain(const RelayOptions& options, std::string from, std::string owner,
        std::unique_ptr<relay::Sink> sink, const relay::RelaySettings& settings)
      : options_(options),
        once_(options.once),
        uri_(std::move(from)),
        from_(without_password(uri_)),
        owner_(std::move(owner)),
        settings_(settings),
        sink_(std::move(sink)) {}

  // What will not mend itself is an error; whoever is away is tried again by run().
  Status open() {
    auto opened = open_source(options_, uri_, owner_);
    if (!opened && opened.error().code == Errc::kUnavailable) {
      fail(opened.error());
      return Ok{};
    }
    HAPAX_TRY(auto source, std::move(opened));
    const base::MutexLock lock(mutex_);
    source_ = std::move(source);
    if (stop_) source_->wake();
    engine_.emplace(*source_, *sink_, clock_, settings_,
                    [this](std::string_view text) { say(from_ + ": " + std::string(text)); });
    return Ok{};
  }

  void run() {
    if (!engine_ && !open_at_last()) return;
    relay_all_rounds();
    const auto stopped = engine_->stop();
    if (!stopped) say(from_ + ": " + stopped.error().text());
  }
  void stop() {
    const base::MutexLock lock(mutex_);
    stop_ = true;
    if (source_) source_->wake();
  }

  // What --once ends with.
  [[nodiscard]] int exit_code() const { return exit_code_; }
  [[nodiscard]] relay::RelayCounts counts() const {
    return engine_ ? engine_->counts() : relay::RelayCounts{};
  }
  [[nodiscard]] const std::string& from() const { return from_; }

 private:
  bool open_at_last() {
    Duration trouble = kTroubleFirst;
    while (!stop_ && !once_ && !engine_) {
      rest(trouble);
      trouble = std::min(trouble * 2, kTroubleMax);
      const Status opened = stop_ ? Status{Ok{}} : open();
      if (!opened) say(from_ + ": " + opened.error().text());
    }
    return engine_.has_value();
  }
  void relay_all_rounds() {
    Duration trouble{0};
    while (!stop_) {
      auto round = engine_->round();
      if (!round) {
        trouble = trouble == Duration{0} ? kTroubleFirst : std::min(trouble * 2, kTroubleMax);
        fail(round.error());
        if (once_) break;
        rest(trouble);
        continue;
      }
      trouble = Duration{0};
      if (!once_) look_after_rest();
      if (round->idle_for == Duration{0}) continue;
      if (once_ && is_over(*round)) break;
      source_->wait(round->idle_for);
    }
  }
  void fail(const Error& error) {
    say(from_ + ": " + error.text());
    exit_code_ = database_exit_code_of(error);
  }
  // Whether --once ends after a round that left nothing to do.
  bool is_over(const relay::Round& round) {
    if (round.paused) {
      exit_code_ = kExitLater;
      return true;
    }
    const std::int64_t now = clock_.steady_ms();  // A lease may end while the report is made.
    const auto report = source_->report();
    if (!report) {
      fail(report.error());
      return true;
    }
    const OthersLanes others(*report, owner_);
    if (others.waiting == 0) {
      tell_retries(*report);
      return true;
    }
    // A relay that died cannot be told from one that lives before its lease ends. Then its lanes
    // are free, and soon taken; whoever holds them for longer than that renews them, and sends.
    if (!others_kept_ms_) others_kept_ms_ = now + settings_.lease.count();
    if (now <= *others_kept_ms_ || others.holders.empty()) return false;
    say(from_ + ": " + others.text());
    exit_code_ = kExitLater;
    return true;
  }
  void tell_retries(const relay::OutboxReport& report) {
    const std::uint64_t retries = retries_in(report);
    if (retries == 0) return;
    say(base::format("{}: records wait ({}) for another attempt, or behind one that does", from_,
                     retries));
    exit_code_ = kExitLater;
  }
  // Also while there is always something to send.
  void look_after_rest() {
    clean();
    tell_idleness();
  }
  // Once, if others hold all lanes for longer than a lease, and leave records waiting.
  void tell_idleness() {
    const std::int64_t now = clock_.steady_ms();
    if (engine_->lanes() != 0) idle_since_ms_.reset();
    if (engine_->lanes() != 0 || told_idle_) return;
    if (!idle_since_ms_) idle_since_ms_ = now;
    if (now - *idle_since_ms_ <= settings_.lease.count()) return;
    idle_since_ms_ = now;
    const auto report = source_->report();
    if (!report) return;
    const OthersLanes others(*report, owner_);
    if (others.waiting == 0 || others.holders.empty()) return;
    told_idle_ = true;
    say(from_ + ": this relay holds no lane, and " + others.text());
  }
  // While the database is away there is nothing to wait on.
  void rest(Duration span) {
    const std::int64_t until = clock_.steady_ms() + span.count();
    while (!stop_ && clock_.steady_ms() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds{50});
    }
  }
  void clean() {
    const std::int64_t now = clock_.steady_ms();
    if (now < clean_at_ms_) return;
    const auto more = source_->clean();
    if (!more) say(from_ + ": cleaning: " + more.error().text());
    clean_at_ms_ = more && *more ? now : now + kCleanEveryMs;
  }

  const RelayOptions& options_;
  const bool once_;
  const std::string uri_;
  const std::string from_;  // as it may be shown
  const std::string owner_;
  const relay::RelaySettings settings_;
  host::HostClock clock_;
  base::Mutex mutex_;  // over source_ as it is made and woken
  std::unique_ptr<relay::Source> source_;
  std::unique_ptr<relay::Sink> sink_;
  std::optional<relay::Relay> engine_;
  std::int64_t clean_at_ms_ = 0;
  std::optional<std::int64_t> idle_since_ms_{};  // without a lane
  bool told_idle_ = false;
  std::optional<std::int64_t> others_kept_ms_{};  // until then --once waits for lanes of others
  std::atomic<bool> stop_ = false;
  int exit_code_ = kExitOk;
};

int print_counts(const RelayOptions& options, const std::vector<std::unique_ptr<Drain>>& drains) {
  int exit_code = kExitOk;
  for (const auto& drain : drains) {
    const relay::RelayCounts counts = drain->counts();
    if (exit_code == kExitOk) exit_code = drain->exit_code();
    if (options.output == Output::kJson) {
      base::print("{}\n", wire::JsonObject()
                              .add("from", drain->from())
                              .add("accepted", counts.accepted)
                              .add("retried", counts.retried)
                              .add("dead", counts.dead)
                              .text());
    } else {
      base::print("{}: {} accepted, {} to be tried again, {} dead letters\n", drain->from(),
                  counts.accepted, counts.retried, counts.dead);
    }
  }
  return options.once ? exit_code : kExitOk;
}

Result<relay::RelaySettings> settings_of(const RelayOptions& options) {
  relay::RelaySettings settings;
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

Result<int> relay_all(const RelayOptions& options) {
  // SIGUSR1: the last drain has ended by itself.
  const host::Signals signals{SIGTERM, SIGINT, SIGUSR1};
  HAPAX_TRY(const relay::RelaySettings settings, settings_of(options));
  Destination destination;
  HAPAX_CHECK(destination.open(options));
  std::vector<std::unique_ptr<Drain>> drains;
  for (const std::string& from : options.from) {
    const std::string suffix = drains.empty() ? "" : base::format("/{}", drains.size() + 1);
    drains.push_back(std::make_unique<Drain>(options, from, options.name + suffix,
                                             destination.make_sink(), settings));
    HAPAX_CHECK(drains.back()->open());
  }
  std::atomic<std::size_t> left = drains.size();
  std::vector<std::jthread> threads;
  for (const auto& drain : drains) {
    threads.emplace_back([&left, &drain] {
      drain->run();
      if (--left == 0) host::raise_in_process(SIGUSR1);
    });
  }
  if (!options.once) say("relaying to " + options.to);
  std::ignore = signals.wait();
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
  relay->add_option("--name", options->name, "Unique among relays; made up if left out");
  relay->add_option("--lease", options->lease, "For how long lanes are held")
      ->capture_default_str();
  relay->add_option("--batch", options->batch, "Most records of a lane at once")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  relay->add_option("--attempts", options->attempts, "Then a record is a dead letter")
      ->check(CLI::Range(1, 1'000))
      ->capture_default_str();
  relay->add_option("--token-file", options->token_file,
                    "File with the token; for a stream, or HAPAX_TOKEN");
  relay->add_option("--ca-file", options->authorities, "PEM file of who may sign for https");
  relay->add_flag("--once", options->once, "Send what is there, and leave");
  relay->add_flag("--status", options->status, "Only say what waits, and who holds what");
  CLI::Option* list =
      relay->add_flag("--dead-letters", options->dead_letters, "Only list what was given up");
  CLI::Option* some = relay->add_option("--redrive", options->redrive,
                                        "Only publish the dead letter of this id again; several");
  CLI::Option* every =
      relay->add_flag("--redrive-all", options->redrive_all, "Only publish all of them again");
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
