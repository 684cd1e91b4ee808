#include "workflows/step_loop.h"

#include <algorithm>
#include <string>
#include <utility>

namespace hapax::workflows {

namespace {

constexpr Duration kTroubleFirst{500};  // after an error of the store, doubled …
constexpr Duration kTroubleMax{15'000};

}  // namespace

void run_steps(const StepLoop& loop, ports::Clock& clock, const std::atomic<bool>& stop) {
  Duration trouble{0};
  std::string told;
  while (!stop) {
    const auto idle = loop.step();
    if (idle) {
      if (loop.note != nullptr) loop.note->goes_on();
      if (std::exchange(trouble, Duration{0}) != Duration{0}) loop.log("runs again");
      if (*idle > Duration{0} && !stop) loop.wait(*idle);
      continue;
    }
    const std::string text = idle.error().text();
    if (loop.note != nullptr) loop.note->waits(idle.error().detail);
    if (trouble == Duration{0} || text != told) loop.log(text);
    told = text;
    trouble = trouble == Duration{0} ? kTroubleFirst : std::min(trouble * 2, kTroubleMax);
    const std::int64_t until = clock.steady_ms() + trouble.count();
    while (!stop && clock.steady_ms() < until) loop.wait(Duration{until - clock.steady_ms()});
  }
}

}  // namespace hapax::workflows
