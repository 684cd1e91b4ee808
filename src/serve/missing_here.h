// For a check of a configuration, where no server runs.
#pragma once

#include <string>
#include <vector>

#include "delivery/workflow.h"

namespace hapax::serve {

// workflows::missing_here()
[[nodiscard]] std::vector<std::string> missing_here(
    const std::vector<delivery::Workflow>& workflows);

}  // namespace hapax::serve
