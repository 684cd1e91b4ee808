// A clock that moves only when the test says so. Wall time may do everything a real one does wrong:
// jump both ways, drift, stand still. Steady time only goes forward, and begins anew with a reboot.
#pragma once

#include <cstdint>

#include "ports/clock.h"

namespace hapax::sim {

class SimClock final : public ports::Clock {
 public:
  static constexpr std::int64_t kStartMs = 1'700'000'000'000;  // November 2023

  explicit SimClock(std::int64_t wall_ms = kStartMs) : wall_us_(wall_ms * 1000) {}

  [[nodiscard]] std::int64_t wall_ms() override;
  [[nodiscard]] std::int64_t steady_ms() override { return steady_ms_; }

  void advance(std::int64_t ms);    // True time passes.
  void jump(std::int64_t wall_ms);  // Somebody corrects the wall clock by so much.
  void set_wall(std::int64_t wall_ms);
  // Wall time gains so many milliseconds in a million; negative loses.
  void drift(std::int64_t parts_per_million) { drift_ppm_ = parts_per_million; }
  void freeze() { frozen_ = true; }  // Wall time stands still; steady time goes on.
  void thaw() { frozen_ = false; }
  void reboot() { steady_ms_ = 0; }

 private:
  std::int64_t wall_us_;  // Microseconds, or small drifts would be rounded away.
  std::int64_t steady_ms_ = 0;
  std::int64_t drift_ppm_ = 0;
  bool frozen_ = false;
};

}  // namespace hapax::sim
