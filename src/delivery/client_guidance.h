// What a client needs to know that a workflow delivers to: the text for its developers. It promises
// nothing that HTTP cannot keep.
#pragma once

#include <string>

#include "delivery/workflow.h"

namespace hapax::delivery {

// Sentences; empty unless the workflow says clientGuidance.
[[nodiscard]] std::string client_guidance(const Workflow& workflow);

}  // namespace hapax::delivery
