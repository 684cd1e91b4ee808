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
#include "serve/waiting_records.h"
#include "workflows/delivery_rows.h"
#include "workflows/own_streams.h"
#include "workflows/pause.h"

namespace hapax::serve {

namespace {

using delivery::Workflow;

Error not_known(std::string_view workflow) {
  return Error{
      Errc::kNotFound,
      base::format("workflow '{}' is not declared on this server; 'hapax workflows list' names "
                   "those that are",
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

std::optional<std::string> why_not_here(const KnownWorkflow& known) {
  if (known.stage == WorkflowStage::kRemoving) return "is being removed";
  if (known.stage == WorkflowStage::kLeftFile) {
    return "is not in the configuration of the server any more";
  }
  if (auto why = delivery::why_not_run(known.workflow)) return why;
  if (!known.runs) return "cannot run: " + known.trouble;
  return std::nullopt;
}

Result<Workflow> DeclaredWorkflows::declared(std::string_view tenant,
                                             std::string_view workflow) const {
  const auto known = board_.find(tenant, workflow);
  if (known == nullptr) return not_known(workflow);
  return known->workflow;
}

Result<std::string> DeclaredWorkflows::stream_of_events(std::string_view tenant,
                                                        std::string_view workflow) const {
  const auto known = board_.find(tenant, workflow);
  if (known == nullptr) return not_known(workflow);
  const Workflow* const found = &known->workflow;
  const auto takes_none = [&](const std::string& why) {
    return Error{Errc::kPreconditionFailed,
                 base::format("workflow '{}' takes no events: {}", workflow, why)};
  };
  if (const auto why = why_not_here(*known)) return takes_none("it " + *why);
  if (!std::holds_alternative<delivery::FromHttp>(*found->source)) {
    return takes_none(other_source(*found));
  }
  return workflows::events_stream_of(found->id);
}

namespace {

// Of one that does not run.
std::string_view word_of(WorkflowStage stage) {
  switch (stage) {
    case WorkflowStage::kDeclared:
      return "not_running";
    case WorkflowStage::kLeftFile:
      return "disabled";
    case WorkflowStage::kRemoving:
      return "removing";
  }
  return "";
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

std::string endpoint_json(const workflows::EndpointFigures& figures) {
  wire::JsonObject out;
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
  return out.text();
}

}  // namespace

Result<wire::JsonObject> DeclaredWorkflows::told(const KnownWorkflow& known, Store& store) const {
  const Workflow& workflow = known.workflow;
  wire::JsonObject out;
  out.add("id", workflow.id.text()).add("origin", word_for(workflow.declared_in));
  if (known.version.value != 0) out.add("version", known.version);
  if (const auto why = why_not_here(known)) {
    out.add("state", word_of(known.stage)).add("reason", *why);
  } else {
    HAPAX_TRY(const bool paused, workflows::is_paused(store, workflow.id));
    const auto wait = wait_of_ && !paused ? wait_of_(workflow) : std::nullopt;
    out.add("state", paused ? "paused" : wait ? "waiting" : "running");
    if (wait) out.add("reason", wait->reason).add("since", base::rfc3339_ms(wait->since));
    if (!known.trouble.empty()) out.add("not_applied", known.trouble);
  }
  if (const auto source = consumed_stream(workflow)) {
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
  wire::JsonArray endpoints;
  if (each_endpoint_) {
    // They can go as soon as they were visited: their workflow may be removed meanwhile.
    each_endpoint_([&](const workflows::EndpointFigures& one) {
      const bool ours = one.tenant() == workflow.tenant && one.workflow() == workflow.id.text();
      if (ours) endpoints.add(endpoint_json(one));
    });
  }
  out.raw("endpoints", endpoints.text());
  return out;
}

Result<std::string> DeclaredWorkflows::list(std::string_view tenant, Store& store) const {
  wire::JsonArray all;
  const auto known = board_.latest();
  for (auto at = known->lower_bound({std::string(tenant), ""});
       at != known->end() && at->first.first == tenant; ++at) {
    HAPAX_TRY(const wire::JsonObject one, told(at->second, store));
    all.add(one.text());
  }
  return wire::JsonObject().raw("workflows", all.text()).text();
}

Result<std::string> DeclaredWorkflows::show(std::string_view tenant, std::string_view workflow,
                                            Store& store) const {
  const auto known = board_.find(tenant, workflow);
  if (known == nullptr) return not_known(workflow);
  HAPAX_TRY(wire::JsonObject out, told(*known, store));
  const Workflow* const found = &known->workflow;
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
  const auto known = board_.find(tenant, workflow);
  const Workflow* const found = known == nullptr ? nullptr : &known->workflow;
  auto json = attempts_json(found, workflow, wanted, store);
  const bool no_log = !json && json.error().code == Errc::kNotFound;
  if (!no_log) return json;
  if (found == nullptr) return not_known(workflow);
  return no_attempts_json(*found);
}

Status DeclaredWorkflows::set_paused(std::string_view tenant, std::string_view workflow,
                                     bool paused, Store& store) const {
  const auto found = board_.find(tenant, workflow);
  if (found == nullptr) return not_known(workflow);
  if (const auto why = why_not_here(*found)) {
    return Error{Errc::kPreconditionFailed,
                 base::format("workflow '{}' cannot be paused or resumed: it {}", workflow, *why)};
  }
  return workflows::set_paused(store, found->workflow.id, paused);
}

Result<std::string> DeclaredWorkflows::blocked(std::string_view tenant, std::string_view workflow,
                                               Store& store) const {
  const auto found = board_.find(tenant, workflow);
  if (found == nullptr) return not_known(workflow);
  return blocked_records(found->workflow, store);
}

Result<std::string> DeclaredWorkflows::decide_blocked(std::string_view tenant,
                                                      std::string_view workflow,
                                                      const rest::BlockedDecision& decision,
                                                      Store& store) const {
  const auto found = board_.find(tenant, workflow);
  if (found == nullptr) return not_known(workflow);
  return decide_blocked_records(found->workflow, decision, store);
}

}  // namespace hapax::serve
