// relay --redrive: publishes dead letters again, at once or at a pace.
#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/format.h"
#include "cli/pace.h"
#include "cli/relay.h"
#include "cli/show.h"
#include "host/clock.h"
#include "wire/json_text.h"

namespace hapax::cli {

namespace {

// What of the dead letters is wanted, and how fast.
struct RedrivePlan {
  std::vector<std::string> ids;          // empty = all
  std::optional<std::int64_t> since_ms;  // that died then or later
  std::uint32_t rate = 0;                // per second; 0 = all at once
  bool dry_run = false;

  [[nodiscard]] bool needs_a_list() const { return since_ms || rate != 0 || dry_run; }
};

Result<RedrivePlan> plan_of(const RelayOptions& options) {
  RedrivePlan plan{.ids = options.redrive, .since_ms = {}, .dry_run = options.dry_run};
  if (!options.rate.empty()) {
    HAPAX_TRY(plan.rate, rate_of(options.rate));
  }
  if (!options.since.empty()) {
    HAPAX_TRY(plan.since_ms, moment_of("--since", options.since));
  }
  return plan;
}

void print_redriven(const RelayOptions& options, const std::string& from,
                    const relay::Redriven& told) {
  if (options.output == Output::kJson) {
    wire::JsonArray refused;
    for (const auto& [id, reason] : told.refused) {
      refused.add(wire::JsonObject().add("id", id).add("reason", reason).text());
    }
    wire::JsonObject object;
    object.add("from", from).add("redriven", told.count).raw("refused", refused.text());
    base::print("{}\n", object.text());
    return;
  }
  base::print("{}: {} published again\n", from, told.count);
  for (const auto& [id, reason] : told.refused) {
    base::print("{}: {} is refused and stays a dead letter: {}\n", from, printable(id),
                printable(reason));
  }
}

// The ids that are wanted, in the order in which they died, each once.
Result<std::vector<relay::DeadLetter>> wanted_of(relay::Source& source, const RedrivePlan& plan) {
  HAPAX_TRY(std::vector<relay::DeadLetter> letters,
            source.dead_letters(std::numeric_limits<std::uint32_t>::max()));
  host::HostClock clock;
  const std::int64_t now = clock.wall_ms();
  const std::set<std::string> named(plan.ids.begin(), plan.ids.end());
  std::set<std::string> seen;
  std::erase_if(letters, [&](const relay::DeadLetter& letter) {
    const bool young = !plan.since_ms || now - letter.dead_for.count() >= *plan.since_ms;
    const bool meant = named.empty() || named.contains(letter.id);
    return !young || !meant || !seen.insert(letter.id).second;
  });
  return letters;
}

// Whoever ends it in between begins again with what is left: what was published is no dead letter
// any longer.
Result<relay::Redriven> redrive_in_steps(relay::Source& source, const RedrivePlan& plan,
                                         const std::vector<relay::DeadLetter>& letters) {
  Pace pace(letters.size(), plan.rate, "published again");
  relay::Redriven all;
  for (std::size_t at = 0; at < letters.size(); at += pace.step()) {
    pace.wait_for(at);
    std::vector<std::string> ids;
    for (std::size_t i = at; i < std::min(at + pace.step(), letters.size()); ++i) {
      ids.push_back(letters[i].id);
    }
    HAPAX_TRY(relay::Redriven told, source.redrive(ids));
    all.count += told.count;
    std::move(told.refused.begin(), told.refused.end(), std::back_inserter(all.refused));
    pace.tell(all.count);
  }
  pace.end();
  return all;
}

void print_dry_run(const RelayOptions& options, const std::string& from,
                   const std::vector<relay::DeadLetter>& letters) {
  if (options.output == Output::kJson) {
    wire::JsonArray ids;
    for (const relay::DeadLetter& letter : letters) ids.add(wire::json_text(letter.id));
    base::print("{}\n", wire::JsonObject()
                            .add("from", from)
                            .add("would_redrive", letters.size())
                            .raw("ids", ids.text())
                            .text());
    return;
  }
  for (const relay::DeadLetter& letter : letters) {
    base::print("{}  {}  {} attempts  {}\n", printable(letter.id), printable(letter.type),
                letter.attempts, printable(letter.reason));
  }
  base::print("{}: {} would be published again\n", from, letters.size());
}

}  // namespace

Result<int> redrive_dead_letters(const RelayOptions& options) {
  HAPAX_TRY(const RedrivePlan plan, plan_of(options));
  std::uint64_t meant = 0;
  std::uint64_t refused = 0;
  for (const std::string& uri : options.from) {
    const std::string from = without_password(uri);
    HAPAX_TRY(const auto source, open_source(options, uri, options.name));
    std::vector<relay::DeadLetter> letters;
    if (plan.needs_a_list()) {
      HAPAX_TRY(letters, wanted_of(*source, plan));
    }
    if (plan.dry_run) {
      meant += letters.size();
      print_dry_run(options, from, letters);
      continue;
    }
    HAPAX_TRY(const relay::Redriven told, plan.needs_a_list()
                                              ? redrive_in_steps(*source, plan, letters)
                                              : source->redrive(plan.ids));
    meant += told.count;
    refused += told.refused.size();
    print_redriven(options, from, told);
  }
  if (refused > 0) return kExitFailed;
  return meant == 0 && !options.redrive.empty() ? kExitMissing : kExitOk;
}

}  // namespace hapax::cli
