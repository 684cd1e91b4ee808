#include "engine/log_clock.h"

#include <algorithm>

#include "base/mutant.h"

namespace hapax::engine {

namespace {

constexpr Duration kStepMax{2000};  // the wall clock may be this far ahead and is followed at once
constexpr std::int64_t kSlewShare = 10;  // of the elapsed time

// W3: a clock that shows a time before 1970 was never set, and one beyond 48 bits is broken: the
// nearest that can be written stands for it.
Time wall_time(ports::Clock& clock) {
  return time_from_ms(std::clamp<std::int64_t>(clock.wall_ms(), 0, std::int64_t{1} << 47));
}

}  // namespace

LogClock::LogClock(ports::Clock& clock, Duration jump_max)
    : clock_(clock), jump_max_(jump_max), now_(wall_time(clock)), steady_ms_(clock.steady_ms()) {}

void LogClock::start_at(Time last, Jump jump) {
  const Time wall = wall_time(clock_);
  const bool believed = wall - last <= jump_max_ || jump == Jump::kAccept;
  now_ = believed ? std::max(last, wall) : last;
  jump_pending_ = !believed;
  steady_ms_ = clock_.steady_ms();
}

Time LogClock::now() {
  const std::int64_t steady = clock_.steady_ms();
  const Duration elapsed{std::max<std::int64_t>(steady - steady_ms_, 0)};
  steady_ms_ = steady;
  const Time wall = wall_time(clock_);
  if (base::mutant(base::Mutant::kPruneOneSided)) return now_ = std::max(now_, wall);
  now_ += elapsed;
  const Duration ahead = wall - now_;
  const Duration off = ahead < Duration{0} ? -ahead : ahead;
  // W2: one that was far ahead is believed again when it is near; merely behind is not a jump.
  const bool was_ahead = jump_pending_ && ahead > Duration{0};
  jump_pending_ = off > (was_ahead ? kStepMax : jump_max_);
  if (jump_pending_) return now_;
  if (ahead > Duration{0} && ahead <= kStepMax) {
    now_ += ahead;
  } else {
    const Duration slew = elapsed / kSlewShare;
    now_ += std::clamp(ahead, -slew, slew);
  }
  return now_;
}

// W4: what has passed since the latest reading is counted before. It is in the others' time
// already: counted behind it, it would be counted twice.
void LogClock::follow(Time others) { now_ = std::max(now(), others); }

Time LogClock::latest() const {
  const Time wall = wall_time(clock_);
  const bool believed = !jump_pending_ && wall - now_ <= jump_max_;
  return believed ? std::max(now_, wall) : now_;
}

}  // namespace hapax::engine
