// dead: the dead letters of a workflow, or of any consumer: list, show, replay, drop.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/format.h"
#include "cli/pace.h"
#include "cli/show.h"
#include "cli/store_commands.h"
#include "cli/way.h"
#include "host/clock.h"
#include "wire/json_text.h"

namespace hapax::cli {

namespace {

using wire::JsonValue;

constexpr int kNotFound = 404;
constexpr std::size_t kDeadPage = 200;
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
  std::string endpoint;
  std::string status;
  std::string jq;
  std::string rate;
  std::int64_t through = 0;
  bool all = false;
  bool dry_run = false;
};

using DeadText = std::pair<std::string_view, const std::string*>;
std::vector<DeadText> texts_of(const DeadOptions& options) {
  return {{"type", &options.type},     {"group", &options.group},   {"id", &options.id},
          {"reason", &options.reason}, {"status", &options.status}, {"endpoint", &options.endpoint},
          {"jq", &options.jq}};
}

bool has_filter(const DeadOptions& options) {
  const auto texts = texts_of(options);
  const bool some = std::any_of(texts.begin(), texts.end(),
                                [](const DeadText& text) { return !text.second->empty(); });
  return some || !options.since.empty() || !options.until.empty();
}

// Workflows keep theirs in ID.dead; the stream may be named as well.
std::string workflow_named(std::string name) {
  if (name.ends_with(kDeadSuffix)) name.resize(name.size() - kDeadSuffix.size());
  return name;
}

std::string type_of(const JsonValue& record) {
  for (const JsonValue& header : list_in(record, "headers")) {
    const auto* pair = header.get<JsonValue::Array>();
    if (pair == nullptr || pair->size() != 2) continue;
    const auto* name = pair->front().get<std::string>();
    const auto* value = pair->back().get<std::string>();
    if (name != nullptr && value != nullptr && *name == "event_type") return *value;
  }
  return {};
}

// A filter as the API takes it, in the body of a replay or in the query of a list.
struct DeadAsked {
  wire::JsonObject body;
  std::string query;
};

Result<DeadAsked> asked_of(const DeadOptions& options) {
  DeadAsked asked;
  for (const auto& [name, text] : texts_of(options)) {
    if (text->empty()) continue;
    asked.body.add(name, *text);
    asked.query += base::format("&{}={}", name, client::encoded(*text));
  }
  for (const auto& [option, name, text] : {std::tuple{"--since", "since_ms", &options.since},
                                           std::tuple{"--until", "until_ms", &options.until}}) {
    if (text->empty()) continue;
    HAPAX_TRY(const std::int64_t ms, moment_of(option, *text));
    asked.body.add(name, ms);
    asked.query += base::format("&{}={}", name, ms);
  }
  if (options.all) asked.body.add("all", true);
  return asked;
}

class DeadCommand {
 public:
  DeadCommand(Way& way, const DeadOptions& options, DeadAsked asked)
      : way_(way),
        options_(options),
        asked_(std::move(asked)),
        workflow_(workflow_named(options.name)) {}

  int list() {
    Table table(
        {"sequence", "died", "attempts", "replays", "id", "group", "type", "endpoint", "reason"});
    const bool well = each([&](const JsonValue& found) {
      const JsonValue& record = *found.find("record");
      if (way_.json()) {
        base::print("{}\n", json_of(record));
      } else {
        table.add(row_of(record, text_in(found, "endpoint")));
      }
    });
    list_database(first_page_, table);
    if (!well) return way_.exit_code();
    if (!way_.json()) base::print("{}", table.empty() ? "no dead letters\n" : table.text());
    tell_rest();
    return kExitOk;
  }

  // Of the outbox of a database: they have an id and no sequence.
  void list_database(const JsonValue& told, Table& table) {
    for (const JsonValue& one : list_in(told, "database")) {
      if (way_.json()) {
        base::print("{}\n", json_of(one));
        continue;
      }
      table.add({"", instant_text(number_in(one, "died_ms")),
                 std::to_string(number_in(one, "attempts")), "", printable(text_in(one, "id")),
                 printable(text_in(one, "group")), printable(text_in(one, "type")), "",
                 printable(text_in(one, "reason"))});
    }
  }

  int show() {
    bool found = false;
    asked_.query += base::format("&sequence={}", options_.sequences.front());
    const bool well = each([&](const JsonValue& one) {
      const JsonValue& record = *one.find("record");
      found = true;
      base::print("{}{}", way_.json() ? json_of(record) + "\n" : member_lines(record),
                  way_.json() ? "" : history_text(record));
    });
    if (!well) return way_.exit_code();
    if (found) return kExitOk;
    return way_.fail(kExitMissing, base::format("stream '{}' has no dead letter {}", stream(),
                                                options_.sequences.front()));
  }

  int replay(std::uint32_t rate) {
    if (!count_meant()) return way_.exit_code();
    if (options_.dry_run) return tell_dry_run();
    Pace pace(matched_, rate, "put back");
    const std::size_t step = options_.sequences.empty() ? pace.step() : kDeadPage;
    std::optional<std::int64_t> from = 0;
    std::size_t done = 0;
    while (from) {
      pace.wait_for(done);
      const auto told = ask_replay(*from, rate == 0 ? kDeadPage : step, false);
      if (!told) return way_.exit_code();
      count(*told);
      done = static_cast<std::size_t>(replayed_ + repeated_ + gone_ + refused_);
      pace.tell(done);
      from = next_in(*told);
    }
    if (in_database_ > 0 && !replay_database(pace, step)) return way_.exit_code();
    pace.end();
    return tell_put_back();
  }

  int drop() {
    const auto told = way_.ask_good(
        {.method = "DELETE", .path = base::format("{}?through={}", path(), options_.through)});
    if (!told) return way_.exit_code();
    if (way_.json()) {
      base::print("{}\n", told->reply.body);
    } else {
      base::print("{}: dead letters up to {} are dropped\n", stream(), options_.through);
    }
    return exit_of(*told);
  }

 private:
  [[nodiscard]] std::string path() const {
    return base::format("/api/v1/workflows/{}/dead", client::encoded(workflow_));
  }
  [[nodiscard]] std::string stream() const { return workflow_ + std::string(kDeadSuffix); }

  static std::optional<std::int64_t> next_in(const JsonValue& told) {
    if (told.find("next") == nullptr) return std::nullopt;
    return number_in(told, "next");
  }

  // Those that are meant, of those that were there with the first page.
  template <class Act>
  bool each(const Act& act) {
    std::optional<std::int64_t> from = 0;
    std::int64_t last = -1;
    while (from && (last < 0 || *from <= last)) {
      const auto told = way_.ask(
          {.method = "GET",
           .path = base::format("{}?from={}&max={}{}", path(), *from, kDeadPage, asked_.query)});
      if (!told) return false;
      // The stream is made with the first dead letter.
      if (told->reply.status == kNotFound) return true;
      if (!told->good()) {
        way_.fail(*told);
        return false;
      }
      if (last < 0) {
        last = number_in(told->json, "last");
        first_page_ = told->json;
      }
      for (const JsonValue& one : list_in(told->json, "dead")) {
        if (number_in(*one.find("record"), "sequence") <= last) act(one);
      }
      note_rest(told->json);
      from = next_in(told->json);
    }
    return true;
  }

  // What dies again meanwhile has a larger sequence, and is not meant.
  bool count_meant() {
    std::optional<std::int64_t> from = 0;
    while (from) {
      const auto told = ask_replay(*from, kDeadPage, true);
      if (!told) return false;
      if (!through_) through_ = number_in(*told, "last");
      matched_ += static_cast<std::size_t>(number_in(*told, "matched"));
      note_rest(*told);
      from = next_in(*told);
    }
    if (elsewhere_.empty() || !options_.sequences.empty() || !options_.jq.empty()) return true;
    database_ = true;
    until_ms_ = host::HostClock().wall_ms();
    const auto told = ask_replay(0, kDeadPage, true);
    database_ = false;
    if (!told) return false;
    in_database_ = number_in(*told, "matched");
    matched_ += static_cast<std::size_t>(in_database_);
    elsewhere_.clear();
    return true;
  }
  bool replay_database(Pace& pace, std::size_t step) {
    database_ = true;
    for (bool more = true; more;) {
      pace.wait_for(static_cast<std::size_t>(replayed_ + repeated_ + gone_ + refused_));
      const auto told = ask_replay(0, step, false);
      if (!told) return false;
      const std::int64_t before = replayed_;
      count(*told);
      // What is refused stays, and would be asked for again.
      more = is_more(*told) && replayed_ > before;
      pace.tell(static_cast<std::uint64_t>(replayed_ + repeated_ + gone_ + refused_));
    }
    return true;
  }
  static bool is_more(const JsonValue& told) {
    const JsonValue* more = told.find("more_in_database");
    const bool* truth = more == nullptr ? nullptr : more->get<bool>();
    return truth != nullptr && *truth;
  }

  // Null: it was told what went wrong. Without a stream there is nothing to replay.
  std::optional<JsonValue> ask_replay(std::int64_t from, std::size_t max, bool dry_run) {
    wire::JsonObject body = asked_.body;
    if (!options_.sequences.empty()) {
      wire::JsonArray sequences;
      for (const std::int64_t one : options_.sequences) sequences.add(std::to_string(one));
      body.raw("sequences", sequences.text());
    }
    body.add("dry_run", dry_run).add("from", from).add("max", max);
    if (through_ && !database_) body.add("through", *through_);
    // What dies again meanwhile died later.
    if (database_) body.add("database", true);
    if (database_ && options_.until.empty()) body.add("until_ms", *until_ms_);
    const auto told = way_.ask({.method = "POST", .path = path() + "/replay", .body = body.text()});
    if (!told) return std::nullopt;
    if (told->reply.status == kNotFound) return JsonValue{};
    if (told->good()) return told->json;
    way_.fail(*told);
    return std::nullopt;
  }

  void count(const JsonValue& told) {
    replayed_ += number_in(told, "replayed");
    repeated_ += number_in(told, "replayed_before");
    gone_ += number_in(told, "gone");
    for (const JsonValue& one : list_in(told, "refused")) {
      ++refused_;
      const std::string id = text_in(one, "id");
      base::print(stderr, "hapax: {} stays a dead letter: {}\n",
                  id.empty() ? std::to_string(number_in(one, "sequence")) : printable(id),
                  printable(text_in(one, "reason")));
    }
  }

  void note_rest(const JsonValue& told) {
    unjudged_ += number_in(told, "unjudged");
    if (why_unjudged_.empty()) why_unjudged_ = text_in(told, "why_unjudged");
    elsewhere_ = text_in(told, "elsewhere");
  }
  void tell_rest() const {
    if (unjudged_ > 0) {
      base::print(stderr, "hapax: the jq program failed over {} of them, as over the first: {}\n",
                  unjudged_, printable(why_unjudged_));
    }
    if (!elsewhere_.empty()) base::print(stderr, "hapax: {}\n", elsewhere_);
  }

  static std::vector<std::string> row_of(const JsonValue& record, const std::string& endpoint) {
    const JsonValue& lineage = *record.find("lineage");
    return {std::to_string(number_in(record, "sequence")),
            instant_text(number_in(record, "time_ms")),
            std::to_string(number_in(lineage, "attempts")),
            std::to_string(number_in(lineage, "redrives")),
            printable(bytes_in(record, "id")),
            printable(bytes_in(record, "group")),
            printable(type_of(record)),
            printable(endpoint),
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

  int tell_dry_run() const {
    if (way_.json()) {
      base::print("{}\n",
                  wire::JsonObject().add("stream", stream()).add("would_replay", matched_).text());
    } else {
      base::print("{}: {} would be put back\n", stream(), matched_);
    }
    tell_rest();
    return kExitOk;
  }
  int tell_put_back() const {
    if (way_.json()) {
      base::print("{}\n", wire::JsonObject()
                              .add("stream", stream())
                              .add("replayed", replayed_)
                              .add("replayed_before", repeated_)
                              .add("gone", gone_)
                              .add("refused", refused_)
                              .text());
    } else {
      base::print("{}: {} put back\n", stream(), replayed_);
      if (repeated_ > 0) base::print("{}: {} were put back before\n", stream(), repeated_);
      if (gone_ > 0) base::print("{}: {} were put back or dropped by others\n", stream(), gone_);
    }
    tell_rest();
    if (refused_ > 0) return kExitFailed;
    return matched_ == 0 ? kExitMissing : kExitOk;
  }

  Way& way_;
  const DeadOptions& options_;
  DeadAsked asked_;
  const std::string workflow_;
  JsonValue first_page_;   // of a list
  bool database_ = false;  // there may be some in a database
  std::int64_t in_database_ = 0;
  std::size_t matched_ = 0;
  std::optional<std::int64_t> through_{};
  std::optional<std::int64_t> until_ms_{};
  std::int64_t replayed_ = 0;
  std::int64_t repeated_ = 0;
  std::int64_t gone_ = 0;
  std::int64_t refused_ = 0;
  std::int64_t unjudged_ = 0;
  std::string why_unjudged_;
  std::string elsewhere_;
};

int on_dead(const DeadOptions& options, int (*act)(DeadCommand&)) {
  auto asked = asked_of(options);
  if (!asked) return report(asked.error());
  return on_way(options.target, [&](Way& way) {
    DeadCommand command(way, options, *std::move(asked));
    return act(command);
  });
}

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
  auto asked = asked_of(options);
  if (!asked) return report(asked.error());
  return on_way(options.target, [&](Way& way) {
    return DeadCommand(way, options, *std::move(asked)).replay(rate);
  });
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
  sub.add_option("--endpoint", options.endpoint, "For the endpoint of that name");
  sub.add_option("--status", options.status, "Whose last answer had this status: 422, 4xx");
  sub.add_option("--jq", options.jq,
                 "For whose payload this program gives neither false nor null: '.total > 100'");
}

void declare_list(CLI::App& dead, int& exit_code) {
  const auto options = std::make_shared<DeadOptions>();
  CLI::App* sub = add_command(dead, "list", "List them, oldest first", *options);
  add_filters(*sub, *options);
  add_target(*sub, options->target);
  sub->footer("Example: hapax dead list orders-to-erp --since 2h --reason 'HTTP 422'");
  sub->callback([options, &exit_code] {
    exit_code = on_dead(*options, [](DeadCommand& command) { return command.list(); });
  });
}

void declare_show(CLI::App& dead, int& exit_code) {
  const auto options = std::make_shared<DeadOptions>();
  CLI::App* sub = add_command(dead, "show", "Show one with its attempts", *options);
  sub->add_option("sequence", options->sequences, "As list shows it")->required()->expected(1);
  add_target(*sub, options->target);
  sub->footer("Example: hapax dead show orders-to-erp 1");
  sub->callback([options, &exit_code] {
    exit_code = on_dead(*options, [](DeadCommand& command) { return command.show(); });
  });
}

void declare_dead_replay(CLI::App& dead, int& exit_code) {
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
    exit_code = on_dead(*options, [](DeadCommand& command) { return command.drop(); });
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
  declare_dead_replay(*dead, exit_code);
  declare_drop(*dead, exit_code);
}

}  // namespace hapax::cli
