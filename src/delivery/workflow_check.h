// What is unsafe about a workflow, with the arithmetic. Pure: two equal workflows in equal
// surroundings get the same findings.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <hapax/time.h>

#include "delivery/workflow.h"

namespace hapax::delivery {

struct WorkflowFinding {
  enum class Weight : std::uint8_t {
    kRefuse,  // it would lose or swallow records, or promise what nobody can keep
    kWarn,    // somebody may have meant it
  };
  Weight weight = Weight::kWarn;
  std::string path;  // below the workflow: "delivery.deduplication.ttl"
  std::string sentence;
  friend bool operator==(const WorkflowFinding&, const WorkflowFinding&) = default;
};

// Who wrote a workflow: the operator, whose references may name files and variables of the server,
// or a tenant over the API.
enum class WorkflowOrigin : std::uint8_t { kOperator, kTenant };

// A stream whose settings are known. Nothing is said about streams that are not in the list.
struct StreamWindow {
  std::string tenant;
  std::string stream;
  Window window;
};

// Workflows that are declared together. They must outlive it.
class WorkflowIndex {
 public:
  explicit WorkflowIndex(std::span<const Workflow> all);
  // The first workflow with the same tenant and id, or nothing.
  [[nodiscard]] const Workflow* first_like(const Workflow& workflow) const;
  // The streams to which workflows carry the records of a stream.
  [[nodiscard]] std::span<const std::string> targets_of(const std::string& tenant,
                                                        const std::string& stream) const;
  // The first enabled workflow whose source is the same outbox, or nothing.
  [[nodiscard]] const Workflow* first_from_outbox(const Workflow& workflow) const;

 private:
  using Name = std::pair<std::string, std::string>;  // with its tenant
  std::map<Name, const Workflow*> first_;
  std::map<Name, std::vector<std::string>> targets_;
  std::map<std::string, const Workflow*> outboxes_;
};

struct WorkflowSurroundings {
  const WorkflowIndex* index = nullptr;  // if there: the workflow is one of them
  std::span<const StreamWindow> streams{};
  WorkflowOrigin origin = WorkflowOrigin::kOperator;
};

[[nodiscard]] std::vector<WorkflowFinding> check_workflow(
    const Workflow& workflow, const WorkflowSurroundings& surroundings = {});

// "18s", "1h30m"; as it would be written in a file.
[[nodiscard]] std::string span_text(Duration span);

}  // namespace hapax::delivery
