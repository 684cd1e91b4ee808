// Which workflows this version runs.
#pragma once

#include <optional>
#include <string>

#include "delivery/workflow.h"

namespace hapax::delivery {

// Why the workflow does not run; nothing: it does. The sentence reads after the name of the
// workflow.
[[nodiscard]] std::optional<std::string> why_not_run(const Workflow& workflow);

}  // namespace hapax::delivery
