// Runs workflows in a process: each on threads of its own, all over one sender and one pool of
// transforms. With a shared store any number of processes may run the same ones: leases of the
// store divide the work. Workflows come, change and go while others run.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hapax/result.h>
#include <hapax/store.h>
#include <hapax/time.h>

#include "base/mutex.h"
#include "delivery/workflow.h"
#include "ports/clock.h"
#include "ports/entropy.h"
#include "relay/open_outbox.h"
#include "transform/pool.h"
#include "webhook/sender.h"
#include "workflows/endpoint_caller.h"
#include "workflows/endpoint_rules.h"
#include "workflows/figures.h"
#include "workflows/running.h"
#include "workflows/secrets_book.h"
#include "workflows/staging_run.h"
#include "workflows/trial.h"
#include "workflows/wait_notes.h"

namespace hapax::workflows {

struct HostPorts {
  std::function<Store&(std::string_view tenant)> store_of;  // the store as that tenant sees it
  ports::Clock& clock;
  ports::Entropy& entropy;
  std::function<void(const std::string& workflow, std::string_view line)> log;
  relay::OpenOutbox open_outbox{};       // none: no workflow has an outbox as its source
  const SecretVault* secrets = nullptr;  // null: no secrets are stored
  EndpointRules endpoints{};
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

  // What would make put() fail, without running anything.
  [[nodiscard]] Status check(const delivery::Workflow& workflow);
  // What would become of the record, or becomes of it if it is sent. Waits for that. kUnavailable:
  // others try workflows, too.
  [[nodiscard]] Result<Trial> try_out(const delivery::Workflow& workflow, const Record& sample,
                                      bool send);
  // Runs the workflow, or runs it as it is now. H1: one of the same name sends nothing any more
  // when the new one begins, so that no record of a group overtakes another: it winds down as in
  // remove() first, and tend() begins the new one. An error changes nothing.
  // REQUIRES: the workflow runs (delivery::why_not_run).
  [[nodiscard]] Status put(const delivery::Workflow& workflow, Duration patience);
  // It begins nothing more; answers under way are awaited, at most so long. Nothing, if it is not
  // there.
  void remove(std::string_view tenant, std::string_view id, Duration patience);
  // Frees what has wound down, and begins what waited for that. Whoever calls put() and remove()
  // calls this every now and then; it does not block.
  void tend();
  // Nothing winds down, and everything that was put has begun, if start() was called.
  [[nodiscard]] bool is_settled() const;
  // Nothing of that name runs or winds down.
  [[nodiscard]] bool is_gone(std::string_view tenant, std::string_view id) const;

  // From now on nothing is sent any more, and nothing can be put. The answers that are under way
  // are awaited, at most so long, and the rest is given back: on the threads of the workflows. The
  // first call counts.
  void wind_down(Duration patience);
  // Returns when that is done.
  void wait();

  [[nodiscard]] std::size_t size() const;  // those that run, or begin soon
  [[nodiscard]] const FiguresBoard& figures() const { return figures_; }
  [[nodiscard]] const WaitNotes& waits() const { return waits_; }

 private:
  using Name = std::pair<std::string, std::string>;  // tenant, id
  // A workflow that runs. What it counts in outlives what counts.
  struct Member {
    std::vector<std::shared_ptr<EndpointFigures>> figures;
    std::unique_ptr<Running> intake;  // of rows of a database
    std::unique_ptr<StagingRun> staging;
    std::unique_ptr<Running> running;
    bool begun = false;

    void begin();
    void wind_down(Duration patience) const;
    void wait() const;
    [[nodiscard]] bool ended() const;
  };
  // Those of one name: at most one runs.
  struct Slot {
    std::unique_ptr<Member> current;
    std::unique_ptr<Member> leaving;  // winds down
  };

  explicit Host(HostPorts ports);
  static void retire(Slot& slot, Duration patience);
  void tend(Slot& slot) HAPAX_REQUIRES(mutex_);
  [[nodiscard]] Status need_sender() HAPAX_REQUIRES(mutex_);
  [[nodiscard]] Status need_transforms() HAPAX_REQUIRES(mutex_);
  [[nodiscard]] Result<std::unique_ptr<Member>> make_member(const delivery::Workflow& workflow)
      HAPAX_REQUIRES(mutex_);
  [[nodiscard]] std::unique_ptr<PauseSwitch> pause_of(const delivery::Workflow& workflow);
  [[nodiscard]] Result<std::unique_ptr<StagingRun>> make_staging(const delivery::Workflow& workflow)
      HAPAX_REQUIRES(mutex_);
  [[nodiscard]] Result<std::unique_ptr<Running>> make_intake(const delivery::Workflow& workflow)
      HAPAX_REQUIRES(mutex_);
  [[nodiscard]] Status make_running(const delivery::Workflow& workflow, Member& member)
      HAPAX_REQUIRES(mutex_);
  [[nodiscard]] Result<std::unique_ptr<delivery::Source>> make_source(
      const delivery::Workflow& workflow) HAPAX_REQUIRES(mutex_);
  [[nodiscard]] std::function<void(std::string_view)> log_of(const delivery::Workflow& workflow);
  [[nodiscard]] EndpointReach reach_of(const delivery::Workflow& workflow) HAPAX_REQUIRES(mutex_);

  const HostPorts ports_;
  FiguresBoard figures_;  // outlives what counts
  WaitNotes waits_;
  mutable base::Mutex mutex_;
  bool started_ HAPAX_GUARDED_BY(mutex_) = false;
  bool winding_down_ HAPAX_GUARDED_BY(mutex_) = false;
  std::atomic<int> trials_ = 0;  // under way
  // By tenant; they outlive what sends.
  std::map<std::string, std::unique_ptr<SecretBook>> books_ HAPAX_GUARDED_BY(mutex_);
  std::unique_ptr<webhook::Sender> sender_ HAPAX_GUARDED_BY(mutex_);
  std::unique_ptr<transform::TransformPool> transforms_ HAPAX_GUARDED_BY(mutex_);
  // Members end before the sender and the pool.
  std::map<Name, Slot> slots_ HAPAX_GUARDED_BY(mutex_);
};

}  // namespace hapax::workflows
