// All that lets the workflows of a process change while it runs: by its file, over the API, and by
// what other processes do to the store that they share.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/result.h>
#include <hapax/store.h>

#include "base/mutex.h"
#include "config/config.h"
#include "delivery/workflow.h"
#include "ports/clock.h"
#include "serve/workflow_board.h"
#include "serve/workflow_changes.h"
#include "serve/workflow_keeper.h"
#include "workflows/host.h"

namespace hapax::serve {

class ChangingWorkflows {
 public:
  struct Ports {
    Store& store;           // the whole one
    workflows::Host& host;  // runs the workflows of the file
    WorkflowBoard& board;   // is told what there is
    ports::Clock& clock;
    std::function<void(const std::string& workflow, std::string_view line)> log;
    Duration patience{0};  // with answers under way of a workflow that changes or goes
    bool shared = false;   // other processes have the store, too
  };

  ChangingWorkflows(const Ports& ports, const std::vector<delivery::Workflow>& file,
                    config::Tenants tenants);

  void start() { keeper_.start(); }
  void stop() { keeper_.stop(); }
  [[nodiscard]] rest::WorkflowChanges& changes() { return changes_; }

  void set_tenants(config::Tenants tenants);
  // What the file says from now on. An error names the workflow that cannot run, and changes
  // nothing.
  [[nodiscard]] Status set_file(const std::vector<delivery::Workflow>& file);

 private:
  workflows::Host& host_;
  HostRunner runner_;
  WorkflowKeeper keeper_;
  base::Mutex mutex_;
  config::Tenants tenants_ HAPAX_GUARDED_BY(mutex_);
  ChangedWorkflows changes_;
};

}  // namespace hapax::serve
