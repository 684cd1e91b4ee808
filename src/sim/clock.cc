#include "sim/clock.h"

#include "base/assert.h"

namespace hapax::sim {

std::int64_t SimClock::wall_ms() {
  // Rounds down before 1970 too, so that wall time never seems to stand still at zero.
  const std::int64_t whole = wall_us_ / 1000;
  return wall_us_ % 1000 < 0 ? whole - 1 : whole;
}

void SimClock::advance(std::int64_t ms) {
  HAPAX_ASSERT(ms >= 0, "true time only goes forward");
  steady_ms_ += ms;
  if (!frozen_) wall_us_ += ms * 1000 + ms * drift_ppm_ / 1000;
}

void SimClock::jump(std::int64_t wall_ms) { wall_us_ += wall_ms * 1000; }

void SimClock::set_wall(std::int64_t wall_ms) { wall_us_ = wall_ms * 1000; }

}  // namespace hapax::sim
