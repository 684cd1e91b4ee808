#include "workflows/pause.h"

#include <string>
#include <variant>

namespace hapax::workflows {

namespace {

std::string register_of(const delivery::WorkflowId& id) { return id.text() + ".paused"; }

}  // namespace

Result<bool> is_paused(Store& store, const delivery::WorkflowId& id) {
  HAPAX_TRY(const auto found, store.find_register(register_of(id)));
  return found.has_value();
}

Status set_paused(Store& store, const delivery::WorkflowId& id, bool paused) {
  const std::string name = register_of(id);
  Op op = Unset{.name = name};
  if (paused) op = Set{.name = name, .value = "paused", .mode = SetMode::kAlways};
  const Op ops[] = {op};
  HAPAX_TRY(const Answer answer, store.commit({ops}));
  if (const auto* refused = std::get_if<Refused>(&answer.verdicts.at(0))) return refused->error;
  return Ok{};
}

bool PauseSwitch::paused() {
  const std::int64_t now_ms = clock_.steady_ms();
  if (looked_ms_ && now_ms - *looked_ms_ < kLookEvery.count()) return *paused_;
  if (const Result<bool> now = is_paused(store_, id_)) {
    paused_ = *now;
  } else if (!paused_) {
    return true;  // Nothing is sent before it is known that somebody wants it.
  }
  looked_ms_ = now_ms;
  return *paused_;
}

}  // namespace hapax::workflows
