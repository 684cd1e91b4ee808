// W5: when log time is written down. docs/internals/time.md.
#include <algorithm>

#include "base/mutant.h"
#include "engine/machine.h"

namespace hapax::engine {

namespace {

// What is there was there before, too; what is over may be so by log time alone.
bool says_it_is_there(const Verdict& verdict) {
  if (const auto* held = std::get_if<Held>(&verdict)) return held->applied;
  return std::holds_alternative<Duplicate>(verdict) ||
         std::holds_alternative<DuplicateClaim>(verdict) ||
         std::holds_alternative<InProgress>(verdict) || std::holds_alternative<Conflict>(verdict) ||
         std::holds_alternative<Received>(verdict);
}

bool tells_of_ends(const Result<Answer>& answer) {
  if (!answer) return true;
  const std::vector<Verdict>& all = answer->verdicts;
  return !std::all_of(all.begin(), all.end(), says_it_is_there);
}

}  // namespace

// W5: a start goes on kStepMax ahead of what is durable. Were something told to be over by a later
// time than that, it would be there again after a crash.
bool Machine::owes_time(const Waiting& waiting) const {
  const Time durable = in_flight() ? in_flight_.batch.log_time() : latest_;
  if (has_facts() || time_refused_ || decided_at() <= durable + core::kStepMax) return false;
  if (base::mutant(base::Mutant::kTimeNotNoted)) return false;
  if (const auto* look = std::get_if<WaitingLook>(&waiting)) return look->sees == Sees::kEnds;
  const auto* commit = std::get_if<WaitingCommit>(&waiting);
  return commit != nullptr && tells_of_ends(commit->finished.answer);
}

void Machine::write_time() {
  turn().emit(core::TimeNoted{});
  next_lsn_ = building_.batch.next();
  building_.ordinary = true;
}

void Machine::note_time(Duration older) {
  refresh_time();
  if (!has_facts() && !in_flight() && decided_at() >= latest_ + older) write_time();
}

Time Machine::read_clock() {
  refresh_time();
  return decided_at();
}

}  // namespace hapax::engine
