// Workflows that are declared, changed and removed over HTTP.
#include <string>
#include <utility>
#include <variant>

#include <hapax/limits.h>

#include "base/format.h"
#include "rest/api.h"
#include "rest/commits.h"
#include "rest/replies.h"
#include "wire/event_fields.h"
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

Record sample_of(const Append& append) {
  Record sample{.id = std::string(append.id.value_or("")),
                .group = std::string(append.group.value_or("")),
                .payload = std::string(append.payload)};
  for (const Header& header : append.headers)
    sample.headers.emplace_back(header.name, header.value);
  return sample;
}

// As the store would judge it.
Status check_sample(const Append& event, const Record& sample) {
  if (event.id && event.id->empty()) return Error{Errc::kInvalidArgument, "id: is empty"};
  if (event.group && event.group->empty()) return Error{Errc::kInvalidArgument, "key: is empty"};
  const auto check = [](std::string_view what, std::size_t size, std::size_t most) -> Status {
    if (size <= most) return Ok{};
    return Error{Errc::kLimitExceeded,
                 base::format("{}: has {}; the most is {}", what, size, most)};
  };
  std::size_t header_bytes = 0;
  for (const auto& [name, value] : sample.headers) header_bytes += name.size() + value.size();
  HAPAX_CHECK(check("id", sample.id.size(), limits::kMessageIdBytesMax));
  HAPAX_CHECK(check("key", sample.group.size(), limits::kMessageIdBytesMax));
  HAPAX_CHECK(check("payload", sample.payload.size(), limits::kRecordBytesMax));
  HAPAX_CHECK(check("headers", sample.headers.size(), limits::kHeadersMax));
  return check("bytes of headers", header_bytes, limits::kHeaderBytesMax);
}

// The body is an event, as one that is posted to the workflow.
Act test_workflow(access::Entry& entry, WorkflowChanges& changes) {
  return [&entry, &changes](const SharedCall& call) {
    if (!understands(call)) return;
    const auto send = option<bool>(call, "send", false);
    if (!send) return respond_error(call, send.error());
    const std::string workflow(call->name("workflow"));
    const wire::TextField given[] = {{"workflow", workflow}};
    const auto event = wire::read_op(wire::kEvent, call->request().body, given);
    if (!event) return respond_error(call, event.error());
    const Status keyed = give_id(call->request(), **event);  // It must be one, and has no effect.
    if (!keyed) return respond_error(call, keyed.error());
    const auto& append = std::get<Append>((*event)->ops.at(0));
    const Record sample = sample_of(append);
    const Status sound = check_sample(append, sample);
    if (!sound) return respond_error(call, sound.error());
    const auto test = [&changes, workflow, send = *send, tenant = call->caller().tenant,
                       sample](Store&) { return changes.test(tenant, workflow, sample, send); };
    entry.ask(call->from(), call->caller(), test,
              [&entry, call, sent = *send](const Result<std::string>& json) {
                if (json && sent) audit_workflow(entry, *call, "test_workflow");
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
  Route test = add("POST", "/workflows/{workflow}/test", test_workflow(entry, changes),
                   "Try a workflow with a sample event, which is not stored", "WorkflowTest");
  test.op = wire::kEvent;
  test.query = {{"send", flag, "Really send it, once"}};
  router.add(std::move(test));
}

}  // namespace hapax::rest
