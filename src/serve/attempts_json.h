// Logs of attempts as JSON.
#pragma once

#include <string>
#include <string_view>

#include <hapax/store.h>

#include "delivery/workflow.h"
#include "rest/workflow_directory.h"

namespace hapax::serve {

// A page of the log of that workflow. `declared` is null if it is not declared any more: then keys
// are those of deliveries only. kNotFound: there is no log.
[[nodiscard]] Result<std::string> attempts_json(const delivery::Workflow* declared,
                                                std::string_view workflow,
                                                const rest::AttemptsWanted& wanted, Store& store);
// Of one that has attempted nothing.
[[nodiscard]] std::string no_attempts_json(const delivery::Workflow& declared);

}  // namespace hapax::serve
