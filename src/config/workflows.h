// From what a file writes to workflows that can be judged and run, and back.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <hapax/result.h>

#include "config/config.h"
#include "config/finding.h"
#include "config/publish.h"
#include "delivery/workflow.h"

namespace hapax::config {

// Makes config.workflows of what was written, and judges them: what is refused is an error, what
// may be meant a warning, each at its place in the file.
void apply_workflows(Config& config, const Given& given, ConfigFindings& findings);

// The same text for equal workflows: every value that holds, defaults included, in the order of the
// reference page. What the store keeps, and what differences are shown of.
[[nodiscard]] std::string to_json(const delivery::Workflow& workflow, Secrets secrets);

// Reads what to_json writes, or what a client sends: the keys and errors are those of the file.
// kInvalidArgument with all errors, one a line. Nothing is judged.
[[nodiscard]] Result<delivery::Workflow> workflow_from_json(std::string_view text);

// One value that differs, as JSON; empty: it is not set. Secrets are hidden, and differ all the
// same.
struct WorkflowDifference {
  std::string path;  // "delivery.retries.maxAttempts"
  std::string before;
  std::string after;
  friend bool operator==(const WorkflowDifference&, const WorkflowDifference&) = default;
};
// In the order of their paths; none for equal workflows.
[[nodiscard]] std::vector<WorkflowDifference> differences(const delivery::Workflow& before,
                                                          const delivery::Workflow& after);

}  // namespace hapax::config
