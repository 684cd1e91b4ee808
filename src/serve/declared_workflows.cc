#include "serve/declared_workflows.h"

#include <algorithm>
#include <variant>

#include "base/format.h"
#include "delivery/workflow_runs.h"
#include "workflows/own_streams.h"

namespace hapax::serve {

namespace {

using delivery::Workflow;

Error not_known(std::string_view workflow) {
  return Error{Errc::kNotFound,
               base::format("workflow '{}' is not declared on this server; the block workflows: of "
                            "its configuration names those that are",
                            workflow)};
}

// Why nothing can be posted to a workflow that runs.
std::string other_source(const Workflow& workflow) {
  if (const auto* from = std::get_if<delivery::FromStream>(&*workflow.source)) {
    return base::format("its source is stream '{}'; append records there", from->stream);
  }
  return "its source is an outbox table; publish there";
}

}  // namespace

const Workflow* DeclaredWorkflows::find(std::string_view tenant, std::string_view id) const {
  const auto is_it = [&](const Workflow& workflow) {
    return workflow.tenant == tenant && workflow.id.text() == id;
  };
  const auto at = std::find_if(workflows_.begin(), workflows_.end(), is_it);
  return at == workflows_.end() ? nullptr : &*at;
}

Result<std::string> DeclaredWorkflows::stream_of_events(std::string_view tenant,
                                                        std::string_view workflow) const {
  const Workflow* const found = find(tenant, workflow);
  if (found == nullptr) return not_known(workflow);
  const auto takes_none = [&](const std::string& why) {
    return Error{Errc::kPreconditionFailed,
                 base::format("workflow '{}' takes no events: {}", workflow, why)};
  };
  if (const auto why = delivery::why_not_run(*found)) return takes_none("it " + *why);
  if (!std::holds_alternative<delivery::FromHttp>(*found->source)) {
    return takes_none(other_source(*found));
  }
  return workflows::events_stream_of(found->id);
}

}  // namespace hapax::serve
