// Changes of workflows while the server runs, for the routes that make them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <hapax/result.h>
#include <hapax/store.h>

namespace hapax::rest {

struct WorkflowWanted {
  std::string declaration;                 // JSON
  std::optional<std::uint64_t> version{};  // that it must have; 0: there must be none
  bool dry_run = false;
  std::string actor{};  // empty: nobody knows
};

class WorkflowChanges {
 public:
  WorkflowChanges() = default;
  WorkflowChanges(const WorkflowChanges&) = delete;
  WorkflowChanges& operator=(const WorkflowChanges&) = delete;
  virtual ~WorkflowChanges() = default;

  // All of them wait for the store, which is given as the tenant sees it, and answer JSON. What
  // they answer is durable.

  // {"id":…,"outcome":WORD,"version":…,"differences":[…],"warnings":[…]}; WORD is one of created,
  // changed and unchanged.
  // kInvalidArgument: all that is wrong with the declaration, one a line; kPreconditionFailed: it
  // has another version, or may not be changed here; kLimitExceeded: a limit of the tenant.
  [[nodiscard]] virtual Result<std::string> put(std::string_view tenant, std::string_view workflow,
                                                const WorkflowWanted& wanted, Store& store) = 0;
  // {"id":…,"state":"removing"|"removed"}. kNotFound: there is none; kPreconditionFailed: records
  // wait, or it may not be changed here.
  [[nodiscard]] virtual Result<std::string> remove(std::string_view tenant,
                                                   std::string_view workflow, bool drop_undelivered,
                                                   std::string_view actor, Store& store) = 0;
  // What would become of the sample, or becomes of it if it is sent; nothing of it is stored.
  // kNotFound: there is no such workflow; kPreconditionFailed: it is a draft.
  [[nodiscard]] virtual Result<std::string> test(std::string_view tenant, std::string_view workflow,
                                                 const Record& sample, bool send) = 0;
};

}  // namespace hapax::rest
