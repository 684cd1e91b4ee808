// undelivered: what a workflow has not confirmed.
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

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

constexpr std::int64_t kUndeliveredPage = 1'000;

struct UndeliveredOptions {
  Target target;
  std::string workflow;
  std::string endpoint;
  std::string since;
  std::string from;
  std::int64_t max = 1'000;
  bool count = false;
};

// Without `from` and `max`.
Result<std::string> path_of(const UndeliveredOptions& options) {
  std::string path = base::format("/api/v1/workflows/{}/undelivered?count={}",
                                  client::encoded(options.workflow), options.count);
  if (!options.endpoint.empty()) path += "&endpoint=" + client::encoded(options.endpoint);
  if (!options.since.empty()) {
    HAPAX_TRY(const std::int64_t ms, moment_of("--since", options.since));
    path += base::format("&since_ms={}", ms);
  }
  return path;
}

// Each page on from the one before.
template <class Act>
bool each_page(Way& way, const std::string& path, std::string from, Act& act) {
  while (true) {
    const std::int64_t most = act.most();
    if (most <= 0) {
      base::print(stderr, "hapax: there may be more; the next ones: --from {}\n", from);
      return true;
    }
    const std::string query = base::format("{}&max={}", from.empty() ? "" : "&from=" + from, most);
    const auto told = way.look(path + query);
    if (!told) return false;
    act(told->json);
    if (told->json.find("next") == nullptr) return true;
    from = text_in(told->json, "next");
  }
}

std::string moment_or_nothing(const JsonValue& record, const std::string& name) {
  const JsonValue* at = record.find(name);
  return at == nullptr || at->get<std::monostate>() != nullptr ? "" : shown(name, *at).value;
}

std::string words_about(const JsonValue& record) {
  std::string words;
  if (const std::int64_t behind = number_in(record, "behind"); behind > 0) {
    const JsonValue* blocked = record.find("behind_blocked");
    const auto* is_blocked = blocked == nullptr ? nullptr : blocked->get<bool>();
    const bool waits = is_blocked != nullptr && *is_blocked;
    words = base::format("behind {}{}", behind, waits ? ", which blocks the key" : "");
  }
  const std::string error = printable(text_in(record, "error"));
  if (!error.empty()) words += (words.empty() ? "" : "; ") + error;
  return words;
}

class UndeliveredList {
 public:
  UndeliveredList(bool json, std::int64_t max) : json_(json), left_(max) {}

  [[nodiscard]] std::int64_t most() const { return std::min(left_, kUndeliveredPage); }
  void operator()(const JsonValue& page) {
    for (const JsonValue& record : list_in(page, "undelivered")) {
      --left_;
      if (json_) {
        base::print("{}\n", json_of(record));
      } else {
        table_.add({text_in(record, "state"), printable(text_in(record, "stream")),
                    std::to_string(number_in(record, "sequence")),
                    printable(bytes_in(record, "id")), printable(bytes_in(record, "group")),
                    printable(text_in(record, "endpoint")), moment_or_nothing(record, "came_ms"),
                    moment_or_nothing(record, "until_ms"),
                    std::to_string(number_in(record, "attempts")), words_about(record)});
      }
    }
    elsewhere_ = text_in(page, "elsewhere");
  }
  void tell_rest() const {
    if (!json_) base::print("{}", table_.empty() ? "nothing is undelivered\n" : table_.text());
    if (!elsewhere_.empty()) base::print(stderr, "hapax: {}\n", elsewhere_);
  }

 private:
  const bool json_;
  std::int64_t left_;
  Table table_{{"state", "stream", "sequence", "id", "group", "endpoint", "came", "until",
                "attempts", "error"}};
  std::string elsewhere_;
};

class UndeliveredSum {
 public:
  [[nodiscard]] static std::int64_t most() { return kUndeliveredPage; }
  void operator()(const JsonValue& page) {
    const JsonValue* counts = page.find("counts");
    const auto* members = counts == nullptr ? nullptr : counts->get<JsonValue::Object>();
    if (members == nullptr) return;
    for (const auto& [state, value] : *members) sums_[state] += number_in(*counts, state);
    elsewhere_ = text_in(page, "elsewhere");
  }
  void tell(bool json) const {
    wire::JsonObject out;
    std::int64_t all = 0;
    Table table({"state", "records"});
    for (const auto& [state, count] : sums_) {
      out.add(state, count);
      all += count;
      table.add({state, std::to_string(count)});
    }
    out.add("all", all);
    table.add({"all", std::to_string(all)});
    base::print("{}", json ? out.text() + "\n" : table.text());
    if (!elsewhere_.empty()) base::print(stderr, "hapax: {}\n", elsewhere_);
  }

 private:
  std::map<std::string, std::int64_t> sums_;
  std::string elsewhere_;
};

int tell_undelivered(Way& way, const UndeliveredOptions& options, const std::string& path) {
  if (options.count) {
    UndeliveredSum sum;
    if (!each_page(way, path, options.from, sum)) return way.exit_code();
    sum.tell(way.json());
    return kExitOk;
  }
  UndeliveredList list(way.json(), options.max);
  if (!each_page(way, path, options.from, list)) return way.exit_code();
  list.tell_rest();
  return kExitOk;
}

int run_undelivered(const UndeliveredOptions& options) {
  const auto path = path_of(options);
  if (!path) return report(path.error());
  return on_way(options.target, [&](Way& way) { return tell_undelivered(way, options, *path); });
}

}  // namespace

void declare_undelivered(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<UndeliveredOptions>();
  CLI::App* sub =
      app.add_subcommand("undelivered", "Show what a workflow has not confirmed, oldest first");
  sub->add_option("workflow", options->workflow, "Id of the workflow")->required();
  sub->add_option("--endpoint", options->endpoint, "Only what is for the endpoint of that name");
  sub->add_option("--since", options->since,
                  "Only what came there then or later: 2h, 2026-01-31T12:00:00Z");
  sub->add_option("--from", options->from, "Go on there, as the command said before");
  sub->add_option("--max", options->max, "So many at most")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  sub->add_flag("--count", options->count, "Only how many there are, by state");
  add_target(*sub, options->target);
  sub->footer(
      "Example: hapax undelivered orders-to-erp\n"
      "         hapax undelivered orders-to-erp --endpoint crm --since 2h --count");
  sub->callback([options, &exit_code] { exit_code = run_undelivered(*options); });
}

}  // namespace hapax::cli
