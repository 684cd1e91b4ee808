// Dead letters of workflows as JSON, for the routes.
#pragma once

#include <string>

#include <hapax/result.h>
#include <hapax/store.h>

#include "delivery/workflow.h"
#include "rest/record_directory.h"
#include "serve/outbox_survey.h"
#include "workflows/jq_conditions.h"

namespace hapax::serve {

// Whose dead letters: `declared` is null if nobody declares the workflow any more.
struct DeadPlace {
  const delivery::Workflow* declared = nullptr;
  std::string stream;
  OpenOutboxOf open{};  // none: databases are not asked
};

[[nodiscard]] Result<std::string> dead_json(const DeadPlace& place, const rest::DeadWanted& wanted,
                                            workflows::JqConditions& conditions, Store& store);
[[nodiscard]] Result<std::string> replay_dead_json(const DeadPlace& place,
                                                   const rest::DeadWanted& wanted,
                                                   rest::DeadAct act,
                                                   workflows::JqConditions& conditions,
                                                   Store& store);

}  // namespace hapax::serve
