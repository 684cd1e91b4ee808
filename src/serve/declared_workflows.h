// The workflows of the configuration, as the doors know them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "delivery/workflow.h"
#include "rest/workflow_directory.h"

namespace hapax::serve {

class DeclaredWorkflows final : public rest::WorkflowDirectory {
 public:
  explicit DeclaredWorkflows(std::vector<delivery::Workflow> workflows)
      : workflows_(std::move(workflows)) {}

  [[nodiscard]] Result<std::string> stream_of_events(std::string_view tenant,
                                                     std::string_view workflow) const override;

 private:
  [[nodiscard]] const delivery::Workflow* find(std::string_view tenant, std::string_view id) const;

  const std::vector<delivery::Workflow> workflows_;
};

}  // namespace hapax::serve
