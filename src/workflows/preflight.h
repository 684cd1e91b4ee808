// What workflows would lack if they started here and now. For a check, which may run on another
// machine than the server.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "delivery/workflow.h"

namespace hapax::workflows {

// A sentence for each variable and file that is not there, and for each transform that does not
// compile; of workflows that run. Values of secrets are never told. Starts a process if there is a
// transform.
[[nodiscard]] std::vector<std::string> missing_here(std::span<const delivery::Workflow> workflows);

}  // namespace hapax::workflows
