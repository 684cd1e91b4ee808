// Workflows over HTTP: events that are posted to them.
#include <string>
#include <utility>
#include <variant>

#include "rest/api.h"
#include "rest/commits.h"
#include "rest/replies.h"
#include "wire/event_fields.h"

namespace hapax::rest {

namespace {

// The body is read first, so that what is wrong with it is told whichever workflow it is for.
Complete into_stream_of(const WorkflowDirectory& directory) {
  return [&directory](const SharedCall& call, wire::Request& request) -> Status {
    HAPAX_TRY(const std::string stream,
              directory.stream_of_events(call->caller().tenant, call->name("workflow")));
    const std::string_view kept = request.keep(stream);
    for (Op& op : request.ops) std::get<Append>(op).stream = kept;
    return Ok{};
  };
}

}  // namespace

void add_workflow_routes(Router& router, access::Entry& entry, const WorkflowDirectory& directory) {
  const std::string op(wire::kEvent);
  const std::string list = "events";
  const auto post =
      [act = many_ops(entry, op, list, into_stream_of(directory))](const SharedCall& call) {
        if (understands(call, {kLines})) act(call);
      };
  Route route{"POST", std::string(kRoot) + "/workflows/{workflow}/events",
              guarded({access::Right::kProduce}, post), "Post one event to a workflow, or many",
              op};
  route.list = list;
  router.add(std::move(route));
}

}  // namespace hapax::rest
