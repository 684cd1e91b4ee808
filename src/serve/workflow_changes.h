// Workflows that come, change and go over the API.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "config/config.h"
#include "delivery/workflow.h"
#include "ports/clock.h"
#include "rest/workflow_changes.h"
#include "serve/declarations.h"
#include "serve/workflow_board.h"
#include "workflows/trial.h"

namespace hapax::serve {

// Of what a tenant declares over the API; 0: no limit.
struct WorkflowLimits {
  std::uint64_t workflows_max = 0;
  std::uint64_t endpoints_max = 0;
};
[[nodiscard]] WorkflowLimits workflow_limits_of(const config::TenantLimits& limits);

struct WorkflowChangesPorts {
  Store& store;  // the whole one
  const WorkflowBoard& board;
  ports::Clock& clock;
  std::function<WorkflowLimits(std::string_view tenant)> limits_of;
  // What would keep it from running, other than what was said of it.
  std::function<Status(const delivery::Workflow&)> check;
  std::function<Result<workflows::Trial>(const delivery::Workflow&, const Record&, bool send)>
      try_out;
  // What is durable takes effect in this process.
  std::function<void()> follow;
};

class ChangedWorkflows final : public rest::WorkflowChanges {
 public:
  explicit ChangedWorkflows(WorkflowChangesPorts ports)
      : ports_(std::move(ports)), declarations_(ports_.store) {}

  [[nodiscard]] Result<std::string> put(std::string_view tenant, std::string_view workflow,
                                        const rest::WorkflowWanted& wanted, Store& store) override;
  [[nodiscard]] Result<std::string> remove(std::string_view tenant, std::string_view workflow,
                                           bool drop_undelivered, std::string_view actor,
                                           Store& store) override;
  [[nodiscard]] Result<std::string> test(std::string_view tenant, std::string_view workflow,
                                         const Record& sample, bool send) override;

 private:
  [[nodiscard]] Status check_limits(const delivery::Workflow& workflow) const;
  [[nodiscard]] Status check_free(const WorkflowName& name,
                                  const std::optional<StoredDeclaration>& stored) const;
  [[nodiscard]] Error moved_on(const WorkflowName& name);

  const WorkflowChangesPorts ports_;
  Declarations declarations_;
};

}  // namespace hapax::serve
