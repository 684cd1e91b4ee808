// Time in the simulated world: clocks that step both ways, idle days, stops of any length, and what
// log time must be like through all of it (docs/internals/time.md).
#include <algorithm>
#include <iterator>

#include "base/format.h"
#include "sim/world.h"

namespace hapax::sim {

namespace {

constexpr std::int64_t kStepMs = core::kStepMax.count();
constexpr std::int64_t kDayMs = 86'400'000;
constexpr std::int64_t kMarkEveryMs =
    60'000;  // as the journal thread does while nothing is written
// A reading that is late, and the step at the end of a slew.
constexpr Duration kDatedTolerance{2 * kStepMs};

// Facts, and what only log time ends: neither may be otherwise after a restart.
bool must_stay(const Verdict& verdict) {
  if (const auto* held = std::get_if<Held>(&verdict)) return !held->applied;
  return std::holds_alternative<Appended>(verdict) || std::holds_alternative<Claimed>(verdict) ||
         std::holds_alternative<Registered>(verdict);
}

}  // namespace

void World::pass_time() {
  if (time_.chance(1, 8)) return idle();
  clock_.advance(static_cast<std::int64_t>(
      scheduler_.below(static_cast<std::uint64_t>(swarm_.step_ms_max) + 1)));
}

// Nobody asks for a while. The store's own threads go on: log time is marked once a minute.
void World::idle() {
  constexpr std::int64_t kSpans[] = {3'000, 90'000, kDayMs, 3 * kDayMs};
  const std::int64_t span = kSpans[time_.below(std::size(kSpans))];
  const auto unmarked =
      static_cast<std::int64_t>(time_.below(static_cast<std::uint64_t>(kMarkEveryMs)));
  say(base::format("idle for {}", span));
  result_.tally.add("idle spans");
  if (span <= kMarkEveryMs) return clock_.advance(span);
  clock_.advance(span - unmarked);
  note_time();
  mark(journal::MarkKind::kRunning);
  clock_.advance(unmarked);
}

void World::jump_clock() {
  constexpr std::int64_t kJumps[] = {1500,   -1500,   60'000,         -60'000,
                                     kDayMs, -kDayMs, 315'360'000'000};
  const std::int64_t jump = kJumps[time_.below(std::size(kJumps))];
  say(base::format("the clock jumps by {}", jump));
  clock_.jump(jump);
  life_allowance_ms_ += kStepMs;
  dated_.reset();
  result_.tally.add("clock jumps");
}

// The process is not there: for a moment or for days. The machine may restart, and somebody may
// set its clock.
void World::pass_time_while_off() {
  if (time_.chance(1, 2)) return;
  constexpr std::int64_t kSpans[] = {1'000, 90'000, kDayMs / 2, 3 * kDayMs};
  clock_.advance(kSpans[time_.below(std::size(kSpans))]);
  if (time_.chance(1, 4)) clock_.reboot();
  if (swarm_.has(Trouble::kClockJump)) jump_clock();
}

void World::note_time() {
  engine_->note_time();
  noted_time_ = machine().decided_at();
}

// W5, W7: a start goes on from what the log proves, and moves log time by no more than a step.
void World::begin_life_time() {
  life_time_ = machine().decided_at();
  life_steady_ms_ = clock_.steady_ms();
  life_allowance_ms_ = kStepMs + 1;
  last_time_ = life_time_;
  noted_time_ = Time{};
  time_refused_ = false;
  if (machine().clock_jump_pending()) fail("I16", "log time", "a stop is taken for a jump");
  if (damaged_) return;
  if (life_time_ < told_time_) fail("I12", "log time", "went back over a restart");
  if (life_time_ < marked_time_) fail("I12", "log time", "was marked, and is lost");
  const bool empty = machine().next_lsn() == journal::Lsn{1};
  if (died_time_ && !empty && life_time_ > *died_time_ + Duration{2 * kStepMs}) {
    fail("I12", "log time", "was moved by a start: ids were forgotten before their time");
  }
}

void World::end_life_time() {
  died_time_ = engine_->clock().now();
  dated_.reset();
}

// K1: log time never goes back, and runs with the steady clock, not with the wall clock.
void World::check_log_time(const Answer& answer) {
  const Time time = answer.time;
  // E1: what is known may be answered before what was decided earlier.
  const bool overtakes = std::all_of(
      answer.verdicts.begin(), answer.verdicts.end(),
      [](const Verdict& verdict) { return std::holds_alternative<Duplicate>(verdict); });
  if (time < (overtakes ? life_time_ : last_time_)) fail("I12", "log time", "went back");
  if (!overtakes) last_time_ = time;
  // Other answers that only looked leave no trace.
  const bool stays = std::any_of(answer.verdicts.begin(), answer.verdicts.end(), must_stay);
  if (stays && answer.committed && !time_refused_) told_time_ = std::max(told_time_, time);
  const std::int64_t elapsed = clock_.steady_ms() - life_steady_ms_;
  const std::int64_t most = elapsed + elapsed / 10 + life_allowance_ms_;
  if ((time - life_time_).count() > most) {
    fail("I12", "log time", "ran ahead: ids were forgotten before their window was over");
  }
}

// W6: what is to go at an instant of the wall clock goes then, though log time may lag behind it.
void World::check_dated(const SimRequest& request, const Answer& answer,
                        const core::Moment& moment) {
  const std::size_t count = std::min(request.ops.size(), answer.verdicts.size());
  for (std::size_t i = 0; answer.committed && i < count; ++i) {
    if (const auto* held = std::get_if<Held>(&answer.verdicts[i])) {
      see_dated(request.ops[i], *held, moment);
    }
  }
}

void World::see_dated(const Op& op, const Held& held, const core::Moment& moment) {
  if (const auto* set = std::get_if<Set>(&op); set != nullptr && set->name == "dated") {
    dated_.reset();
    // The clock may have been set between the decision and its answer, or is not believed.
    const Duration since = time_from_ms(clock_.wall_ms()) - moment.wall;
    const bool same_clock = since >= -core::kStepMax && since <= core::kStepMax;
    const bool holds = held.applied && held.version > Version{0};
    if (holds && same_clock) dated_ = Dated{held.version, set->expiry.at};
  }
  const auto* get = std::get_if<Get>(&op);
  if (get == nullptr || get->name != "dated" || !dated_) return;
  if (!held.applied && moment.wall + kDatedTolerance < dated_->until) {
    fail("I12", "register dated", "went before its time");
  }
  if (held.applied && held.version == dated_->version &&
      moment.wall > dated_->until + kDatedTolerance) {
    fail("I12", "register dated", "was there after its time");
  }
}

}  // namespace hapax::sim
