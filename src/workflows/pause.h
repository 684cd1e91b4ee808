// Whether a workflow is paused: a register of the store, so that it holds over restarts and for
// every process that shares the store.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include <hapax/result.h>
#include <hapax/store.h>
#include <hapax/time.h>

#include "delivery/workflow.h"
#include "ports/clock.h"

namespace hapax::workflows {

[[nodiscard]] Result<bool> is_paused(Store& store, const delivery::WorkflowId& id);
[[nodiscard]] Status set_paused(Store& store, const delivery::WorkflowId& id, bool paused);

// Looks at most so often, however often it is asked. One thread at a time.
class PauseSwitch {
 public:
  static constexpr Duration kLookEvery{1'000};

  PauseSwitch(Store& store, ports::Clock& clock, delivery::WorkflowId id)
      : store_(store), clock_(clock), id_(std::move(id)) {}

  // While the store does not answer, as it said last; paused, if it has not said anything yet.
  [[nodiscard]] bool paused();

 private:
  Store& store_;
  ports::Clock& clock_;
  const delivery::WorkflowId id_;
  std::optional<std::int64_t> looked_ms_{};
  std::optional<bool> paused_{};
};

}  // namespace hapax::workflows
