// dead: the dead letters of a workflow, or of any consumer: list, show, replay, drop.
#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/format.h"
#include "cli/pace.h"
#include "cli/show.h"
#include "cli/store_commands.h"
#include "cli/way.h"
#include "delivery/stream_source.h"
#include "wire/json_text.h"

namespace hapax::cli {

namespace {

using wire::JsonValue;

constexpr int kNotFound = 404;
constexpr std::int64_t kDeadPage = 200;
constexpr std::string_view kDeadSuffix = ".dead";

struct DeadOptions {
  Target target;
  std::string name;
  std::vector<std::int64_t> sequences;
  std::string since;
  std::string until;
  std::string type;
  std::string group;
  std::string id;
  std::string reason;
  std::string rate;
  std::int64_t through = 0;
  bool all = false;
  bool dry_run = false;
};

bool has_filter(const DeadOptions& options) {
  const std::string* filters[] = {&options.since, &options.until, &options.type,
                                  &options.group, &options.id,    &options.reason};
  return std::any_of(std::begin(filters), std::end(filters),
                     [](const std::string* filter) { return !filter->empty(); });
}

// Workflows keep theirs in ID.dead; any other stream of dead letters is named as it is.
std::string stream_named(const std::string& name) {
  return name.ends_with(kDeadSuffix) ? name : name + std::string(kDeadSuffix);
}

std::string type_of(const JsonValue& record) {
  for (const JsonValue& header : list_in(record, "headers")) {
    const auto* pair = header.get<JsonValue::Array>();
    if (pair == nullptr || pair->size() != 2) continue;
    const auto* name = pair->front().get<std::string>();
    const auto* value = pair->back().get<std::string>();
    if (name != nullptr && value != nullptr && *name == delivery::kTypeHeader) return *value;
  }
  return {};
}

// Which dead letters are meant. All of what is said must hold.
class DeadFilter {
 public:
  static Result<DeadFilter> make(const DeadOptions& options) {
    DeadFilter filter(options);
    if (!options.since.empty()) {
      HAPAX_TRY(filter.since_ms_, moment_of("--since", options.since));
    }
    if (!options.until.empty()) {
      HAPAX_TRY(filter.until_ms_, moment_of("--until", options.until));
    }
    return filter;
  }

  [[nodiscard]] bool takes(const JsonValue& record) const {
    const JsonValue* lineage = record.find("lineage");
    if (lineage == nullptr) return false;
    const std::int64_t died_ms = number_in(record, "time_ms");
    return died_ms >= since_ms_ && died_ms <= until_ms_ && is_named(record) &&
           is(options_.type, type_of(record)) && is(options_.group, bytes_in(record, "group")) &&
           is(options_.id, bytes_in(record, "id")) &&
           text_in(*lineage, "reason").find(options_.reason) != std::string::npos;
  }

 private:
  explicit DeadFilter(const DeadOptions& options)
      : options_(options), named_(options.sequences.begin(), options.sequences.end()) {}

  static bool is(const std::string& wanted, const std::string& value) {
    return wanted.empty() || wanted == value;
  }
  [[nodiscard]] bool is_named(const JsonValue& record) const {
    return named_.empty() || named_.contains(number_in(record, "sequence"));
  }

  const DeadOptions& options_;
  std::set<std::int64_t> named_;
  std::int64_t since_ms_ = std::numeric_limits<std::int64_t>::min();
  std::int64_t until_ms_ = std::numeric_limits<std::int64_t>::max();
};

class DeadCommand {
 public:
  DeadCommand(Way& way, const DeadOptions& options)
      : way_(way), options_(options), stream_(stream_named(options.name)) {}

  int list() {
    Table table({"sequence", "died", "attempts", "replays", "id", "group", "type", "reason"});
    const bool well = each([&](const JsonValue& record) {
      if (way_.json()) {
        base::print("{}\n", json_of(record));
      } else {
        table.add(row_of(record));
      }
    });
    if (!well) return way_.exit_code();
    if (!way_.json()) base::print("{}", table.empty() ? "no dead letters\n" : table.text());
    return kExitOk;
  }

  int show() {
    bool found = false;
    const bool well = each([&](const JsonValue& record) {
      found = true;
      base::print("{}{}", way_.json() ? json_of(record) + "\n" : member_lines(record),
                  way_.json() ? "" : history_text(record));
    });
    if (!well) return way_.exit_code();
    if (found) return kExitOk;
    return way_.fail(kExitMissing, base::format("stream '{}' has no dead letter {}", stream_,
                                                options_.sequences.front()));
  }

  int replay(std::uint32_t rate) {
    std::vector<std::int64_t> meant;
    if (!each([&](const JsonValue& record) { meant.push_back(number_in(record, "sequence")); })) {
      return way_.exit_code();
    }
    if (options_.dry_run) return tell_dry_run(meant);
    Pace pace(meant.size(), rate, "put back");
    for (std::size_t at = 0; at < meant.size(); at += pace.step()) {
      pace.wait_for(at);
      const auto end = std::min(at + pace.step(), meant.size());
      if (!put_back({meant.begin() + static_cast<std::ptrdiff_t>(at),
                     meant.begin() + static_cast<std::ptrdiff_t>(end)})) {
        return way_.exit_code();
      }
      pace.tell(at + pace.step());
    }
    return tell_put_back(meant.size());
  }

  int drop() {
    const std::string body = wire::JsonObject().add("before", options_.through + 1).text();
    const auto told = way_.ask_good(
        {.method = "POST", .path = path() + "/trim", .body = body, .key = fresh_key()});
    if (!told) return way_.exit_code();
    if (way_.json()) {
      base::print("{}\n", told->reply.body);
    } else {
      base::print("{}: dead letters up to {} are dropped\n", stream_, options_.through);
    }
    return exit_of(*told);
  }

 private:
  [[nodiscard]] std::string path() const { return "/api/v1/streams/" + client::encoded(stream_); }

  // Those that are meant, of those that are there now: one that dies meanwhile is not among them.
  bool each(const std::function<void(const JsonValue&)>& act) {
    auto filter = DeadFilter::make(options_);
    if (!filter) return refuse(filter.error());
    const auto stream = way_.ask({.method = "GET", .path = path()});
    if (!stream) return false;
    // It is made with the first dead letter.
    if (stream->reply.status == kNotFound) return true;
    if (!stream->good()) {
      way_.fail(*stream);
      return false;
    }
    const std::int64_t last = number_in(stream->json, "last");
    for (std::int64_t next = number_in(stream->json, "first"); next <= last;) {
      const auto told =
          way_.look(base::format("{}/records?from={}&max={}", path(), next, kDeadPage));
      if (!told) return false;
      const auto& records = list_in(told->json, "records");
      if (records.empty()) return true;
      for (const JsonValue& record : records) {
        next = number_in(record, "sequence") + 1;
        if (next <= last + 1 && filter->takes(record)) act(record);
      }
    }
    return true;
  }
  bool refuse(const Error& error) {
    way_.fail(kExitUsage, error.detail);
    return false;
  }

  static std::vector<std::string> row_of(const JsonValue& record) {
    const JsonValue& lineage = *record.find("lineage");
    return {std::to_string(number_in(record, "sequence")),
            instant_text(number_in(record, "time_ms")),
            std::to_string(number_in(lineage, "attempts")),
            std::to_string(number_in(lineage, "redrives")),
            printable(bytes_in(record, "id")),
            printable(bytes_in(record, "group")),
            printable(type_of(record)),
            printable(text_in(lineage, "reason"))};
  }

  static std::string history_text(const JsonValue& record) {
    Table table({"attempt", "handed out", "ended", "by", "reason"});
    for (const JsonValue& past : list_in(*record.find("lineage"), "history")) {
      table.add({std::to_string(number_in(past, "attempt")),
                 instant_text(number_in(past, "handed_out_ms")),
                 instant_text(number_in(past, "ended_ms")), printable(text_in(past, "owner")),
                 printable(text_in(past, "reason"))});
    }
    return table.empty() ? std::string() : "\n" + table.text();
  }

  int tell_dry_run(const std::vector<std::int64_t>& meant) const {
    if (way_.json()) {
      wire::JsonArray sequences;
      for (const std::int64_t sequence : meant) sequences.add(std::to_string(sequence));
      base::print("{}\n", wire::JsonObject()
                              .add("stream", stream_)
                              .add("would_replay", meant.size())
                              .raw("sequences", sequences.text())
                              .text());
    } else {
      base::print("{}: {} would be put back\n", stream_, meant.size());
    }
    return kExitOk;
  }

  // One commit, each on its own: one that somebody else put back meanwhile hinders no other.
  bool put_back(const std::vector<std::int64_t>& sequences) {
    wire::JsonArray ops;
    for (const std::int64_t sequence : sequences) {
      ops.add(wire::JsonObject()
                  .add("op", "redrive")
                  .add("dead_letters", stream_)
                  .add("sequence", sequence)
                  .text());
    }
    const std::string body = wire::JsonObject().add("mode", "each").raw("ops", ops.text()).text();
    const auto told = way_.ask_good(
        {.method = "POST", .path = "/api/v1/commit", .body = body, .key = fresh_key()});
    if (!told) return false;
    std::size_t at = 0;
    for (const JsonValue& verdict : list_in(told->json, "verdicts")) {
      count(sequences[at++], verdict);
    }
    return true;
  }
  void count(std::int64_t sequence, const JsonValue& verdict) {
    const std::string word = text_in(verdict, "verdict");
    if (word == "fresh") {
      ++put_back_;
    } else if (word == "duplicate") {
      ++known_;  // Another letter of the same failure was put back before.
    } else {
      ++refused_;
      base::print(stderr, "hapax: {} stays a dead letter: {}\n", sequence,
                  printable(verdict_line(verdict)));
    }
  }
  int tell_put_back(std::size_t meant) const {
    if (way_.json()) {
      base::print("{}\n", wire::JsonObject()
                              .add("stream", stream_)
                              .add("replayed", put_back_)
                              .add("replayed_before", known_)
                              .add("refused", refused_)
                              .text());
    } else {
      base::print("{}: {} put back\n", stream_, put_back_);
      if (known_ > 0) base::print("{}: {} were put back before\n", stream_, known_);
    }
    if (refused_ > 0) return kExitFailed;
    return meant == 0 ? kExitMissing : kExitOk;
  }

  Way& way_;
  const DeadOptions& options_;
  const std::string stream_;
  std::uint64_t put_back_ = 0;
  std::uint64_t known_ = 0;
  std::uint64_t refused_ = 0;
};

int replay(const DeadOptions& options) {
  const bool chooses = !options.sequences.empty() || has_filter(options);
  if (chooses == options.all) {
    return report(Error{Errc::kInvalidArgument,
                        "say which dead letters: sequences, filters such as --since 2h, or --all"});
  }
  std::uint32_t rate = 0;
  if (!options.rate.empty()) {
    const auto given = rate_of(options.rate);
    if (!given) return report(given.error());
    rate = *given;
  }
  return on_way(options.target, [&](Way& way) { return DeadCommand(way, options).replay(rate); });
}

CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& help,
                      DeadOptions& options) {
  CLI::App* sub = app.add_subcommand(name, help);
  sub->add_option("workflow", options.name,
                  "Id of the workflow, or the name of a stream that ends in .dead")
      ->required();
  return sub;
}

void add_filters(CLI::App& sub, DeadOptions& options) {
  sub.add_option("--since", options.since, "That died then or later: 2h, 2026-01-31T12:00:00Z");
  sub.add_option("--until", options.until, "That died then or earlier");
  sub.add_option("--type", options.type, "Of that event type");
  sub.add_option("--group", options.group, "Of that group key");
  sub.add_option("--id", options.id, "With that message id");
  sub.add_option("--reason", options.reason, "Whose reason contains this text: 'HTTP 422'");
}

void declare_list(CLI::App& dead, int& exit_code) {
  const auto options = std::make_shared<DeadOptions>();
  CLI::App* sub = add_command(dead, "list", "List them, oldest first", *options);
  add_filters(*sub, *options);
  add_target(*sub, options->target);
  sub->footer("Example: hapax dead list orders-to-erp --since 2h --reason 'HTTP 422'");
  sub->callback([options, &exit_code] {
    exit_code =
        on_way(options->target, [&](Way& way) { return DeadCommand(way, *options).list(); });
  });
}

void declare_show(CLI::App& dead, int& exit_code) {
  const auto options = std::make_shared<DeadOptions>();
  CLI::App* sub = add_command(dead, "show", "Show one with its attempts", *options);
  sub->add_option("sequence", options->sequences, "As list shows it")->required()->expected(1);
  add_target(*sub, options->target);
  sub->footer("Example: hapax dead show orders-to-erp 1");
  sub->callback([options, &exit_code] {
    exit_code =
        on_way(options->target, [&](Way& way) { return DeadCommand(way, *options).show(); });
  });
}

void declare_replay(CLI::App& dead, int& exit_code) {
  const auto options = std::make_shared<DeadOptions>();
  CLI::App* sub = add_command(
      dead, "replay", "Put them back, under their keys; an interrupted replay resumes", *options);
  sub->add_option("sequences", options->sequences, "As list shows them");
  add_filters(*sub, *options);
  sub->add_flag("--all", options->all, "All that are there now");
  sub->add_option("--rate", options->rate, "At most so many a second: 50/s");
  sub->add_flag("--dry-run", options->dry_run, "Only count them");
  add_target(*sub, options->target);
  sub->footer(
      "Example: hapax dead replay orders-to-erp 1 2\n"
      "         hapax dead replay orders-to-erp --since 2h --rate 50/s\n"
      "         hapax dead replay orders-to-erp --all --dry-run");
  sub->callback([options, &exit_code] { exit_code = replay(*options); });
}

void declare_drop(CLI::App& dead, int& exit_code) {
  const auto options = std::make_shared<DeadOptions>();
  CLI::App* sub = add_command(dead, "drop", "Remove the oldest ones for good", *options);
  sub->add_option("--through", options->through, "Up to this sequence, and with it")
      ->required()
      ->check(CLI::PositiveNumber);
  add_target(*sub, options->target);
  sub->footer("Example: hapax dead drop orders-to-erp --through 17");
  sub->callback([options, &exit_code] {
    exit_code =
        on_way(options->target, [&](Way& way) { return DeadCommand(way, *options).drop(); });
  });
}

}  // namespace

void declare_dead(CLI::App& app, int& exit_code) {
  CLI::App* dead =
      app.add_subcommand("dead", "List, show, replay and drop dead letters of a workflow");
  dead->require_subcommand(1);
  dead->footer(
      "Example: hapax dead list orders-to-erp\n"
      "         hapax dead replay orders-to-erp --since 2h --rate 50/s");
  declare_list(*dead, exit_code);
  declare_show(*dead, exit_code);
  declare_replay(*dead, exit_code);
  declare_drop(*dead, exit_code);
}

}  // namespace hapax::cli
