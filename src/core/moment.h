// An instant as the store knows it: log time, by which everything is decided, and the wall clock as
// far as it is believed, by which callers live. Log time may lag behind the wall clock, or be ahead
// of it, and approaches it by a tenth (docs/internals/time.md).
#pragma once

#include <algorithm>
#include <cstdint>

#include <hapax/time.h>

namespace hapax::core {

// W1: the most that log time moves at once: a wall clock so little ahead is followed immediately.
inline constexpr Duration kStepMax{2000};
// W1: the part of the elapsed time by which log time approaches the wall clock.
inline constexpr std::int64_t kSlewShare = 10;

struct Moment {
  Time now;   // log time
  Time wall;  // the wall clock, as far as it is believed

  [[nodiscard]] Duration lag() const { return wall - now; }

  // W6: the log time that is reached when the wall clock shows `at`, if nobody sets the clock until
  // then. A caller's time that has passed is never later than `now`; how long ago it was in log
  // time is rounded up.
  [[nodiscard]] Time log_at(Time at) const {
    if (at == Time::max()) return at;
    const Duration left = at - wall;
    if (left <= Duration{0}) return std::min(now, slews() ? now + left + left / kSlewShare : at);
    if (slews()) return left < catch_up() ? now + left + left / kSlewShare : at;
    if (lag() < Duration{0}) return now + left - std::min(left / kSlewShare, -lag());
    return at;
  }

  // W6: what the wall clock will show when log time is there; the inverse of log_at().
  [[nodiscard]] Time wall_at(Time log) const {
    if (log == Time::max()) return log;
    const Duration left = log - now;
    if (slews()) {
      const Duration slewed = left - left / (kSlewShare + 1);
      return slewed < catch_up() ? wall + slewed : std::max(wall + catch_up(), log);
    }
    if (lag() < Duration{0}) return wall + left + std::min(left / (kSlewShare - 1), -lag());
    return std::max(log, wall);
  }

 private:
  [[nodiscard]] bool slews() const { return lag() > kStepMax; }
  // How long it takes until log time is near enough to be set to the wall clock.
  [[nodiscard]] Duration catch_up() const { return (lag() - kStepMax) * kSlewShare; }
};

}  // namespace hapax::core
