#include "workflows/wait_notes.h"

#include <algorithm>

namespace hapax::workflows {

void WaitNote::waits(std::string_view reason) {
  reason = reason.substr(0, kReasonBytesMax);
  const base::MutexLock lock(mutex_);
  if (!told_) told_ = WorkflowWait{{}, time_from_ms(clock_.wall_ms())};
  told_->reason = reason;
  waits_ = true;
}

void WaitNote::goes_on() {
  if (!waits_) return;
  const base::MutexLock lock(mutex_);
  told_.reset();
  waits_ = false;
}

std::optional<WorkflowWait> WaitNote::told() const {
  const base::MutexLock lock(mutex_);
  return told_;
}

std::shared_ptr<WaitNote> WaitNotes::add(const delivery::Workflow& workflow) {
  auto note = std::make_shared<WaitNote>(clock_);
  const base::MutexLock lock(mutex_);
  auto& notes = notes_[{workflow.tenant, workflow.id.text()}];
  std::erase_if(notes, [](const auto& each) { return each.expired(); });
  notes.push_back(note);
  return note;
}

std::optional<WorkflowWait> WaitNotes::of(std::string_view tenant, std::string_view id) const {
  std::optional<WorkflowWait> longest;
  const base::MutexLock lock(mutex_);
  const auto found = notes_.find({std::string(tenant), std::string(id)});
  if (found == notes_.end()) return longest;
  for (const auto& each : found->second) {
    const auto note = each.lock();
    auto told = note ? note->told() : std::nullopt;
    if (told && (!longest || told->since < longest->since)) longest = std::move(told);
  }
  return longest;
}

}  // namespace hapax::workflows
