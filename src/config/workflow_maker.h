// One workflow of what was written of it, and the other way round.
#pragma once

#include <optional>
#include <string>

#include "config/finding.h"
#include "config/written_workflow.h"
#include "delivery/workflow.h"

namespace hapax::config {

// `path` is where it was written ("workflows.0"; empty: it is the whole text). Nothing, and at
// least one error, if keys do not belong together.
[[nodiscard]] std::optional<delivery::Workflow> make_workflow(const WrittenWorkflow& written,
                                                              const WrittenDelivery& defaults,
                                                              const std::string& path,
                                                              const Given& given,
                                                              ConfigFindings& findings);

// Every value that holds, so that make_workflow() makes an equal one of it without any defaults.
[[nodiscard]] WrittenWorkflow write_workflow(const delivery::Workflow& workflow);

}  // namespace hapax::config
