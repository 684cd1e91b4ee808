#include "serve/declared_workflows.h"

#include <algorithm>
#include <variant>

#include "base/format.h"
#include "base/time_text.h"
#include "config/workflows.h"
#include "delivery/client_guidance.h"
#include "delivery/workflow_runs.h"
#include "serve/attempts_json.h"
#include "serve/blocked_records.h"
#include "serve/survey.h"
#include "workflows/delivery_rows.h"
#include "workflows/own_streams.h"
#include "workflows/pause.h"

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

Result<Workflow> DeclaredWorkflows::declared(std::string_view tenant,
                                             std::string_view workflow) const {
  const Workflow* const found = find(tenant, workflow);
  if (found == nullptr) return not_known(workflow);
  return *found;
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

namespace {

// The stream that the workflow consumes; nothing: its records are elsewhere.
std::optional<std::string> source_of(const Workflow& workflow) {
  const auto source = workflows::source_stream(workflow);
  return source ? std::optional(source->name) : std::nullopt;
}

// Nothing: there is no such stream.
Result<std::optional<StreamStats>> find_stream(Store& store, std::string_view stream) {
  auto stats = store.describe(stream);
  if (!stats && stats.error().code == Errc::kNotFound) return std::optional<StreamStats>();
  if (!stats) return std::move(stats).error();
  return std::optional(*std::move(stats));
}

struct WaitingRecords {
  std::uint64_t waiting = 0;
  std::uint64_t in_flight = 0;
};

// Before it has begun it will take every record that is there.
void count_waiting(WaitingRecords& records, const StreamStats& stream,
                   const std::string& consumer) {
  std::uint64_t waiting = records_of(stream);
  for (const ConsumerStats& one : stream.consumers) {
    if (one.consumer != consumer) continue;
    waiting = stream.last.value - std::min(one.floor.value, stream.last.value);
    records.in_flight += one.in_flight;
  }
  records.waiting += waiting;
}

// Nothing was confirmed: there are none.
void tell_latency(wire::JsonObject& out, const metrics::HistogramValues& seconds) {
  if (!seconds.quantile(0)) return;
  wire::JsonObject latency;
  for (const auto& [name, share] : {std::pair{"p50", 0.5}, {"p95", 0.95}, {"p99", 0.99}}) {
    latency.raw(name, base::format("{:.6g}", *seconds.quantile(share) * 1'000));
  }
  out.raw("latency_ms", latency.text());
}

void tell_endpoint(wire::JsonObject& out, const workflows::EndpointFigures& figures) {
  workflows::DeliveryCounts counts;
  counts.add(figures);
  out.add("name", figures.endpoint()).add("attempts", figures.attempts());
  out.add("delivered", figures.delivered()).add("retries", figures.retried());
  out.add("dead_letters", figures.dead()).add("unknown", figures.unknown());
  out.add("pauses", figures.pauses()).add("repeats", figures.repeated());
  out.raw("retry_rate", base::format("{:.6g}", counts.retry_rate()));
  out.raw("duplicate_rate", base::format("{:.6g}", counts.duplicate_rate()));
  out.add("disabled", figures.is_disabled());
  tell_latency(out, counts.delivery_seconds);
  if (const std::string error = figures.last_error(); !error.empty()) out.add("last_error", error);
}

}  // namespace

Result<wire::JsonObject> DeclaredWorkflows::told(const Workflow& workflow, Store& store) const {
  wire::JsonObject out;
  out.add("id", workflow.id.text());
  if (const auto why = delivery::why_not_run(workflow)) {
    out.add("state", "not_running").add("reason", *why);
  } else {
    HAPAX_TRY(const bool paused, workflows::is_paused(store, workflow.id));
    const auto wait = wait_of_ && !paused ? wait_of_(workflow) : std::nullopt;
    out.add("state", paused ? "paused" : wait ? "waiting" : "running");
    if (wait) out.add("reason", wait->reason).add("since", base::rfc3339_ms(wait->since));
  }
  if (const auto source = source_of(workflow)) {
    WaitingRecords records;
    // The outbox of a workflow in two steps.
    for (const std::string& name : {*source, workflows::outbox_of(workflow).name}) {
      HAPAX_TRY(const auto stream, find_stream(store, name));
      if (stream) count_waiting(records, *stream, workflow.id.text());
    }
    out.add("waiting", records.waiting).add("in_flight", records.in_flight);
    const delivery::KeepTerms terms{*source, workflow.id.text(), workflows::keeping_of(workflow)};
    HAPAX_TRY(const delivery::LostRecords lost, delivery::find_lost(store, terms));
    out.add("lost", lost.count);
  }
  HAPAX_TRY(const auto dead, find_stream(store, workflow.id.text() + ".dead"));
  out.add("dead_letters", dead ? records_of(*dead) : 0);
  std::vector<const workflows::EndpointFigures*> endpoints;
  if (each_endpoint_) {
    each_endpoint_([&](const workflows::EndpointFigures& one) {
      const bool ours = one.tenant() == workflow.tenant && one.workflow() == workflow.id.text();
      if (ours) endpoints.push_back(&one);
    });
  }
  out.list("endpoints", endpoints,
           [](wire::JsonObject& object, const auto* one) { tell_endpoint(object, *one); });
  return out;
}

Result<std::string> DeclaredWorkflows::list(std::string_view tenant, Store& store) const {
  wire::JsonArray all;
  for (const Workflow& workflow : workflows_) {
    if (workflow.tenant != tenant) continue;
    HAPAX_TRY(const wire::JsonObject one, told(workflow, store));
    all.add(one.text());
  }
  return wire::JsonObject().raw("workflows", all.text()).text();
}

Result<std::string> DeclaredWorkflows::show(std::string_view tenant, std::string_view workflow,
                                            Store& store) const {
  const Workflow* const found = find(tenant, workflow);
  if (found == nullptr) return not_known(workflow);
  HAPAX_TRY(wire::JsonObject out, told(*found, store));
  if (const std::string text = delivery::client_guidance(*found); !text.empty()) {
    out.add("client_guidance", text);
  }
  out.raw("declaration", config::to_json(*found, config::Secrets::kHidden));
  return out.text();
}

// The log outlives the declaration.
Result<std::string> DeclaredWorkflows::attempts(std::string_view tenant, std::string_view workflow,
                                                const rest::AttemptsWanted& wanted,
                                                Store& store) const {
  const Workflow* const found = find(tenant, workflow);
  auto json = attempts_json(found, workflow, wanted, store);
  const bool no_log = !json && json.error().code == Errc::kNotFound;
  if (!no_log) return json;
  if (found == nullptr) return not_known(workflow);
  return no_attempts_json(*found);
}

Status DeclaredWorkflows::set_paused(std::string_view tenant, std::string_view workflow,
                                     bool paused, Store& store) const {
  const Workflow* const found = find(tenant, workflow);
  if (found == nullptr) return not_known(workflow);
  if (const auto why = delivery::why_not_run(*found)) {
    return Error{Errc::kPreconditionFailed,
                 base::format("workflow '{}' cannot be paused or resumed: it {}", workflow, *why)};
  }
  return workflows::set_paused(store, found->id, paused);
}

Result<std::string> DeclaredWorkflows::blocked(std::string_view tenant, std::string_view workflow,
                                               Store& store) const {
  const Workflow* const found = find(tenant, workflow);
  if (found == nullptr) return not_known(workflow);
  return blocked_records(*found, store);
}

Result<std::string> DeclaredWorkflows::decide_blocked(std::string_view tenant,
                                                      std::string_view workflow,
                                                      const rest::BlockedDecision& decision,
                                                      Store& store) const {
  const Workflow* const found = find(tenant, workflow);
  if (found == nullptr) return not_known(workflow);
  return decide_blocked_records(*found, decision, store);
}

}  // namespace hapax::serve
