// attempts: what a workflow attempted, and what came of it.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/format.h"
#include "cli/attempt_lines.h"
#include "cli/pace.h"
#include "cli/show.h"
#include "cli/store_commands.h"
#include "cli/way.h"

namespace hapax::cli {

namespace {

using wire::JsonValue;

constexpr std::int64_t kAttemptPage = 1'000;
constexpr std::int64_t kAttemptsShown = 1'000;

struct AttemptsOptions {
  Target target;
  std::string workflow;
  std::string key;
  std::string since;
  std::string until;
  std::string outcome;
  std::string endpoint;
  std::int64_t from = 0;
  std::int64_t max = kAttemptsShown;
};

// The query without `from` and `max`.
Result<std::string> query_of(const AttemptsOptions& options) {
  std::string query;
  const auto add = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) query += base::format("&{}={}", name, client::encoded(value));
  };
  add("key", options.key);
  add("outcome", options.outcome);
  add("endpoint", options.endpoint);
  if (!options.since.empty()) {
    HAPAX_TRY(const std::int64_t ms, moment_of("--since", options.since));
    query += base::format("&since_ms={}", ms);
  }
  if (!options.until.empty()) {
    HAPAX_TRY(const std::int64_t ms, moment_of("--until", options.until));
    query += base::format("&until_ms={}", ms);
  }
  return query;
}

std::vector<std::string> row_of(const JsonValue& attempt) {
  return {instant_text(number_in(attempt, "began_ms")),
          printable(text_in(attempt, "key")),
          printable(text_in(attempt, "endpoint")),
          std::to_string(number_in(attempt, "attempt")),
          text_in(attempt, "outcome"),
          attempt_status(attempt),
          attempt_time(attempt),
          attempt_words(attempt)};
}

int list_attempts(Way& way, const AttemptsOptions& options, const std::string& query) {
  Table table({"began", "key", "endpoint", "attempt", "outcome", "status", "ms", "said"});
  const std::string path = attempts_path(options.workflow);
  std::int64_t from = options.from;
  std::int64_t left = options.max;
  for (bool more = true; more && left > 0;) {
    const auto told = way.look(
        base::format("{}?from={}&max={}{}", path, from, std::min(left, kAttemptPage), query));
    if (!told) return way.exit_code();
    for (const JsonValue& attempt : list_in(told->json, "attempts")) {
      --left;
      if (way.json()) {
        base::print("{}\n", json_of(attempt));
      } else {
        table.add(row_of(attempt));
      }
    }
    more = told->json.find("next") != nullptr;
    if (more) from = number_in(told->json, "next");
    if (more && left <= 0) {
      base::print(stderr, "hapax: there are more; the next ones: --from {}\n", from);
    }
  }
  if (!way.json()) base::print("{}", table.empty() ? "no attempts\n" : table.text());
  return kExitOk;
}

int run_attempts(const AttemptsOptions& options) {
  const auto query = query_of(options);
  if (!query) return report(query.error());
  return on_way(options.target, [&](Way& way) { return list_attempts(way, options, *query); });
}

}  // namespace

void declare_attempts(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<AttemptsOptions>();
  CLI::App* sub = app.add_subcommand("attempts", "Show the attempts of a workflow, oldest first");
  sub->add_option("workflow", options->workflow, "Id of the workflow")->required();
  sub->add_option("key", options->key, "Only of this delivery key, message id or event id");
  sub->add_option("--since", options->since, "Settled then or later: 2h, 2026-01-31T12:00:00Z");
  sub->add_option("--until", options->until, "Settled then or earlier");
  sub->add_option("--outcome", options->outcome, "Only those that ended so")
      ->check(CLI::IsMember({"delivered", "rejected", "try-later", "unknown"}));
  sub->add_option("--endpoint", options->endpoint, "Only those to the endpoint of that name");
  sub->add_option("--from", options->from, "Go on there, as the command said before")
      ->check(CLI::NonNegativeNumber);
  sub->add_option("--max", options->max, "So many at most")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  add_target(*sub, options->target);
  sub->footer(
      "Example: hapax attempts orders-to-erp --since 2h --outcome rejected\n"
      "         hapax attempts orders-to-erp order-17");
  sub->callback([options, &exit_code] { exit_code = run_attempts(*options); });
}

}  // namespace hapax::cli
