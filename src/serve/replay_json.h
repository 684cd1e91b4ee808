// Replays of what workflows have delivered, as the route tells them.
#pragma once

#include <string>

#include <hapax/result.h>
#include <hapax/store.h>

#include "delivery/workflow.h"
#include "rest/record_directory.h"

namespace hapax::serve {

[[nodiscard]] Result<std::string> replay_json(const delivery::Workflow& workflow,
                                              const rest::DeliveredWanted& wanted, Store& store);

}  // namespace hapax::serve
