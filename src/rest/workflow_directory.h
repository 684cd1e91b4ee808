// What the server knows of workflows, for the routes that ask.
#pragma once

#include <string>
#include <string_view>

#include <hapax/result.h>
#include <hapax/store.h>

namespace hapax::rest {

// What somebody wants done about the record that blocks a key.
struct BlockedDecision {
  std::string key;
  std::string word;    // retry, park, drop
  std::string reason;  // of the person; drop needs one
  std::string actor;   // empty: nobody knows
};

class WorkflowDirectory {
 public:
  WorkflowDirectory() = default;
  WorkflowDirectory(const WorkflowDirectory&) = delete;
  WorkflowDirectory& operator=(const WorkflowDirectory&) = delete;
  virtual ~WorkflowDirectory() = default;

  // The stream that keeps the events which are posted to the workflow. kNotFound: there is no such
  // workflow; kPreconditionFailed: it takes none, and the error says why. Never waits.
  [[nodiscard]] virtual Result<std::string> stream_of_events(std::string_view tenant,
                                                             std::string_view workflow) const = 0;

  // The following wait for the store, which is given as the tenant sees it. All of the tenant as
  // JSON, and one with its declaration, without values of secrets.
  [[nodiscard]] virtual Result<std::string> list(std::string_view tenant, Store& store) const = 0;
  [[nodiscard]] virtual Result<std::string> show(std::string_view tenant, std::string_view workflow,
                                                 Store& store) const = 0;
  // Durable, and for every process that shares the store. kPreconditionFailed: the workflow does
  // not run, and the error says why.
  [[nodiscard]] virtual Status set_paused(std::string_view tenant, std::string_view workflow,
                                          bool paused, Store& store) const = 0;
  // Keys whose later records wait, and what blocks each; and what is decided about one. Both answer
  // JSON. kNotFound: nothing blocks that key.
  [[nodiscard]] virtual Result<std::string> blocked(std::string_view tenant,
                                                    std::string_view workflow,
                                                    Store& store) const = 0;
  [[nodiscard]] virtual Result<std::string> decide_blocked(std::string_view tenant,
                                                           std::string_view workflow,
                                                           const BlockedDecision& decision,
                                                           Store& store) const = 0;
};

}  // namespace hapax::rest
