// What the threads of a workflow do: a step, a rest until there is something to do, the next step.
#pragma once

#include <atomic>
#include <functional>
#include <string_view>

#include <hapax/result.h>
#include <hapax/time.h>

#include "ports/clock.h"
#include "workflows/wait_notes.h"

namespace hapax::workflows {

struct StepLoop {
  std::function<Result<Duration>()> step;  // for how long there is nothing to do
  std::function<void(Duration)> wait;      // returns early when there may be something
  std::function<void(std::string_view)> log;
  WaitNote* note = nullptr;  // what is told while a step fails
};

// Until `stop` is set. After an error it rests, longer each time, and tells it once, however long
// it lasts; another error is told, too.
void run_steps(const StepLoop& loop, ports::Clock& clock, const std::atomic<bool>& stop);

}  // namespace hapax::workflows
