// What blocks keys of a workflow, and what people decide about it, as the doors tell it.
#pragma once

#include <string>

#include <hapax/result.h>
#include <hapax/store.h>

#include "delivery/workflow.h"
#include "rest/workflow_directory.h"

namespace hapax::serve {

[[nodiscard]] Result<std::string> blocked_records(const delivery::Workflow& workflow, Store& store);
// Of a workflow in two steps each step may have a record that blocks the key: of both.
[[nodiscard]] Result<std::string> decide_blocked_records(const delivery::Workflow& workflow,
                                                         const rest::BlockedDecision& decision,
                                                         Store& store);

}  // namespace hapax::serve
