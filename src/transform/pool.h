// A pool of worker processes that run jq programs over records (transform.h says what that means).
//
// Calls come from any thread and never wait for a worker. Callbacks run on the pool's own thread,
// one after the other: they must not block. A record that loops, eats memory or crashes jq fails
// alone; those that shared its worker run again (backlog.h, X1). Workers are started with the first
// work.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <hapax/result.h>

#include "base/mutex.h"
#include "transform/dispatcher.h"

namespace hapax::transform {

class TransformPool {
 public:
  // kInvalidArgument: a setting is out of its range (transform.h). kUnavailable: the kernel has no
  // descriptor left.
  [[nodiscard]] static Result<std::unique_ptr<TransformPool>> start(
      const TransformSettings& settings);
  // Jobs that are not done are told kShuttingDown. REQUIRES: not from a callback.
  ~TransformPool();
  TransformPool(const TransformPool&) = delete;
  TransformPool& operator=(const TransformPool&) = delete;

  // In both calls an error says that nothing was begun, and `done` is dropped without a call.
  // kShuttingDown: the pool ends.

  // `done` gets a program that run() takes, or the faults of its texts; or kUnavailable, if no
  // worker can be started. kLimitExceeded: a text is longer than kProgramMax.
  [[nodiscard]] Status compile(TransformText text, CompileDone done);

  // Runs a compiled program over one record. kNotFound: the pool does not have the program.
  // kLimitExceeded: the input is larger than kInputMax. kUnavailable: too much waits already; try
  // again later.
  [[nodiscard]] Status run(ProgramId program, std::string input, Time record_time, RunDone done);

  // Records that wait still run.
  void forget(ProgramId program);

  [[nodiscard]] TransformCounts counts() const;

 private:
  TransformPool(const TransformSettings& settings, int wake);

  void serve();
  void enter(std::unique_ptr<TransformJob> job) HAPAX_REQUIRES(mutex_);
  void wake_up() HAPAX_REQUIRES(mutex_);
  void compiled(const std::shared_ptr<const KnownProgram>& program, Result<Compiled> answer,
                const CompileDone& done);

  // Constant after construction.
  const TransformSettings settings_;
  const int wake_;

  mutable base::Mutex mutex_;
  bool sleeps_ HAPAX_GUARDED_BY(mutex_) = false;
  bool ends_ HAPAX_GUARDED_BY(mutex_) = false;
  std::vector<std::unique_ptr<TransformJob>> entered_ HAPAX_GUARDED_BY(mutex_);
  std::vector<ProgramId> forgotten_ HAPAX_GUARDED_BY(mutex_);
  std::map<ProgramId, std::shared_ptr<const KnownProgram>> programs_ HAPAX_GUARDED_BY(mutex_);
  std::uint64_t programs_made_ HAPAX_GUARDED_BY(mutex_) = 0;
  std::size_t weight_ HAPAX_GUARDED_BY(mutex_) = 0;  // of all jobs that are not done
  TransformCounts counts_ HAPAX_GUARDED_BY(mutex_);

  std::thread thread_;  // the last member: it uses all others
};

}  // namespace hapax::transform
