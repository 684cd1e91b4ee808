#include "serve/workflow_keeper.h"

#include <utility>

namespace hapax::serve {

WorkflowKeeper::WorkflowKeeper(FollowerPorts ports, WorkflowBoard& board,
                               const std::vector<delivery::Workflow>& file)
    : declarations_(ports.store), follower_(std::move(ports), board) {
  const base::MutexLock lock(mutex_);
  follower_.adopt(file);
  (void)follower_.step();
}

void WorkflowKeeper::start() {
  thread_ = std::thread([this] { run(); });
}

void WorkflowKeeper::stop() {
  {
    const base::MutexLock lock(bell_->mutex);
    bell_->stop = true;
  }
  bell_->rings.notify_all();
  if (thread_.joinable()) thread_.join();
}

Duration WorkflowKeeper::step() {
  const base::MutexLock lock(mutex_);
  return follower_.step();
}

// What a step leaves for later is the thread's.
void WorkflowKeeper::follow() {
  (void)step();
  bell_->ring();
}

void WorkflowKeeper::set_file(const std::vector<delivery::Workflow>& file) {
  {
    const base::MutexLock lock(mutex_);
    follower_.set_file(file);
  }
  follow();
}

// Watches first and looks then, so that nothing is missed.
void WorkflowKeeper::run() {
  for (;;) {
    const std::uint64_t number = declarations_.watch([bell = bell_] { bell->ring(); });
    const Duration until = step();
    bool stop = false;
    {
      base::MutexLock lock(bell_->mutex);
      lock.wait_for(bell_->rings, until,
                    [this]() HAPAX_REQUIRES(bell_->mutex) { return bell_->rang || bell_->stop; });
      bell_->rang = false;
      stop = bell_->stop;
    }
    declarations_.unwatch(number);
    if (stop) return;
  }
}

}  // namespace hapax::serve
