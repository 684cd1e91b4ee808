// What the server knows of workflows, for the routes that ask. Asked on any loop, and never waits.
#pragma once

#include <string>
#include <string_view>

#include <hapax/result.h>

namespace hapax::rest {

class WorkflowDirectory {
 public:
  WorkflowDirectory() = default;
  WorkflowDirectory(const WorkflowDirectory&) = delete;
  WorkflowDirectory& operator=(const WorkflowDirectory&) = delete;
  virtual ~WorkflowDirectory() = default;

  // The stream that keeps the events which are posted to the workflow. kNotFound: there is no such
  // workflow; kPreconditionFailed: it takes none, and the error says why.
  [[nodiscard]] virtual Result<std::string> stream_of_events(std::string_view tenant,
                                                             std::string_view workflow) const = 0;
};

}  // namespace hapax::rest
