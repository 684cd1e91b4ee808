#include "engine/log_clock.h"

#include <algorithm>

#include "base/mutant.h"

namespace hapax::engine {

namespace {

using base::Mutant;
using core::kSlewShare;
using core::kStepMax;

// W3: a clock that shows a time before 1970 was never set, and one beyond 48 bits is broken: the
// nearest that can be written stands for it.
Time wall_time(ports::Clock& clock) {
  return time_from_ms(std::clamp<std::int64_t>(clock.wall_ms(), 0, std::int64_t{1} << 47));
}

Duration distance(Duration difference) {
  return difference < Duration{0} ? -difference : difference;
}

}  // namespace

LogClock::LogClock(ports::Clock& clock, Duration jump_max)
    : clock_(clock),
      jump_max_(jump_max),
      now_(wall_time(clock)),
      seen_(now_),
      wall_(now_),
      steady_ms_(clock.steady_ms()) {}

// W7: nobody can tell how much of what the wall clock is ahead by is the time that the process was
// away, and how much of it a mistake. So all of it is slewed.
void LogClock::start_at(Time last, Jump jump) {
  seen_ = wall_time(clock_);
  const bool accepts = jump == Jump::kAccept || base::mutant(Mutant::kStartBelievesWall);
  now_ = accepts ? std::max(last, seen_) : last;
  // W3: time does not go back by as much: this clock was not set yet.
  unset_ = now_ - seen_ > jump_max_;
  wall_ = unset_ ? now_ : seen_;
  jump_pending_ = base::mutant(Mutant::kStopIsAJump) && seen_ - now_ > jump_max_;
  if (jump_pending_) wall_ = now_;
  unslewed_ = Duration{0};
  steady_ms_ = clock_.steady_ms();
}

// W2: one that was too far ahead is believed again when it is near; one that is merely behind is.
void LogClock::look_at_wall(Duration elapsed) {
  wall_ += elapsed;
  seen_ = wall_time(clock_);
  if (unset_) {
    unset_ = now_ - seen_ > jump_max_;
    wall_ = unset_ ? now_ : seen_;
    return;
  }
  const Duration step = seen_ - wall_;
  const bool was_ahead = jump_pending_ && step > Duration{0};
  jump_pending_ = distance(step) > (was_ahead ? kStepMax : jump_max_);
  if (!jump_pending_) wall_ = seen_;
}

Time LogClock::now() {
  const std::int64_t steady = clock_.steady_ms();
  const Duration elapsed{std::max<std::int64_t>(steady - steady_ms_, 0)};
  steady_ms_ = steady;
  now_ += elapsed;
  look_at_wall(elapsed);
  if (base::mutant(Mutant::kPruneOneSided)) return now_ = std::max(now_, seen_);
  const Duration ahead = wall_ - now_;
  if (ahead >= Duration{0} && ahead <= kStepMax) {
    unslewed_ = Duration{0};
    return now_ = wall_;
  }
  // Readings come more often than every ten milliseconds: what is left of the tenth is kept.
  unslewed_ += elapsed;
  const Duration slew = unslewed_ / kSlewShare;
  unslewed_ -= slew * kSlewShare;
  return now_ += std::clamp(ahead, -slew, slew);
}

// W4: what has passed since the latest reading is counted before. It is in the others' time
// already: counted behind it, it would be counted twice.
void LogClock::follow(Time others) { now_ = std::max(now(), others); }

// W8
void LogClock::go_back(Time others) { now_ = std::min(now(), others); }

}  // namespace hapax::engine
