// relay: drains outboxes of applications' databases into a stream or an endpoint.
#include <atomic>
#include <csignal>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <hapax/embedded.h>

#include "cli/commands.h"
#include "cli/show.h"
#include "cli/span.h"
#include "cli/store_commands.h"
#include "cli/way.h"
#include "client/sinks.h"
#include "host/clock.h"
#include "host/whole_file.h"
#include "postgres/outbox_source.h"
#include "relay/engine.h"
#include "relay/stream_sink.h"
#include "sqlite/outbox_source.h"
#include "wire/json_text.h"

namespace hapax::cli {

namespace {

constexpr Duration kTroubleFirst{500};  // after an error of the database, doubled …
constexpr Duration kTroubleMax{15'000};
constexpr std::int64_t kCleanEveryMs = 60'000;
constexpr Duration kLeaseMin{1'000};
constexpr std::string_view kPolls =
    "NOTIFY does not come through, as behind a pooler that changes sessions: new records are "
    "looked "
    "for, at last every 1.7 s. A direct connection, or a pooler that pools sessions, makes it "
    "sooner";

struct RelayOptions {
  std::vector<std::string> from;
  std::string to;
  std::string schema = "hapax";
  std::string prefix = "hapax_";
  std::string retention = "30d";
  std::string name;
  std::string lease = "15s";
  std::string token_file;
  std::string authorities;
  std::uint32_t batch = relay::Settings{}.batch;
  std::uint32_t attempts = relay::Settings{}.attempts_max;
  std::vector<std::string> redrive;  // ids
  bool redrive_all = false;
  bool once = false;
  bool status = false;
  bool dead_letters = false;
  Output output = Output::kText;

  [[nodiscard]] bool sends() const {
    return !status && !dead_letters && !redrive_all && redrive.empty();
  }
};

// One line per event, from any thread.
void say(std::string_view text) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  fmt::print(stderr, "hapax relay: {}\n", text);
}

Result<std::unique_ptr<relay::Source>> open_source(const RelayOptions& options,
                                                   const std::string& from) {
  if (is_postgres(from)) {
    const bool sleeps = options.sends() && !options.once;
    HAPAX_TRY(
        auto source,
        postgres::OutboxSource::open(
            {.uri = from, .schema = options.schema, .owner = options.name, .listen = sleeps}));
    if (sleeps && !source->is_notified()) say(without_password(from) + ": " + std::string(kPolls));
    return std::unique_ptr<relay::Source>(std::move(source));
  }
  if (from.starts_with("sqlite:")) {
    const auto retention = span_of(options.retention);
    if (!retention) {
      return Error{Errc::kInvalidArgument, "--retention " + options.retention + " is no span"};
    }
    HAPAX_TRY(auto source, sqlite::OutboxSource::open({.path = from.substr(7),
                                                       .prefix = options.prefix,
                                                       .owner = options.name,
                                                       .retention = *retention}));
    return std::unique_ptr<relay::Source>(std::move(source));
  }
  return Error{Errc::kInvalidArgument,
               "'" + from + "' is no outbox: postgres://… and sqlite:FILE are"};
}

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
      return Error{
          Errc::kInvalidArgument,
          "'" + options.to + "' is no destination; as in http://127.0.0.1:7171/streams/orders"};
    }
    HAPAX_TRY(store_, open_embedded(where));
    return Ok{};
  }

  [[nodiscard]] std::unique_ptr<relay::Sink> make_sink() {
    if (store_) return std::make_unique<relay::StoreSink>(*store_, stream_);
    if (!stream_.empty()) return std::make_unique<client::StreamSink>(client_, stream_);
    client::Options options = client_;
    options.url.prefix.clear();
    return std::make_unique<client::EndpointSink>(options, client_.url.prefix);
  }

 private:
  Status open_url(const RelayOptions& options, const std::string& where) {
    HAPAX_TRY(client_.url, client::parse_url(where));
    client_.authorities = options.authorities;
    const char* variable = std::getenv("HAPAX_TOKEN");
    client_.token = variable == nullptr ? "" : variable;
    if (!options.token_file.empty()) {
      HAPAX_TRY(client_.token, host::read_file(options.token_file));
    }
    while (!client_.token.empty() && client_.token.back() <= ' ') client_.token.pop_back();
    return Ok{};
  }

  std::string stream_;
  client::Options client_;
  std::unique_ptr<Store> store_;
};

// One outbox, on a thread of its own.
class Drain {
 public:
  Drain(const RelayOptions& options, std::string from, std::unique_ptr<relay::Source> source,
        std::unique_ptr<relay::Sink> sink, const relay::Settings& settings)
      : once_(options.once),
        from_(without_password(from)),
        source_(std::move(source)),
        sink_(std::move(sink)),
        engine_(*source_, *sink_, clock_, settings,
                [this](std::string_view text) { say(from_ + ": " + std::string(text)); }) {}

  void run() {
    Duration trouble{0};
    while (!stop_) {
      auto round = engine_.round();
      if (!round) {
        trouble = trouble == Duration{0} ? kTroubleFirst : std::min(trouble * 2, kTroubleMax);
        say(from_ + ": " + round.error().text());
        failed_ = true;
        if (once_) break;
        rest(trouble);
        continue;
      }
      trouble = Duration{0};
      if (round->idle_for == Duration{0}) continue;
      if (once_) {
        failed_ = round->paused;
        break;
      }
      clean();
      source_->wait(round->idle_for);
    }
    const auto stopped = engine_.stop();
    if (!stopped) say(from_ + ": " + stopped.error().text());
  }
  void stop() {
    stop_ = true;
    source_->wake();
  }

  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] const relay::Counts& counts() const { return engine_.counts(); }
  [[nodiscard]] const std::string& from() const { return from_; }

 private:
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

  const bool once_;
  const std::string from_;
  host::HostClock clock_;
  std::unique_ptr<relay::Source> source_;
  std::unique_ptr<relay::Sink> sink_;
  relay::Engine engine_;
  std::int64_t clean_at_ms_ = 0;
  std::atomic<bool> stop_ = false;
  bool failed_ = false;
};

// Signals are waited for by one thread; the others inherit that they are blocked.
class StopSignals {
 public:
  StopSignals() {
    sigemptyset(&set_);
    for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) sigaddset(&set_, signal);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
  }
  void wait() const {
    int signal = 0;
    sigwait(&set_, &signal);
  }
  // Lets wait() return.
  static void end() { ::kill(::getpid(), SIGUSR1); }

 private:
  sigset_t set_{};
};

int print_counts(const RelayOptions& options, const std::vector<std::unique_ptr<Drain>>& drains) {
  bool failed = false;
  for (const auto& drain : drains) {
    const relay::Counts& counts = drain->counts();
    failed = failed || drain->failed();
    if (options.output == Output::kJson) {
      fmt::print("{}\n", wire::JsonObject()
                             .add("from", drain->from())
                             .add("accepted", counts.accepted)
                             .add("retried", counts.retried)
                             .add("dead", counts.dead)
                             .text());
    } else {
      fmt::print("{}: {} accepted, {} to be tried again, {} dead letters\n", drain->from(),
                 counts.accepted, counts.retried, counts.dead);
    }
  }
  return options.once && failed ? kExitLater : kExitOk;
}

Result<relay::Settings> settings_of(const RelayOptions& options) {
  relay::Settings settings;
  settings.batch = options.batch;
  settings.attempts_max = options.attempts;
  const auto lease = span_of(options.lease);
  if (!lease || *lease < kLeaseMin) {
    return Error{Errc::kInvalidArgument, "--lease " + options.lease +
                                             " is no span of at least 1s; units are " +
                                             std::string(kSpanUnits)};
  }
  settings.lease = *lease;
  settings.margin = std::min(settings.margin, settings.lease / 5);
  return settings;
}

Result<int> relay_all(const RelayOptions& options) {
  const StopSignals signals;
  HAPAX_TRY(const relay::Settings settings, settings_of(options));
  Destination destination;
  HAPAX_CHECK(destination.open(options));
  std::vector<std::unique_ptr<Drain>> drains;
  for (const std::string& from : options.from) {
    HAPAX_TRY(auto source, open_source(options, from));
    drains.push_back(std::make_unique<Drain>(options, from, std::move(source),
                                             destination.make_sink(), settings));
  }
  std::atomic<std::size_t> left = drains.size();
  std::vector<std::jthread> threads;
  for (const auto& drain : drains) {
    threads.emplace_back([&left, &drain] {
      drain->run();
      if (--left == 0) StopSignals::end();
    });
  }
  if (!options.once) say("relaying to " + options.to);
  signals.wait();
  for (const auto& drain : drains) drain->stop();
  threads.clear();
  return print_counts(options, drains);
}

std::string json_of_lane(const relay::LaneReport& lane) {
  wire::JsonObject object;
  object.add("lane", lane.lane);
  lane.owner.empty() ? object.raw("owner", "null") : object.add("owner", lane.owner);
  object.add("lease_ms", lane.lease_left.count()).add("waiting", lane.waiting);
  lane.oldest_waiting ? object.add("oldest_waiting_ms", lane.oldest_waiting->count())
                      : object.raw("oldest_waiting_ms", "null");
  object.add("attempts", lane.attempts).add("retries", lane.retries);
  object.add("blocked_keys", lane.blocked_keys).add("delivered", lane.sent);
  return object.text();
}

struct Sums {
  std::uint64_t waiting = 0;
  std::uint64_t retries = 0;
  std::uint64_t blocked_keys = 0;
  std::uint64_t lanes_held = 0;
  std::uint64_t sent = 0;
  Duration oldest{0};
};

Sums sums_of(const relay::Report& report) {
  Sums sums;
  for (const relay::LaneReport& lane : report.lanes) {
    sums.waiting += lane.waiting;
    sums.retries += lane.retries;
    sums.blocked_keys += lane.blocked_keys;
    sums.sent += lane.sent;
    if (!lane.owner.empty()) ++sums.lanes_held;
    sums.oldest = std::max(sums.oldest, lane.oldest_waiting.value_or(Duration{0}));
  }
  return sums;
}

void print_report_json(const std::string& from, const relay::Report& report) {
  const Sums sums = sums_of(report);
  wire::JsonArray lanes;
  for (const relay::LaneReport& lane : report.lanes) lanes.add(json_of_lane(lane));
  wire::JsonObject object;
  object.add("from", from).add("waiting", sums.waiting).add("lag_ms", sums.oldest.count());
  object.add("delivered", sums.sent);
  object.add("retries", sums.retries).add("blocked_keys", sums.blocked_keys);
  object.add("dead_letters", report.dead_letters).add("outbox_bytes", report.outbox_bytes);
  object.add("dead_rows", report.dead_rows);
  report.oldest_transaction
      ? object.add("oldest_transaction_ms", report.oldest_transaction->count())
            .add("oldest_transaction_of", report.oldest_transaction_of)
      : object.raw("oldest_transaction_ms", "null").raw("oldest_transaction_of", "null");
  fmt::print("{}\n", object.raw("lanes", lanes.text()).text());
}

void print_report(const std::string& from, const relay::Report& report) {
  const Sums sums = sums_of(report);
  fmt::print("{}\n", from);
  fmt::print("  waiting         {} (the oldest for {} ms)\n", sums.waiting, sums.oldest.count());
  fmt::print("  delivered       {}\n", sums.sent);
  fmt::print("  to be retried   {}, {} keys wait\n", sums.retries, sums.blocked_keys);
  fmt::print("  dead letters    {}\n", report.dead_letters);
  fmt::print("  outbox          {} bytes, {} dead rows\n", report.outbox_bytes, report.dead_rows);
  if (report.oldest_transaction) {
    fmt::print("  oldest transaction open for {} ms: {}\n", report.oldest_transaction->count(),
               report.oldest_transaction_of);
  }
  fmt::print("  lanes           {} of {} are held\n", sums.lanes_held, report.lanes.size());
  for (const relay::LaneReport& lane : report.lanes) {
    fmt::print(
        "  lane {:>2}  {:>7} waiting  {:>5} retries  {}\n", lane.lane, lane.waiting, lane.retries,
        lane.owner.empty() ? "nobody"
                           : fmt::format("{} for {} ms", lane.owner, lane.lease_left.count()));
  }
}

Result<int> show_status(const RelayOptions& options) {
  for (const std::string& from : options.from) {
    HAPAX_TRY(const auto source, open_source(options, from));
    HAPAX_TRY(const relay::Report report, source->report());
    if (options.output == Output::kJson) {
      print_report_json(without_password(from), report);
    } else {
      print_report(without_password(from), report);
    }
  }
  return kExitOk;
}

Result<int> list_dead_letters(const RelayOptions& options) {
  constexpr std::uint32_t kMost = 10'000;
  for (const std::string& from : options.from) {
    HAPAX_TRY(const auto source, open_source(options, from));
    HAPAX_TRY(const auto letters, source->dead_letters(kMost));
    for (const relay::DeadLetter& letter : letters) {
      if (options.output == Output::kJson) {
        fmt::print("{}\n", wire::JsonObject()
                               .add("from", without_password(from))
                               .add("id", letter.id)
                               .add("type", letter.type)
                               .add("key", letter.key)
                               .add("attempts", letter.attempts)
                               .add("dead_ms", letter.dead_for.count())
                               .add("reason", letter.reason)
                               .text());
      } else {
        fmt::print("{}  {}  {} attempts  {}\n", letter.id, letter.type, letter.attempts,
                   letter.reason);
      }
    }
  }
  return kExitOk;
}

Result<int> redrive_dead_letters(const RelayOptions& options) {
  std::uint64_t all = 0;
  for (const std::string& from : options.from) {
    HAPAX_TRY(const auto source, open_source(options, from));
    HAPAX_TRY(const std::uint64_t count, source->redrive(options.redrive));
    all += count;
    if (options.output == Output::kJson) {
      fmt::print(
          "{}\n",
          wire::JsonObject().add("from", without_password(from)).add("redriven", count).text());
    } else {
      fmt::print("{}: {} published again\n", without_password(from), count);
    }
  }
  return all == 0 && !options.redrive.empty() ? kExitMissing : kExitOk;
}

Result<int> done_by(const RelayOptions& options) {
  if (options.sends()) return relay_all(options);
  if (options.status) return show_status(options);
  return options.dead_letters ? list_dead_letters(options) : redrive_dead_letters(options);
}

int run_relay(RelayOptions options) {
  if (options.name.empty()) options.name = who() + "/" + fresh_key();
  if (options.sends() && options.to.empty()) {
    fmt::print(stderr,
               "hapax: --to is required, unless --status, --dead-letters or --redrive is wanted\n");
    return kExitUsage;
  }
  const auto done = done_by(options);
  return done ? *done : report(done.error());
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
  relay->add_option("--token-file", options->token_file, "File with the token; or HAPAX_TOKEN");
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
