// Why workflows that run send nothing: their source is not there, or an endpoint has no
// credentials. Written by the threads of workflows, read by any.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hapax/time.h>

#include "base/mutex.h"
#include "delivery/workflow.h"
#include "ports/clock.h"

namespace hapax::workflows {

struct WorkflowWait {
  std::string reason;
  Time since{};
};

// Of one step of a workflow, or one endpoint.
class WaitNote {
 public:
  static constexpr std::size_t kReasonBytesMax = 300;

  explicit WaitNote(ports::Clock& clock) : clock_(clock) {}

  // Counts from the first time, until it goes on. The latest reason is told.
  void waits(std::string_view reason);
  void goes_on();
  [[nodiscard]] std::optional<WorkflowWait> told() const;

 private:
  ports::Clock& clock_;
  std::atomic<bool> waits_ = false;  // so that going on costs no lock
  mutable base::Mutex mutex_;
  std::optional<WorkflowWait> told_ HAPAX_GUARDED_BY(mutex_);
};

class WaitNotes {
 public:
  // The clock outlives all notes. A note is known for as long as somebody holds it.
  explicit WaitNotes(ports::Clock& clock) : clock_(clock) {}

  [[nodiscard]] std::shared_ptr<WaitNote> add(const delivery::Workflow& workflow);
  // What has lasted longest; nothing: nothing waits.
  [[nodiscard]] std::optional<WorkflowWait> of(std::string_view tenant, std::string_view id) const;

 private:
  using Name = std::pair<std::string, std::string>;  // tenant, id

  ports::Clock& clock_;
  mutable base::Mutex mutex_;
  mutable std::map<Name, std::vector<std::weak_ptr<const WaitNote>>> notes_
      HAPAX_GUARDED_BY(mutex_);
};

}  // namespace hapax::workflows
