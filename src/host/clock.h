// The machine's clocks. The only place of the store's process that asks for the time; everything
// else is handed a ports::Clock. Stateless, so any number of threads may share one.
#pragma once

#include "ports/clock.h"

namespace hapax::host {

class HostClock final : public ports::Clock {
 public:
  [[nodiscard]] std::int64_t wall_ms() override;
  // Goes on while the machine sleeps: a lease that ran out during a suspend has run out.
  [[nodiscard]] std::int64_t steady_ms() override;
};

}  // namespace hapax::host
