// replay: sends again what a workflow has delivered.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>

#include "base/format.h"
#include "cli/pace.h"
#include "cli/show.h"
#include "cli/store_commands.h"
#include "cli/way.h"
#include "wire/json_text.h"

namespace hapax::cli {

namespace {

using wire::JsonValue;

constexpr std::size_t kCountPage = 1'000;

struct ReplayOptions {
  Target target;
  std::string workflow;
  std::string since;
  std::string until;
  std::string endpoint;
  std::string id;
  std::string rate;
  bool dry_run = false;
  bool cancel = false;
};

bool is_true_in(const JsonValue& object, std::string_view name) {
  const JsonValue* value = object.find(name);
  const bool* truth = value == nullptr ? nullptr : value->get<bool>();
  return truth != nullptr && *truth;
}

// What a replay is of, as the API takes it; none: of one that has begun.
Result<std::optional<wire::JsonObject>> terms_in(const ReplayOptions& options) {
  if (options.since.empty()) return std::optional<wire::JsonObject>();
  wire::JsonObject terms;
  HAPAX_TRY(const std::int64_t since, moment_of("--since", options.since));
  terms.add("since_ms", since);
  if (!options.until.empty()) {
    HAPAX_TRY(const std::int64_t until, moment_of("--until", options.until));
    terms.add("until_ms", until);
  }
  if (!options.endpoint.empty()) terms.add("endpoint", options.endpoint);
  return std::optional(std::move(terms));
}

class ReplayCommand {
 public:
  ReplayCommand(Way& way, const ReplayOptions& options, std::optional<wire::JsonObject> terms)
      : way_(way), options_(options), terms_(std::move(terms)), id_(options.id) {}

  int count() {
    std::int64_t from = 0;
    while (true) {
      wire::JsonObject body = *terms_;
      body.add("dry_run", true).add("from", from).add("max", kCountPage);
      const auto told = ask(body);
      if (!told) return way_.exit_code();
      replayed_ += number_in(*told, "replayed");
      gone_ += number_in(*told, "gone");
      if (is_true_in(*told, "done")) break;
      from = number_in(*told, "next");
    }
    if (!options_.dry_run) return kExitOk;
    if (way_.json()) {
      base::print("{}\n",
                  wire::JsonObject().add("would_replay", replayed_).add("gone", gone_).text());
    } else {
      base::print("{}: {} deliveries would be sent again, {} are gone\n", options_.workflow,
                  replayed_, gone_);
    }
    return kExitOk;
  }

  int run(std::uint32_t rate) {
    if (terms_) {
      if (const int code = count(); code != kExitOk) return code;
    }
    const auto all = static_cast<std::size_t>(std::exchange(replayed_, 0));
    gone_ = 0;
    if (id_.empty()) id_ = fresh_key();
    base::print(stderr, "hapax: replay {}; if it is interrupted: hapax replay {} --id {}\n", id_,
                options_.workflow, id_);
    Pace pace(all, rate, "sent again");
    for (bool done = false; !done;) {
      wire::JsonObject body = terms_.value_or(wire::JsonObject());
      body.add("id", id_).add("max", pace.step());
      const auto told = ask(body);
      if (!told) return way_.exit_code();
      tell_gone(*told);
      replayed_ = number_in(*told, "replayed");
      repeated_ += number_in(*told, "repeated");
      gone_ = number_in(*told, "gone");
      done = is_true_in(*told, "done");
      pace.tell(static_cast<std::uint64_t>(replayed_));
      if (!done) pace.wait_for(static_cast<std::size_t>(replayed_ - begun_with(*told)));
    }
    pace.end();
    return tell_end();
  }

  int cancel() {
    wire::JsonObject body;
    body.add("id", id_).add("cancel", true);
    const auto told = ask(body);
    if (!told) return way_.exit_code();
    if (way_.json()) {
      base::print("{}\n", json_of(*told));
    } else {
      base::print("{}: replay {} has ended; {} deliveries were put back by then\n",
                  options_.workflow, id_, number_in(*told, "replayed"));
    }
    return kExitOk;
  }

 private:
  std::optional<JsonValue> ask(const wire::JsonObject& body) {
    const std::string path =
        base::format("/api/v1/workflows/{}/replay", client::encoded(options_.workflow));
    const auto told = way_.ask_good({.method = "POST", .path = path, .body = body.text()});
    if (!told) return std::nullopt;
    return told->json;
  }
  // What an earlier run had done does not count for the pace of this one.
  std::int64_t begun_with(const JsonValue& told) {
    if (!begun_with_) {
      begun_with_ = std::max<std::int64_t>(number_in(told, "replayed") - 1, 0);
    }
    return *begun_with_;
  }
  void tell_gone(const JsonValue& told) const {
    for (const JsonValue& one : list_in(told, "gone_here")) {
      base::print(stderr, "hapax: the payload of {} (sequence {}) is gone; it is not sent again\n",
                  printable(bytes_in(one, "key")), number_in(one, "sequence"));
    }
  }
  int tell_end() const {
    if (way_.json()) {
      base::print("{}\n", wire::JsonObject()
                              .add("id", id_)
                              .add("replayed", replayed_)
                              .add("repeated", repeated_)
                              .add("gone", gone_)
                              .text());
    } else {
      base::print("{}: {} deliveries are sent again, {} are gone\n", options_.workflow, replayed_,
                  gone_);
    }
    return kExitOk;
  }

  Way& way_;
  const ReplayOptions& options_;
  const std::optional<wire::JsonObject> terms_;
  std::string id_;
  std::int64_t replayed_ = 0;
  std::int64_t repeated_ = 0;
  std::int64_t gone_ = 0;
  std::optional<std::int64_t> begun_with_{};
};

int run_replay(const ReplayOptions& options) {
  if (options.since.empty() && (options.id.empty() || options.dry_run)) {
    return report(Error{Errc::kInvalidArgument,
                        "say since when, as in --since 2h, or which replay to go on with: --id"});
  }
  if (options.since.empty() && !(options.until.empty() && options.endpoint.empty())) {
    return report(Error{Errc::kInvalidArgument,
                        "--until and --endpoint go with --since; a replay that was begun keeps "
                        "what it began with"});
  }
  if (options.cancel && options.id.empty()) {
    return report(Error{Errc::kInvalidArgument, "say which replay to cancel: --id"});
  }
  std::uint32_t rate = 0;
  if (!options.rate.empty()) {
    const auto given = rate_of(options.rate);
    if (!given) return report(given.error());
    rate = *given;
  }
  auto terms = terms_in(options);
  if (!terms) return report(terms.error());
  return on_way(options.target, [&](Way& way) {
    ReplayCommand command(way, options, *std::move(terms));
    if (options.cancel) return command.cancel();
    return options.dry_run ? command.count() : command.run(rate);
  });
}

}  // namespace

void declare_replay(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<ReplayOptions>();
  CLI::App* sub = app.add_subcommand("replay", "Send again what a workflow has delivered");
  sub->add_option("workflow", options->workflow, "Id of the workflow")->required();
  sub->add_option("--since", options->since,
                  "What was confirmed then or later: 2h, 2026-01-31T12:00:00Z");
  sub->add_option("--until", options->until, "What was confirmed then or earlier");
  sub->add_option("--endpoint", options->endpoint, "Only by the endpoint of that name");
  sub->add_option("--id", options->id,
                  "Name of the replay, made up if left out; with it alone an interrupted one goes "
                  "on");
  sub->add_option("--rate", options->rate, "At most so many a second: 50/s");
  sub->add_flag("--dry-run", options->dry_run, "Only count them");
  sub->add_flag("--cancel", options->cancel, "End the replay of that id");
  add_target(*sub, options->target);
  sub->footer(
      "Example: hapax replay orders-to-erp --since 2h --rate 50/s\n"
      "         hapax replay orders-to-erp --since 2026-01-31T12:00:00Z --dry-run");
  sub->callback([options, &exit_code] { exit_code = run_replay(*options); });
}

}  // namespace hapax::cli
