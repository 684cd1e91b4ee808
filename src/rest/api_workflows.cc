// Workflows over HTTP: events that are posted to them, how they do, and whether they are paused.
#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/format.h"
#include "rest/api.h"
#include "rest/commits.h"
#include "rest/replies.h"
#include "wire/event_fields.h"
#include "wire/json_schema.h"
#include "wire/json_text.h"

namespace hapax::rest {

namespace {

constexpr std::uint64_t kTimeMax = std::numeric_limits<std::int64_t>::max();

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

void respond_json(const SharedCall& call, const Result<std::string>& json) {
  respond_read(call, json, [](const std::string& text) { return text; });
}

Act list_workflows(access::Entry& entry, const WorkflowDirectory& directory) {
  return [&entry, &directory](const SharedCall& call) {
    const auto list = [&directory, tenant = call->caller().tenant](Store& store) {
      return directory.list(tenant, store);
    };
    entry.ask(call->from(), call->caller(), list,
              [call](const Result<std::string>& json) { respond_json(call, json); });
  };
}

Act show_workflow(access::Entry& entry, const WorkflowDirectory& directory) {
  return [&entry, &directory](const SharedCall& call) {
    const auto show = [&directory, tenant = call->caller().tenant,
                       workflow = std::string(call->name("workflow"))](Store& store) {
      return directory.show(tenant, workflow, store);
    };
    entry.ask(call->from(), call->caller(), show,
              [call](const Result<std::string>& json) { respond_json(call, json); });
  };
}

Result<AttemptsWanted> wanted_by(const SharedCall& call) {
  AttemptsWanted wanted;
  HAPAX_CHECK(check_name(call, "key", wire::allowed::kKey));
  const auto text = [&](std::string_view name, std::optional<std::string>& value) {
    if (const auto given = call->request().query_value(name)) value = std::string(*given);
  };
  text("key", wanted.key);
  text("outcome", wanted.outcome);
  text("endpoint", wanted.endpoint);
  const auto time = [&](std::string_view name, std::optional<std::int64_t>& value) -> Status {
    if (!call->request().query_value(name)) return Ok{};
    HAPAX_TRY(const std::uint64_t given, option<std::uint64_t>(call, name, 0));
    value = static_cast<std::int64_t>(std::min(given, kTimeMax));
    return Ok{};
  };
  HAPAX_CHECK(time("since_ms", wanted.since_ms));
  HAPAX_CHECK(time("until_ms", wanted.until_ms));
  HAPAX_TRY(wanted.from, option<std::uint64_t>(call, "from", 0));
  HAPAX_TRY(wanted.max, option<std::uint32_t>(call, "max", wanted.max));
  if (wanted.max == 0 || wanted.max > kAttemptsMax) {
    return Error{Errc::kInvalidArgument,
                 base::format("max: expected 1 to {}, got {}", kAttemptsMax, wanted.max)};
  }
  return wanted;
}

Act list_attempts(access::Entry& entry, const WorkflowDirectory& directory) {
  return [&entry, &directory](const SharedCall& call) {
    const auto wanted = wanted_by(call);
    if (!wanted) return respond_error(call, wanted.error());
    const auto find = [&directory, wanted = *wanted, tenant = call->caller().tenant,
                       workflow = std::string(call->name("workflow"))](Store& store) {
      return directory.attempts(tenant, workflow, wanted, store);
    };
    entry.ask(call->from(), call->caller(), find,
              [call](const Result<std::string>& json) { respond_json(call, json); });
  };
}

void add_attempts_route(Router& router, access::Entry& entry, const WorkflowDirectory& directory) {
  Route route{"GET", std::string(kRoot) + "/workflows/{workflow}/attempts",
              guarded({access::Right::kAdmin}, list_attempts(entry, directory)),
              "Attempts of a workflow, oldest first", ""};
  route.answer = "Attempts";
  const std::string number = wire::number_schema_of({});
  route.query = {
      {"key", wire::text_schema_of(wire::allowed::kKey),
       "Of this delivery key, message id or event id"},
      {"since_ms", number, "Settled then or later"},
      {"until_ms", number, "Settled then or earlier"},
      {"outcome", R"({"enum":["delivered","rejected","try-later","unknown"]})", "That ended so"},
      {"endpoint", R"({"type":"string"})", "Of the endpoint of that name"},
      {"max", wire::number_schema_of({1, kAttemptsMax}), "How many at most; 100 without it"},
      {"from", number, "`next` of the page before"}};
  router.add(std::move(route));
}

// A13: who pauses a workflow of a tenant is written to its audit.
void audit_pause(access::Entry& entry, const Call& call, bool paused) {
  if (call.caller().tenant.empty()) return;
  entry.audit(call.caller().tenant, wire::JsonObject()
                                        .add("act", paused ? "pause" : "resume")
                                        .add("subject", call.name("workflow"))
                                        .add("actor", call.caller().subject)
                                        .text());
}

Act set_paused(access::Entry& entry, const WorkflowDirectory& directory, bool paused) {
  return [&entry, &directory, paused](const SharedCall& call) {
    const auto set =
        [&directory, paused, tenant = call->caller().tenant,
         workflow = std::string(call->name("workflow"))](Store& store) -> Result<std::string> {
      HAPAX_CHECK(directory.set_paused(tenant, workflow, paused, store));
      return directory.show(tenant, workflow, store);
    };
    entry.ask(call->from(), call->caller(), set,
              [&entry, call, paused](const Result<std::string>& json) {
                if (json) audit_pause(entry, *call, paused);
                respond_json(call, json);
              });
  };
}

void add_route(Router& router, std::string method, std::string_view path, Act act,
               std::string summary, std::string answer) {
  Route route{std::move(method), std::string(kRoot).append(path), std::move(act),
              std::move(summary), ""};
  route.answer = std::move(answer);
  router.add(std::move(route));
}

}  // namespace

void add_workflow_routes(Router& router, access::Entry& entry, const WorkflowDirectory& directory) {
  using access::Right;
  const auto seen_by = {Right::kAdmin, Right::kConsume, Right::kProduce};
  add_route(router, "GET", "/workflows", guarded(seen_by, list_workflows(entry, directory)),
            "Workflows, and how they do", "Workflows");
  add_route(router, "GET", "/workflows/{workflow}",
            guarded({Right::kAdmin}, show_workflow(entry, directory)),
            "A workflow: its declaration, and how it does", "Workflow");
  add_attempts_route(router, entry, directory);
  add_route(router, "POST", "/workflows/{workflow}/pause",
            guarded({Right::kAdmin}, set_paused(entry, directory, true)),
            "Send nothing of a workflow until it is resumed", "Workflow");
  add_route(router, "POST", "/workflows/{workflow}/resume",
            guarded({Right::kAdmin}, set_paused(entry, directory, false)), "Let a workflow go on",
            "Workflow");
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
  add_blocked_routes(router, entry, directory);
}

}  // namespace hapax::rest
