// The workflows that a process knows, whoever declared them: what its doors tell, and what runs.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hapax/ids.h>

#include "base/mutex.h"
#include "delivery/workflow.h"

namespace hapax::serve {

using WorkflowName = std::pair<std::string, std::string>;  // tenant, id

[[nodiscard]] inline WorkflowName name_of(const delivery::Workflow& workflow) {
  return {workflow.tenant, workflow.id.text()};
}

enum class WorkflowStage : std::uint8_t {
  kDeclared,
  kLeftFile,  // it was in the configuration and is not any more; its streams stay
  kRemoving,
};

struct KnownWorkflow {
  delivery::Workflow workflow;
  WorkflowStage stage = WorkflowStage::kDeclared;
  Version version{};      // of its declaration in the store; 0: it has none
  bool runs = true;       // in this process, maybe as it was before
  std::string trouble{};  // why this process does not run it as it is declared; empty: it does
};

// Why it does not run; reads after its name.
[[nodiscard]] std::optional<std::string> why_not_here(const KnownWorkflow& known);

class WorkflowBoard {
 public:
  using All = std::map<WorkflowName, KnownWorkflow>;

  WorkflowBoard() = default;
  // Of a configuration that never changes.
  explicit WorkflowBoard(std::vector<delivery::Workflow> workflows) {
    All all;
    for (delivery::Workflow& one : workflows) {
      const WorkflowName name = name_of(one);
      all.emplace(name, KnownWorkflow{.workflow = std::move(one)});
    }
    put(std::move(all));
  }

  void put(All all) {
    auto fresh = std::make_shared<const All>(std::move(all));
    const base::MutexLock lock(mutex_);
    latest_ = std::move(fresh);
  }
  [[nodiscard]] std::shared_ptr<const All> latest() const {
    const base::MutexLock lock(mutex_);
    return latest_;
  }
  // Null: it is not known.
  [[nodiscard]] std::shared_ptr<const KnownWorkflow> find(std::string_view tenant,
                                                          std::string_view id) const {
    const auto all = latest();
    const auto found = all->find({std::string(tenant), std::string(id)});
    if (found == all->end()) return nullptr;
    return {all, &found->second};
  }
  // Those that are declared, for whoever reads what they keep.
  [[nodiscard]] std::vector<delivery::Workflow> workflows() const {
    std::vector<delivery::Workflow> found;
    for (const auto& [name, known] : *latest()) found.push_back(known.workflow);
    return found;
  }

 private:
  mutable base::Mutex mutex_;
  std::shared_ptr<const All> latest_ HAPAX_GUARDED_BY(mutex_) = std::make_shared<const All>();
};

}  // namespace hapax::serve
