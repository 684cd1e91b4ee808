// Workflows that are declared, changed and removed over HTTP.
#include <string>
#include <utility>

#include "rest/api.h"
#include "rest/commits.h"
#include "rest/replies.h"
#include "wire/json_schema.h"
#include "wire/json_text.h"

namespace hapax::rest {

namespace {

// What it may say is told by the schema of the configuration.
constexpr std::string_view kDeclarationBody =
    R"({"type":"object","properties":{"id":{"type":"string"}},"required":["id"]})";

void respond_change(const SharedCall& call, const Result<std::string>& json) {
  respond_read(call, json, [](const std::string& text) { return text; });
}

// A13: who changes a workflow of a tenant is written to its audit.
void audit_workflow(access::Entry& entry, const Call& call, std::string_view act) {
  if (call.caller().tenant.empty()) return;
  entry.audit(call.caller().tenant, wire::JsonObject()
                                        .add("act", act)
                                        .add("subject", call.name("workflow"))
                                        .add("actor", call.caller().subject)
                                        .text());
}

Result<WorkflowWanted> wanted_workflow(const SharedCall& call) {
  WorkflowWanted wanted{.declaration = std::string(call->request().body),
                        .actor = call->caller().subject};
  if (call->request().query_value("version")) {
    HAPAX_TRY(wanted.version, option<std::uint64_t>(call, "version", 0));
  }
  HAPAX_TRY(wanted.dry_run, option<bool>(call, "dry_run", false));
  return wanted;
}

Act put_workflow(access::Entry& entry, WorkflowChanges& changes) {
  return [&entry, &changes](const SharedCall& call) {
    if (!understands(call)) return;
    auto wanted = wanted_workflow(call);
    if (!wanted) return respond_error(call, wanted.error());
    const bool dry_run = wanted->dry_run;
    const auto put = [&changes, wanted = *std::move(wanted), tenant = call->caller().tenant,
                      workflow = std::string(call->name("workflow"))](Store& store) {
      return changes.put(tenant, workflow, wanted, store);
    };
    entry.ask(call->from(), call->caller(), put,
              [&entry, call, dry_run](const Result<std::string>& json) {
                if (json && !dry_run) audit_workflow(entry, *call, "put_workflow");
                respond_change(call, json);
              });
  };
}

Act remove_workflow(access::Entry& entry, WorkflowChanges& changes) {
  return [&entry, &changes](const SharedCall& call) {
    const auto drop = option<bool>(call, "drop_undelivered", false);
    if (!drop) return respond_error(call, drop.error());
    const auto remove = [&changes, drop = *drop, tenant = call->caller().tenant,
                         actor = call->caller().subject,
                         workflow = std::string(call->name("workflow"))](Store& store) {
      return changes.remove(tenant, workflow, drop, actor, store);
    };
    entry.ask(call->from(), call->caller(), remove,
              [&entry, call](const Result<std::string>& json) {
                if (json) audit_workflow(entry, *call, "remove_workflow");
                respond_change(call, json);
              });
  };
}

}  // namespace

void add_workflow_change_routes(Router& router, access::Entry& entry, WorkflowChanges& changes) {
  const std::string flag = R"({"type":"boolean"})";
  const auto add = [&](std::string method, std::string_view path, Act act, std::string summary,
                       std::string answer) -> Route {
    Route route{std::move(method), std::string(kRoot).append(path),
                guarded({access::Right::kAdmin}, std::move(act)), std::move(summary), ""};
    route.answer = std::move(answer);
    return route;
  };
  Route put = add("PUT", "/workflows/{workflow}", put_workflow(entry, changes),
                  "Declare a workflow, or change it", "WorkflowPut");
  put.body = kDeclarationBody;
  put.query = {{"version", wire::number_schema_of({}), "That it must have; 0: there must be none"},
               {"dry_run", flag, "Only say what would change"}};
  router.add(std::move(put));
  Route remove = add("DELETE", "/workflows/{workflow}", remove_workflow(entry, changes),
                     "Remove a workflow, and what it keeps", "WorkflowRemoved");
  remove.query = {{"drop_undelivered", flag,
                   "Also while records wait or dead letters are kept, which are lost then"}};
  router.add(std::move(remove));
}

}  // namespace hapax::rest
