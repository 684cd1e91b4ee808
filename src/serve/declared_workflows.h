// Workflows as the doors know them, whoever declared them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "delivery/workflow.h"
#include "rest/workflow_directory.h"
#include "serve/workflow_board.h"
#include "wire/json_text.h"
#include "workflows/figures.h"
#include "workflows/wait_notes.h"

namespace hapax::serve {

class DeclaredWorkflows final : public rest::WorkflowDirectory {
 public:
  // Visits the endpoints of workflows that run in this process.
  using EachEndpoint = std::function<void(const workflows::FiguresBoard::Visit& visit)>;

  // Why a workflow that runs in this process sends nothing; nothing: it does.
  using WaitOf = std::function<std::optional<workflows::WorkflowWait>(const delivery::Workflow&)>;

  // The board outlives it.
  explicit DeclaredWorkflows(const WorkflowBoard& board, EachEndpoint each_endpoint = {},
                             WaitOf wait_of = {})
      : board_(board), each_endpoint_(std::move(each_endpoint)), wait_of_(std::move(wait_of)) {}

  // kNotFound: it is not declared.
  [[nodiscard]] Result<delivery::Workflow> declared(std::string_view tenant,
                                                    std::string_view workflow) const;
  [[nodiscard]] Result<std::string> stream_of_events(std::string_view tenant,
                                                     std::string_view workflow) const override;
  [[nodiscard]] Result<std::string> list(std::string_view tenant, Store& store) const override;
  [[nodiscard]] Result<std::string> show(std::string_view tenant, std::string_view workflow,
                                         Store& store) const override;
  [[nodiscard]] Result<std::string> attempts(std::string_view tenant, std::string_view workflow,
                                             const rest::AttemptsWanted& wanted,
                                             Store& store) const override;
  [[nodiscard]] Status set_paused(std::string_view tenant, std::string_view workflow, bool paused,
                                  Store& store) const override;
  [[nodiscard]] Result<std::string> blocked(std::string_view tenant, std::string_view workflow,
                                            Store& store) const override;
  [[nodiscard]] Result<std::string> decide_blocked(std::string_view tenant,
                                                   std::string_view workflow,
                                                   const rest::BlockedDecision& decision,
                                                   Store& store) const override;

 private:
  [[nodiscard]] Result<wire::JsonObject> told(const KnownWorkflow& known, Store& store) const;

  const WorkflowBoard& board_;
  const EachEndpoint each_endpoint_;
  const WaitOf wait_of_;
};

}  // namespace hapax::serve
