// Records of the workflows that are declared, as the doors know them.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include <hapax/result.h>

#include "delivery/workflow.h"
#include "rest/record_directory.h"
#include "serve/outbox_survey.h"
#include "workflows/jq_conditions.h"

namespace hapax::serve {

class WorkflowRecords final : public rest::RecordDirectory {
 public:
  using FindWorkflow =
      std::function<Result<delivery::Workflow>(std::string_view tenant, std::string_view workflow)>;

  explicit WorkflowRecords(FindWorkflow find) : find_(std::move(find)) {}
  // REQUIRES: before the first question.
  void open_outboxes_with(OpenOutboxOf open) { open_ = std::move(open); }

  [[nodiscard]] Result<std::string> undelivered(std::string_view tenant, std::string_view workflow,
                                                const rest::UndeliveredWanted& wanted,
                                                Store& store) const override;
  [[nodiscard]] Result<std::string> dead(std::string_view tenant, std::string_view workflow,
                                         const rest::DeadWanted& wanted,
                                         Store& store) const override;
  [[nodiscard]] Result<std::string> replay_dead(std::string_view tenant, std::string_view workflow,
                                                const rest::DeadWanted& wanted, rest::DeadAct act,
                                                Store& store) const override;
  [[nodiscard]] Result<std::string> drop_dead(std::string_view tenant, std::string_view workflow,
                                              std::uint64_t through, Store& store) const override;
  [[nodiscard]] Result<std::string> replay_delivered(std::string_view tenant,
                                                     std::string_view workflow,
                                                     const rest::DeliveredWanted& wanted,
                                                     Store& store) const override;

 private:
  const FindWorkflow find_;
  OpenOutboxOf open_{};
  mutable workflows::JqConditions conditions_;
};

}  // namespace hapax::serve
