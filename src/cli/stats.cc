// stats: the figures of the store and of its streams, once or again and again.
#include <memory>
#include <string>
#include <thread>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "base/format.h"
#include "cli/show.h"
#include "cli/span.h"
#include "cli/store_commands.h"
#include "cli/way.h"
#include "wire/json_text.h"

namespace hapax::cli {

namespace {

using wire::JsonValue;

struct StatsOptions {
  Target target;
  bool watch = false;
  std::string every = "2s";
  std::uint64_t times = 0;  // 0: no end
};

struct StreamFigures {
  std::string stream;
  JsonValue json;
};

class Figures {
 public:
  explicit Figures(Way& way) : way_(way) {}

  bool take() {
    const auto names = way_.look("/api/v1/streams");
    if (!names) return false;
    streams_.clear();
    for (const JsonValue& name : list_in(names->json, "streams")) {
      const std::string& stream = *name.get<std::string>();
      auto told = way_.ask({.method = "GET", .path = "/api/v1/streams/" + client::encoded(stream)});
      if (!told) return false;
      if (told->good()) streams_.push_back({stream, std::move(told->json)});
    }
    auto store = way_.ask({.method = "GET", .path = "/api/v1/statistics"});
    if (!store) return false;
    store_.reset();
    if (store->good()) store_ = std::move(store->json);
    return true;
  }

  void print_json() const {
    wire::JsonArray streams;
    for (const StreamFigures& one : streams_) streams.add(json_of(one.json));
    base::print("{}\n", wire::JsonObject()
                            .raw("store", store_ ? json_of(*store_) : "null")
                            .raw("streams", streams.text())
                            .text());
  }

  // `before`: what was a span ago, for rates; none the first time.
  void print(const Figures* before, double seconds) const {
    if (store_) {
      base::print("{}", member_lines(*store_));
      if (before != nullptr && before->store_) print_rates(*before->store_, seconds);
    } else {
      base::print("the store's figures are for the right admin\n");
    }
    Table table({"stream", "records", "bytes", "ids", "consumer", "lag", "in flight", "waiting",
                 "dead letters"});
    for (const StreamFigures& one : streams_) add_rows(table, one);
    if (!table.empty()) base::print("\n{}", table.text());
  }

 private:
  void print_rates(const JsonValue& before, double seconds) const {
    for (const char* name : {"commits", "batches"}) {
      const auto grown = static_cast<double>(number_in(*store_, name) - number_in(before, name));
      base::print("{} per second  {:.1f}\n", name, grown / seconds);
    }
  }

  static void add_rows(Table& table, const StreamFigures& one) {
    const std::int64_t last = number_in(one.json, "last");
    const std::int64_t records = last == 0 ? 0 : last - number_in(one.json, "first") + 1;
    const auto number = [&](std::string_view name) {
      return std::to_string(number_in(one.json, name));
    };
    const std::vector<std::string> front = {printable(one.stream), std::to_string(records),
                                            number("bytes"), number("ids")};
    const auto& consumers = list_in(one.json, "consumers");
    if (consumers.empty()) {
      table.add({front[0], front[1], front[2], front[3], "-", "-", "-", "-", "-"});
    }
    for (const JsonValue& consumer : consumers) {
      const auto of = [&](std::string_view name) {
        return std::to_string(number_in(consumer, name));
      };
      table.add({front[0], front[1], front[2], front[3], printable(text_in(consumer, "consumer")),
                 std::to_string(last - number_in(consumer, "floor")), of("in_flight"),
                 of("waiting"), of("dead_lettered")});
    }
  }

  Way& way_;
  std::optional<JsonValue> store_;
  std::vector<StreamFigures> streams_;
};

int run_stats(Way& way, const StatsOptions& options, Duration every) {
  std::optional<Figures> before;
  for (std::uint64_t turn = 1;; ++turn) {
    Figures now(way);
    if (!now.take()) return way.exit_code();
    const bool screen = options.watch && !way.json() && ::isatty(STDOUT_FILENO) == 1;
    if (screen) base::print("\x1b[H\x1b[2J");
    const double seconds = static_cast<double>(every.count()) / 1000;
    way.json() ? now.print_json() : now.print(before ? &*before : nullptr, seconds);
    std::fflush(stdout);
    if (!options.watch || turn == options.times) return kExitOk;
    before.emplace(std::move(now));
    std::this_thread::sleep_for(every);
  }
}

}  // namespace

void declare_stats(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<StatsOptions>();
  CLI::App* stats = app.add_subcommand("stats", "Show figures of the store and its streams");
  CLI::Option* watch =
      stats->add_flag("--watch", options->watch, "Again and again, until interrupted");
  stats->add_option("--every", options->every, "Of --watch: how often")->capture_default_str();
  stats->add_option("--times", options->times, "Of --watch: how many times")->needs(watch);
  add_target(*stats, options->target);
  stats->footer(
      "Example: hapax stats\n         hapax stats --watch --every 5s\n"
      "         hapax stats --json");
  stats->callback([options, &exit_code] {
    const auto every = span_of(options->every);
    if (!every || *every < Duration{10}) {
      exit_code = report({Errc::kInvalidArgument,
                          "--every '" + options->every + "' is no span of time such as 2s"});
      return;
    }
    exit_code = on_way(options->target, [&](Way& way) { return run_stats(way, *options, *every); });
  });
}

}  // namespace hapax::cli
