#include "delivery/engine_end.h"

namespace hapax::delivery {

Status end_engine(Engine& engine, ports::Clock& clock, Duration patience,
                  const std::function<void(Duration)>& rest) {
  engine.wind_down();
  const std::int64_t until = clock.steady_ms() + patience.count();
  while (engine.under_way() != 0 && clock.steady_ms() < until) {
    // An error of the source does not end the wait: an answer that comes is worth knowing.
    const auto step = engine.step();
    if (engine.under_way() != 0) rest(step ? Duration{5} : Duration{100});
  }
  return engine.stop();
}

}  // namespace hapax::delivery
