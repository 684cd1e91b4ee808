#include "serve/workflow_changes.h"

#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "base/format.h"
#include "config/workflows.h"
#include "delivery/workflow_check.h"
#include "delivery/workflow_runs.h"
#include "serve/trial_json.h"
#include "serve/waiting_records.h"
#include "serve/workflow_removal.h"
#include "wire/json_text.h"
#include "workflows/staging.h"

namespace hapax::serve {

namespace {

using delivery::DeclaredIn;
using delivery::Workflow;
using delivery::WorkflowFinding;

constexpr std::uint64_t kWorkflowsOfTenant = 100;
constexpr std::uint64_t kEndpointsOfTenant = 1'000;

Result<Workflow> read_workflow(const WorkflowName& name, std::string_view declaration) {
  HAPAX_TRY(Workflow workflow, config::workflow_from_json(declaration));
  if (workflow.id.text() != name.second) {
    return Error{Errc::kInvalidArgument, base::format("id is '{}', and the path says '{}'",
                                                      workflow.id.text(), name.second)};
  }
  if (!workflow.tenant.empty() && workflow.tenant != name.first) {
    return Error{
        Errc::kInvalidArgument,
        base::format("tenant is '{}', and the credential says otherwise", workflow.tenant)};
  }
  workflow.tenant = name.first;
  workflow.declared_in = DeclaredIn::kApi;
  return workflow;
}

// The streams whose windows matter.
Result<std::vector<delivery::StreamWindow>> windows_around(const Workflow& workflow, Store& store) {
  std::vector<std::string> names;
  if (const auto source = consumed_stream(workflow)) names.push_back(*source);
  for (const delivery::EndpointSettings& endpoint : workflow.endpoints) {
    if (const auto* target = endpoint.stream()) names.push_back(target->stream);
  }
  std::vector<delivery::StreamWindow> windows;
  for (const std::string& name : names) {
    HAPAX_TRY(const auto stream, find_stream(store, name));
    if (stream) windows.push_back({workflow.tenant, name, stream->settings.window});
  }
  return windows;
}

// Warnings; or an error with all that is refused.
Result<std::vector<std::string>> judge(const Workflow& workflow, const WorkflowBoard& board,
                                       Store& store) {
  std::vector<Workflow> all{workflow};
  for (const auto& [name, known] : *board.latest()) {
    if (name.first == workflow.tenant && name != name_of(workflow)) all.push_back(known.workflow);
  }
  const delivery::WorkflowIndex index(all);
  HAPAX_TRY(const auto windows, windows_around(workflow, store));
  const delivery::WorkflowSurroundings around{&index, windows, delivery::WorkflowOrigin::kTenant};
  std::vector<std::string> warnings;
  std::string refused;
  for (const WorkflowFinding& finding : delivery::check_workflow(all.front(), around)) {
    std::string line = base::format("{} {}", finding.path, finding.sentence);
    if (finding.weight == WorkflowFinding::Weight::kRefuse) {
      base::append_format(refused, "{}{}", refused.empty() ? "" : "\n", line);
    } else {
      warnings.push_back(std::move(line));
    }
  }
  if (!refused.empty()) return Error{Errc::kInvalidArgument, refused};
  if (const auto why = delivery::why_not_run(workflow); why && workflow.enabled) {
    warnings.push_back("it does not run: it " + *why);
  }
  return warnings;
}

// What a workflow has in the store must mean the same after the change.
Status check_change(const Workflow& before, const Workflow& after) {
  const auto place = consumed_stream(before);
  if (before.source && (!after.source || consumed_stream(after) != place)) {
    return Error{Errc::kPreconditionFailed,
                 "source: a workflow keeps its place in its source, so that cannot change; remove "
                 "the workflow and declare it again, or declare another one"};
  }
  if (workflows::has_outbox(before) && !workflows::has_outbox(after)) {
    return Error{
        Errc::kPreconditionFailed,
        base::format("what waits in '{}.outbox' would never be sent: such a workflow keeps "
                     "an endpoint over HTTP, and a transform (for instance '.') or other "
                     "endpoints; or disable it, or remove it and declare it again",
                     before.id.text())};
  }
  return Ok{};
}

std::string answer_of(const Workflow& workflow, std::string_view outcome, Version version,
                      const std::vector<config::WorkflowDifference>& differences,
                      const std::vector<std::string>& warnings) {
  wire::JsonObject out;
  out.add("id", workflow.id.text()).add("outcome", outcome).add("version", version);
  out.list("differences", differences,
           [](wire::JsonObject& one, const config::WorkflowDifference& difference) {
             one.add("path", difference.path);
             if (!difference.before.empty()) one.raw("before", difference.before);
             if (!difference.after.empty()) one.raw("after", difference.after);
           });
  wire::JsonArray lines;
  for (const std::string& line : warnings) lines.add(wire::json_text(line));
  return out.raw("warnings", lines.text()).text();
}

Result<WorkflowName> checked_name(std::string_view tenant, std::string_view id) {
  auto parsed = delivery::WorkflowId::parse(id);
  if (!parsed) return std::move(parsed).error().within("id");
  return WorkflowName{tenant, id};
}

}  // namespace

WorkflowLimits workflow_limits_of(const config::TenantLimits& limits) {
  return {.workflows_max = limits.workflows_max.value_or(kWorkflowsOfTenant),
          .endpoints_max = limits.endpoints_max.value_or(kEndpointsOfTenant)};
}

// As this process knows them: two processes that declare at once can come out a little above.
Status ChangedWorkflows::check_limits(const Workflow& workflow) const {
  const std::string text = text_of({.workflow = workflow});
  if (text.size() > Declarations::kBytesMax) {
    return Error{Errc::kLimitExceeded, base::format("the declaration has {} bytes; the most is {}",
                                                    text.size(), Declarations::kBytesMax)};
  }
  const WorkflowLimits limits = ports_.limits_of(workflow.tenant);
  std::uint64_t workflows = 1;
  std::uint64_t endpoints = workflow.endpoints.size();
  for (const auto& [name, known] : *ports_.board.latest()) {
    const bool counts = name.first == workflow.tenant && name != name_of(workflow) &&
                        known.workflow.declared_in == DeclaredIn::kApi;
    if (!counts) continue;
    ++workflows;
    endpoints += known.workflow.endpoints.size();
  }
  const auto check = [](std::string_view key, std::uint64_t value, std::uint64_t most) -> Status {
    if (most == 0 || value <= most) return Ok{};
    return Error{Errc::kLimitExceeded,
                 base::format("{} would be {}; the most is {}", key, value, most)};
  };
  HAPAX_CHECK(check("tenants: workflows_max", workflows, limits.workflows_max));
  return check("tenants: endpoints_max", endpoints, limits.endpoints_max);
}

// F4
Status ChangedWorkflows::check_free(const WorkflowName& name,
                                    const std::optional<StoredDeclaration>& stored) const {
  const auto known = ports_.board.find(name.first, name.second);
  const bool of_file = known != nullptr && known->workflow.declared_in == DeclaredIn::kFile &&
                       known->stage == WorkflowStage::kDeclared;
  if (of_file) {
    return Error{Errc::kPreconditionFailed,
                 base::format("workflow '{}' is declared in the configuration of the server, and "
                              "changes there only",
                              name.second)};
  }
  if (stored && stored->is_removing()) {
    return Error{
        Errc::kPreconditionFailed,
        base::format("workflow '{}' is being removed; try again when it is gone", name.second)};
  }
  return Ok{};
}

Error ChangedWorkflows::moved_on(const WorkflowName& name) {
  const auto stored = declarations_.find(name);
  const std::uint64_t version = stored && *stored ? (*stored)->version.value : 0;
  return Error{Errc::kPreconditionFailed,
               version == 0
                   ? base::format("workflow '{}' is not there; somebody removed it", name.second)
                   : base::format("workflow '{}' has version {} now: somebody changed it meanwhile",
                                  name.second, version)};
}

Result<std::string> ChangedWorkflows::put(std::string_view tenant, std::string_view id,
                                          const rest::WorkflowWanted& wanted, Store& store) {
  HAPAX_TRY(const WorkflowName name, checked_name(tenant, id));
  HAPAX_TRY(const Workflow workflow, read_workflow(name, wanted.declaration));
  HAPAX_TRY(const auto stored, declarations_.find(name));
  HAPAX_CHECK(check_free(name, stored));
  const Version version = stored ? stored->version : Version{};
  const bool readable = stored && stored->declaration;
  const bool same = readable && stored->declaration->workflow == workflow;
  // Who asks again after a lost answer is told that all is as it should be.
  const bool expected = !wanted.version || *wanted.version == version.value;
  if (!expected && !same) return moved_on(name);
  HAPAX_TRY(const auto warnings, judge(workflow, ports_.board, store));
  HAPAX_CHECK(check_limits(workflow));
  if (!delivery::why_not_run(workflow)) HAPAX_CHECK(ports_.check(workflow));
  if (same) return answer_of(workflow, "unchanged", version, {}, warnings);
  std::vector<config::WorkflowDifference> differences;
  if (readable) {
    HAPAX_CHECK(check_change(stored->declaration->workflow, workflow));
    differences = config::differences(stored->declaration->workflow, workflow);
  }
  const std::string_view outcome = stored ? "changed" : "created";
  if (wanted.dry_run) return answer_of(workflow, outcome, version, differences, warnings);
  const Declaration declaration{.workflow = workflow,
                                .changed = time_from_ms(ports_.clock.wall_ms()),
                                .changed_by = wanted.actor};
  HAPAX_TRY(const auto next, declarations_.put(declaration, version));
  if (!next) return moved_on(name);
  ports_.follow();
  return answer_of(workflow, outcome, *next, differences, warnings);
}

Result<std::string> ChangedWorkflows::remove(std::string_view tenant, std::string_view id,
                                             bool drop_undelivered, std::string_view actor,
                                             Store& store) {
  HAPAX_TRY(const WorkflowName name, checked_name(tenant, id));
  HAPAX_TRY(auto stored, declarations_.find(name));
  const bool again = stored && stored->is_removing() &&
                     (stored->declaration->drop_undelivered || !drop_undelivered);
  if (!again) {
    if (!stored || !stored->is_removing()) HAPAX_CHECK(check_free(name, stored));
    if (!stored) {
      return Error{Errc::kNotFound, base::format("workflow '{}' is not declared", name.second)};
    }
    if (!stored->declaration) {
      stored->declaration =
          Declaration{.workflow = Workflow{.id = delivery::WorkflowId::parse(id).value(),
                                           .declared_in = DeclaredIn::kApi,
                                           .tenant = name.first}};
    }
    HAPAX_TRY(const Undelivered undelivered, undelivered_of(store, stored->declaration->workflow));
    if (undelivered.any() && !drop_undelivered) {
      return Error{Errc::kPreconditionFailed,
                   base::format("{}: deliver or drop them first, or remove the workflow with "
                                "drop_undelivered",
                                undelivered.text())};
    }
    Declaration declaration = *stored->declaration;
    declaration.removing = true;
    declaration.drop_undelivered = drop_undelivered;
    declaration.changed = time_from_ms(ports_.clock.wall_ms());
    declaration.changed_by = actor;
    HAPAX_TRY(const auto next, declarations_.put(declaration, stored->version));
    if (!next) return moved_on(name);
    ports_.follow();
  }
  HAPAX_TRY(const auto left, declarations_.find(name));
  return wire::JsonObject()
      .add("id", name.second)
      .add("state", left ? "removing" : "removed")
      .text();
}

Result<std::string> ChangedWorkflows::test(std::string_view tenant, std::string_view id,
                                           const Record& sample, bool send) {
  const auto known = ports_.board.find(tenant, id);
  if (known == nullptr) {
    return Error{Errc::kNotFound, base::format("workflow '{}' is not declared", id)};
  }
  if (known->workflow.draft()) {
    return Error{Errc::kPreconditionFailed,
                 base::format("workflow '{}' is a draft: it lacks a source or an endpoint", id)};
  }
  Record now = sample;
  now.time = time_from_ms(ports_.clock.wall_ms());
  HAPAX_TRY(const workflows::Trial trial, ports_.try_out(known->workflow, now, send));
  return trial_json(trial);
}

}  // namespace hapax::serve
