// The thread that lets what runs follow what is declared, and whoever wants it to do so at once.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "delivery/workflow.h"
#include "serve/declarations.h"
#include "serve/workflow_follower.h"
#include "workflows/host.h"

namespace hapax::serve {

class HostRunner final : public WorkflowRunner {
 public:
  // Answers under way of a workflow that changes or goes are awaited, at most so long.
  HostRunner(workflows::Host& host, Duration patience) : host_(host), patience_(patience) {}

  Status put(const delivery::Workflow& workflow) override { return host_.put(workflow, patience_); }
  void remove(const WorkflowName& name) override {
    host_.remove(name.first, name.second, patience_);
  }
  [[nodiscard]] bool is_gone(const WorkflowName& name) const override {
    return host_.is_gone(name.first, name.second);
  }
  void tend() override { host_.tend(); }
  [[nodiscard]] bool is_settled() const override { return host_.is_settled(); }

 private:
  workflows::Host& host_;
  const Duration patience_;
};

class WorkflowKeeper {
 public:
  // The file is what runs already. Nothing else does before the first step, which this makes.
  WorkflowKeeper(FollowerPorts ports, WorkflowBoard& board,
                 const std::vector<delivery::Workflow>& file);
  ~WorkflowKeeper() { stop(); }
  WorkflowKeeper(const WorkflowKeeper&) = delete;
  WorkflowKeeper& operator=(const WorkflowKeeper&) = delete;

  void start();
  // Ends after the step that is under way.
  void stop();
  // From any thread: a step, now.
  void follow();
  void set_file(const std::vector<delivery::Workflow>& file);

 private:
  // What a watch that is over may still call.
  struct Bell {
    base::Mutex mutex;
    std::condition_variable rings;
    bool rang HAPAX_GUARDED_BY(mutex) = false;
    bool stop HAPAX_GUARDED_BY(mutex) = false;

    void ring() {
      {
        const base::MutexLock lock(mutex);
        rang = true;
      }
      rings.notify_all();
    }
  };

  void run();
  Duration step();

  Declarations declarations_;
  base::Mutex mutex_;
  WorkflowFollower follower_ HAPAX_GUARDED_BY(mutex_);
  const std::shared_ptr<Bell> bell_ = std::make_shared<Bell>();
  std::thread thread_;
};

}  // namespace hapax::serve
