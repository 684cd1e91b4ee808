#include "config/unsupported.h"

#include "delivery/workflow_runs.h"

namespace hapax::config {

Unsupported unsupported(const Config& config) {
  Unsupported found;
  for (const Stream& stream : config.streams) {
    if (stream.tenant.empty() != config.auth.configured()) continue;
    found.ignored.push_back("streams: '" + stream.stream +
                            (stream.tenant.empty()
                                 ? "' is of no tenant, and nobody can reach it"
                                 : "' is of a tenant that nobody can sign in to"));
  }
  for (const delivery::Workflow& workflow : config.workflows) {
    const auto why = delivery::why_not_run(workflow);
    if (why) found.ignored.push_back("workflows: '" + workflow.id.text() + "' " + *why);
  }
  return found;
}

}  // namespace hapax::config
