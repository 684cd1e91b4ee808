// Time from outside. Wall time is advisory: it may jump both ways. Steady time only measures spans.
#pragma once

#include <cstdint>

namespace hapax::ports {

class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;
  [[nodiscard]] virtual std::int64_t wall_ms() = 0;    // since 1970
  [[nodiscard]] virtual std::int64_t steady_ms() = 0;  // since some fixed point
};

}  // namespace hapax::ports
