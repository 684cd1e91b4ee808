#include "serve/changing_workflows.h"

#include <chrono>
#include <utility>

#include "base/format.h"
#include "delivery/workflow_runs.h"

namespace hapax::serve {

namespace {

// A process that shares the store and lives knows of a change after so long.
constexpr Duration kOthersFollow{15'000};

}  // namespace

ChangingWorkflows::ChangingWorkflows(const Ports& ports,
                                     const std::vector<delivery::Workflow>& file,
                                     config::Tenants tenants)
    : host_(ports.host),
      runner_(ports.host, ports.patience),
      keeper_(
          FollowerPorts{.store = ports.store,
                        .runner = runner_,
                        .clock = ports.clock,
                        .log = ports.log,
                        .others_end = ports.shared ? ports.patience + kOthersFollow : Duration{0}},
          ports.board, file),
      tenants_(std::move(tenants)),
      changes_(WorkflowChangesPorts{
          .store = ports.store,
          .board = ports.board,
          .clock = ports.clock,
          .limits_of =
              [this](std::string_view tenant) {
                const base::MutexLock lock(mutex_);
                return workflow_limits_of(tenants_.of(std::string(tenant)));
              },
          .check = [this](const delivery::Workflow& workflow) { return host_.check(workflow); },
          .try_out = [this](const delivery::Workflow& workflow, const Record& sample,
                            bool send) { return host_.try_out(workflow, sample, send); },
          .follow = [this] { keeper_.follow(); }}) {}

void ChangingWorkflows::set_tenants(config::Tenants tenants) {
  const base::MutexLock lock(mutex_);
  tenants_ = std::move(tenants);
}

Status ChangingWorkflows::set_file(const std::vector<delivery::Workflow>& file) {
  for (const delivery::Workflow& workflow : file) {
    if (delivery::why_not_run(workflow)) continue;
    const Status good = host_.check(workflow);
    if (good) continue;
    return Error{good.error().code, base::format("workflow '{}': {}; no workflow was changed",
                                                 workflow.id.text(), good.error().detail)};
  }
  keeper_.set_file(file);
  return Ok{};
}

}  // namespace hapax::serve
