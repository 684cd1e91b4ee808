// bench: drives a server with a load and prints how long it took.
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/format.h"
#include "cli/show.h"
#include "cli/store_commands.h"
#include "cli/way.h"
#include "load/drive.h"
#include "wire/json_text.h"

namespace hapax::cli {

namespace {

// Names in JSON.
constexpr std::pair<const char*, double> kShares[] = {
    {"p50_ms", 0.5}, {"p90_ms", 0.9}, {"p95_ms", 0.95}, {"p99_ms", 0.99}, {"p999_ms", 0.999}};

struct BenchOptions {
  Target target;
  std::string profile = "idempotency_baseline";
  std::uint32_t rate = 0;  // 0: that of the profile
  std::uint32_t seconds = 30;
  std::uint32_t connections = 64;
};

std::string ms_text(load::Micros micros) {
  return base::format("{:.2f}", static_cast<double>(micros.count()) / 1000);
}

struct Judged {
  double ms = 0;
  bool met = false;
};
Judged judge(const load::Bar& bar, const load::LoadOutcome& outcome) {
  const auto found = outcome.steps.find(std::string(bar.step));
  if (found == outcome.steps.end()) return {};
  const auto at = found->second.at(static_cast<double>(bar.percent) / 100);
  const double ms = static_cast<double>(at.count()) / 1000;
  return {ms, ms <= bar.ms};
}

void print_json(const load::Plan& plan, const load::LoadOutcome& outcome) {
  wire::JsonArray steps;
  for (const auto& [what, latencies] : outcome.steps) {
    wire::JsonObject one;
    one.add("step", what).add("count", latencies.count());
    for (const auto& [name, share] : kShares) {
      one.raw(name, ms_text(latencies.at(share)));
    }
    steps.add(one.raw("max_ms", ms_text(latencies.max())).text());
  }
  wire::JsonObject verdicts;
  for (const auto& [word, count] : outcome.verdicts) verdicts.add(word, count);
  const load::Bar& bar = plan.profile.bar;
  const Judged judged = judge(bar, outcome);
  const wire::JsonObject told = wire::JsonObject()
                                    .add("step", bar.step)
                                    .add("percent", bar.percent)
                                    .add("bar_ms", bar.ms)
                                    .raw("ms", base::format("{:.2f}", judged.ms))
                                    .add("met", judged.met);
  base::print("{}\n", wire::JsonObject()
                          .add("profile", plan.profile.name)
                          .add("rate", plan.rate)
                          .add("seconds", plan.seconds)
                          .add("connections", plan.connections)
                          .raw("took_s", base::format("{:.2f}", outcome.took.count()))
                          .add("due", outcome.due)
                          .add("unsent", outcome.unsent)
                          .add("failed", outcome.failed)
                          .add("wrong", outcome.wrong)
                          .add("relayed", outcome.relayed)
                          .raw("steps", steps.text())
                          .raw("verdicts", verdicts.text())
                          .raw("bar", told.text())
                          .text());
}

void print_table(const load::LoadOutcome& outcome) {
  Table table({"ms", "count", "per s", "p50", "p90", "p95", "p99", "p99.9", "max"});
  for (const auto& [what, latencies] : outcome.steps) {
    std::vector<std::string> row = {what, std::to_string(latencies.count())};
    row.push_back(
        base::format("{:.0f}", static_cast<double>(latencies.count()) / outcome.took.count()));
    for (const auto& [name, share] : kShares) row.push_back(ms_text(latencies.at(share)));
    row.push_back(ms_text(latencies.max()));
    table.add(std::move(row));
  }
  base::print("{}\n", table.text());
}

void print_text(const load::Plan& plan, const load::LoadOutcome& outcome) {
  print_table(outcome);
  for (const auto& [word, count] : outcome.verdicts) base::print("{}  {}\n", word, count);
  if (outcome.relayed != 0) base::print("relayed  {}\n", outcome.relayed);
  const load::Bar& bar = plan.profile.bar;
  const Judged judged = judge(bar, outcome);
  base::print("{} p{}  {:.2f} ms; the design asks for {} ms: {}\n", bar.step, bar.percent,
              judged.ms, bar.ms,
              judged.met ? tinted(Tint::kGood, "met") : tinted(Tint::kBad, "missed"));
}

int bench(Way& way, const BenchOptions& options) {
  load::Plan plan;
  plan.profile = *load::find_profile(options.profile);
  plan.rate = options.rate == 0 ? plan.profile.rate : options.rate;
  plan.seconds = options.seconds;
  plan.connections = options.connections;
  plan.name = "bench-" + fresh_key().substr(4, 12);
  plan.server = way.client_options();
  plan.server.attempts_max = 1;  // A repetition would hide what it waited for.
  if (!way.json()) {
    base::print("{}: {}; {} a second for {} s on {} connections to {}\n", plan.profile.name,
                plan.profile.meaning, plan.rate, plan.seconds, plan.connections, way.where());
    std::fflush(stdout);
  }
  const auto outcome = load::drive(plan);
  if (!outcome) {
    const bool away = outcome.error().code == Errc::kUnavailable;
    return way.fail(away ? kExitUnreachable : kExitForbidden, outcome.error().detail);
  }
  way.json() ? print_json(plan, *outcome) : print_text(plan, *outcome);
  const std::uint64_t bad = outcome->failed + outcome->wrong + outcome->unsent;
  if (bad == 0) return kExitOk;
  return way.fail(kExitFailed,
                  base::format("{} failed, {} got a wrong verdict, {} were never sent; first: {}",
                               outcome->failed, outcome->wrong, outcome->unsent,
                               printable(outcome->first_failure)));
}

std::string profile_lines() {
  std::string out = "Profiles:\n";
  for (const load::Profile& profile : load::kProfiles) {
    out += base::format("  {:<22} {:>5}/s  {}\n", profile.name, profile.rate, profile.meaning);
  }
  return out;
}

}  // namespace

void declare_bench(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<BenchOptions>();
  CLI::App* sub = app.add_subcommand("bench", "Drive a server with a load, and measure");
  std::vector<std::string> names;
  names.reserve(load::kProfiles.size());
  for (const load::Profile& profile : load::kProfiles) names.emplace_back(profile.name);
  sub->add_option("--profile", options->profile, "Which load")
      ->check(CLI::IsMember(names))
      ->capture_default_str();
  sub->add_option("--rate", options->rate, "Jobs a second; that of the profile if left out")
      ->check(CLI::Range(1, 1'000'000));
  sub->add_option("--seconds", options->seconds, "How long")
      ->check(CLI::Range(1, 86'400))
      ->capture_default_str();
  sub->add_option("--connections", options->connections, "How many jobs at once at most")
      ->check(CLI::Range(1, 2'000))
      ->capture_default_str();
  add_target(*sub, options->target);
  sub->footer(profile_lines() +
              "Example: hapax bench --profile duplicate_detection --rate 2000 --seconds 60\n"
              "         hapax bench --profile expiry_storm --json");
  sub->callback([options, &exit_code] {
    exit_code = on_way(options->target, [&](Way& way) { return bench(way, *options); });
  });
}

}  // namespace hapax::cli
