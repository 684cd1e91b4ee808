// Proof that the simulation bites: every planted bug of base/mutant.h must be found within a
// bounded number of seeds, and without one nothing is found.
//
//   hapax_sim_mutants            all of them; one line each
//   hapax_sim_mutants NAME       one
#include <array>
#include <cstdint>
#include <cstdio>
#include <new>
#include <optional>
#include <string_view>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mutant.h"
#include "sim/world.h"

namespace {

using hapax::base::Mutant;
using hapax::sim::RunMode;
using hapax::sim::RunOptions;
using hapax::sim::RunResult;

constexpr std::uint64_t kSeedsMax = 2'000;
constexpr std::uint64_t kControlSeeds = 300;
constexpr std::uint64_t kSteps = 150;

struct Planted {
  Mutant mutant;
  std::string_view name;
  std::string_view only = {};  // the invariant that must be the one broken
};

constexpr std::array kPlanted = {
    Planted{Mutant::kAckBeforeSync, "ack_before_sync"},
    Planted{Mutant::kRetrySync, "retry_sync"},
    Planted{Mutant::kNoDirectorySync, "no_directory_sync"},
    Planted{Mutant::kTruncateAtFirstBad, "truncate_at_first_bad"},
    // The pair of M12: it also loses what it acknowledged, but here it must refuse to start.
    Planted{Mutant::kRefuseValidAfterInvalid, "refuse_valid_after_invalid", "I8"},
    Planted{Mutant::kNoRollbackOfPartialWrite, "no_rollback_of_partial_write"},
    Planted{Mutant::kTailNotResynced, "tail_not_resynced"},
    Planted{Mutant::kTailOnlySynced, "tail_only_synced"},
    Planted{Mutant::kTrustLength, "trust_length", "I8"},
    Planted{Mutant::kDeleteNotUnderstood, "delete_not_understood"},
    Planted{Mutant::kSeveralBatchesInFlight, "several_batches_in_flight"},
    Planted{Mutant::kIdBeforePersist, "id_before_persist"},
    Planted{Mutant::kRepeatBeforeDurable, "repeat_before_durable"},
    Planted{Mutant::kDropBatchOnDuplicate, "drop_batch_on_duplicate"},
    Planted{Mutant::kKeyOnlyDuplicate, "key_only_duplicate"},
    Planted{Mutant::kPruneOneSided, "prune_one_sided"},
    Planted{Mutant::kIdsDieWithRecords, "ids_die_with_records"},
    Planted{Mutant::kUncertainSticks, "uncertain_sticks"},
    Planted{Mutant::kWindowRefreshed, "window_refreshed"},
    Planted{Mutant::kStaleCursor, "stale_cursor"},
    Planted{Mutant::kEpochIsIdentity, "epoch_is_identity"},
    Planted{Mutant::kOpenedNotRaised, "opened_not_raised"},
    Planted{Mutant::kLateEndCommits, "late_end_commits"},
    Planted{Mutant::kCursorNotAtomic, "cursor_not_atomic"},
    Planted{Mutant::kAbsentOverwrites, "absent_overwrites", "I14"},
    Planted{Mutant::kExpiryNotReplayed, "expiry_not_replayed"},
    Planted{Mutant::kRedriveReachesAll, "redrive_reaches_all", "I2"},
    Planted{Mutant::kLapseTakenOver, "lapse_taken_over", "I14"},
    Planted{Mutant::kStartBelievesWall, "start_believes_wall", "I12"},
    Planted{Mutant::kStopIsAJump, "stop_is_a_jump", "I16"},
    Planted{Mutant::kTimeNotNoted, "time_not_noted", "I12"},
    Planted{Mutant::kIdleNotMarked, "idle_not_marked", "I12"},
    Planted{Mutant::kAbsoluteIsLogTime, "absolute_is_log_time", "I12"},
};
static_assert(kPlanted.size() == static_cast<std::size_t>(Mutant::kAbsoluteIsLogTime));

// Written by the child, read by the parent also if the child died of an assertion.
struct Report {
  std::uint64_t seed = 0;
  bool damage = false;
  bool found = false;
  bool asserted = false;
  std::array<char, 8> invariant{};
  std::array<char, 160> what{};
};

bool bites(const Planted& planted, std::uint64_t seed, RunMode mode, Report& report) {
  report.seed = seed;
  report.damage = mode == RunMode::kDamage;
  RunOptions options;
  options.seed = seed;
  options.steps = kSteps;
  options.mode = mode;
  const RunResult result = run_seed(options);
  if (!result.violation) return false;
  const auto& violation = *result.violation;
  if (!planted.only.empty() && violation.invariant != planted.only) return false;
  std::snprintf(report.invariant.data(), report.invariant.size(), "%s",
                violation.invariant.c_str());
  std::snprintf(report.what.data(), report.what.size(), "%s: %s", violation.key.c_str(),
                violation.what.c_str());
  report.found = true;
  return true;
}

[[noreturn]] void hunt(const Planted& planted, std::uint64_t first, std::uint64_t last,
                       Report& report) {
  const int quiet = fileno(std::tmpfile());
  dup2(quiet, STDERR_FILENO);  // What an assertion says about a planted bug is no news.
  hapax::base::planted_mutant = planted.mutant;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    if (bites(planted, seed, RunMode::kTrouble, report)) break;
    if (bites(planted, seed, RunMode::kDamage, report)) break;
  }
  _exit(0);
}

// In a process of its own, which an assertion of the store may end before a judge sees anything.
Report run_apart(const Planted& planted, std::uint64_t first, std::uint64_t last) {
  void* shared =
      mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* report = new (shared) Report;
  const pid_t child = fork();
  if (child == 0) hunt(planted, first, last, *report);
  int status = 0;
  waitpid(child, &status, 0);
  Report copy = *report;
  munmap(shared, sizeof(Report));
  copy.asserted = WIFSIGNALED(status);
  return copy;
}

// An assertion is a finding, too, but a judge's word is better: the hunt goes on behind it.
Report run_all(const Planted& planted, std::uint64_t seeds) {
  std::optional<Report> asserted;
  Report report;
  for (std::uint64_t first = 1; first <= seeds; first = report.seed + 1) {
    report = run_apart(planted, first, seeds);
    if (!report.asserted) break;
    if (!asserted) asserted = report;
  }
  if (report.found || !asserted) return report;
  report = *asserted;
  report.found = planted.only.empty();
  std::snprintf(report.invariant.data(), report.invariant.size(), "-");
  std::snprintf(report.what.data(), report.what.size(), "an assertion of the store failed");
  return report;
}

void print(std::string_view name, const Report& report) {
  std::printf("%-28.*s %s seed %llu%s: %s %s\n", static_cast<int>(name.size()), name.data(),
              report.found ? "found by" : "NOT FOUND until",
              static_cast<unsigned long long>(report.seed), report.damage ? " (damage)" : "",
              report.invariant.data(), report.what.data());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view wanted = argc > 1 ? argv[1] : "";
  bool fine = true;
  for (const Planted& planted : kPlanted) {
    if (!wanted.empty() && planted.name != wanted) continue;
    const Report report = run_all(planted, kSeedsMax);
    print(planted.name, report);
    fine = fine && report.found;
  }
  if (!wanted.empty()) return fine ? 0 : 1;
  const Planted none{Mutant::kNone, "none"};
  const Report control = run_all(none, kControlSeeds);
  std::printf("%-28s %s\n", "none", control.found ? "FOUND SOMETHING" : "nothing found");
  if (control.found) print(none.name, control);
  return fine && !control.found ? 0 : 1;
}
