// Runs workflows in a process: each on threads of its own, all over one sender and one pool of
// transforms. With a shared store any number of processes may run the same ones: leases of the
// store divide the work.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/result.h>
#include <hapax/store.h>
#include <hapax/time.h>

#include "delivery/workflow.h"
#include "ports/clock.h"
#include "ports/entropy.h"
#include "relay/open_outbox.h"
#include "transform/pool.h"
#include "webhook/sender.h"
#include "workflows/figures.h"
#include "workflows/running.h"
#include "workflows/staging_run.h"

namespace hapax::workflows {

struct HostPorts {
  std::function<Store&(std::string_view tenant)> store_of;  // the store as that tenant sees it
  ports::Clock& clock;
  ports::Entropy& entropy;
  std::function<void(const std::string& workflow, std::string_view line)> log;
  relay::OpenOutbox open_outbox{};  // none: no workflow has an outbox as its source
};

class Host {
 public:
  // Those of the workflows that run (delivery::why_not_run); they rest until start(). An error
  // names the workflow: a secret that is not there, an endpoint that no request could reach, or a
  // transform that is no program.
  [[nodiscard]] static Result<std::unique_ptr<Host>> make(
      const std::vector<delivery::Workflow>& workflows, HostPorts ports);
  ~Host();  // winds down without patience, and waits
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  void start();
  // From now on nothing is sent any more. The answers that are under way are awaited, at most so
  // long, and the rest is given back: on the threads of the workflows. The first call counts.
  void wind_down(Duration patience);
  // Returns when that is done.
  void wait();

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] const FiguresBoard& figures() const { return figures_; }

 private:
  explicit Host(HostPorts ports);
  [[nodiscard]] Status add(const delivery::Workflow& workflow);
  [[nodiscard]] Result<std::unique_ptr<StagingRun>> make_staging(
      const delivery::Workflow& workflow);
  [[nodiscard]] Result<std::unique_ptr<Running>> make_running(const delivery::Workflow& workflow);
  [[nodiscard]] Result<std::unique_ptr<delivery::Source>> make_source(
      const delivery::Workflow& workflow);
  [[nodiscard]] std::function<void(std::string_view)> log_of(const delivery::Workflow& workflow);

  const HostPorts ports_;
  FiguresBoard figures_;  // outlives what counts
  std::unique_ptr<webhook::Sender> sender_;
  std::unique_ptr<transform::TransformPool> transforms_;
  std::vector<std::unique_ptr<StagingRun>> staging_;  // ends before the pool
  std::vector<std::unique_ptr<Running>> running_;     // ends before the sender
  std::size_t size_ = 0;
};

}  // namespace hapax::workflows
