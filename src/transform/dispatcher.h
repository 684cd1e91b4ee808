// The pool's thread as a class: its workers, what is in each, and what becomes of a worker's end.
// One thread calls it. What it found out is told by whoever takes it: take_outcomes().
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "transform/backlog.h"
#include "transform/frames.h"
#include "transform/worker_process.h"

namespace hapax::transform {

// What has happened since the pool began.
struct TransformCounts {
  std::uint64_t records = 0;  // that got an outcome
  std::uint64_t again = 0;    // runs that were begun again after a worker's end
  std::uint64_t workers_started = 0;
  std::uint64_t workers_failed = 0;  // ended before they were ready
  std::uint64_t workers_ended = 0;   // with work in them
  std::uint64_t killed_for_time = 0;
  std::uint64_t killed_for_garbage = 0;  // answered what makes no sense
  std::vector<int> worker_pids;          // of those that are there
};

class Dispatcher {
 public:
  explicit Dispatcher(const TransformSettings& settings);

  void add(std::unique_ptr<TransformJob> job) { backlog_.add(std::move(job)); }
  void forget(ProgramId program);

  // Hands out work, waits until a worker answers, a deadline passes or `wake` is readable, and
  // settles what came. Returns at once if `wake` is readable, or if a job was settled without
  // waiting.
  void turn(int wake);

  // Ends all workers and fails every job.
  void stop(const Error& why);

  [[nodiscard]] TransformCounts counts() const;
  // Calls the callbacks of the jobs that were settled since the last call. Whoever is told finds
  // what led to it in the counts, so they are published first.
  [[nodiscard]] std::vector<std::function<void()>> take_outcomes() {
    return std::exchange(outcomes_, {});
  }
  // The weight of the jobs that were settled since the last call.
  [[nodiscard]] std::size_t take_settled_weight() { return std::exchange(settled_weight_, 0); }

 private:
  using Clock = std::chrono::steady_clock;

  // One request that a worker has not answered. A definition that a run needs has no job.
  struct Pending {
    std::unique_ptr<TransformJob> job;
    bool defines = false;
  };

  struct Worker {
    std::optional<WorkerProcess> process;
    bool ready = false;
    bool alone = false;         // its one job runs alone
    std::size_t completed = 0;  // jobs
    std::size_t weight = 0;     // of the jobs in it
    std::deque<Pending> pending;
    std::deque<ProgramId> defined;  // the one used last comes last
    FrameBuffer answers;
    std::string requests;     // not sent yet
    Clock::time_point since;  // its last answer, or when it got work while it was idle
  };

  void hand_out();
  bool hand_out_to(Worker& worker, bool only_alone);
  [[nodiscard]] Worker* kept_for_alone();
  void send_job(Worker& worker, std::unique_ptr<TransformJob> job);
  static bool has_program(Worker& worker, ProgramId program);
  // With the job that waits for it, if there is one.
  void define(Worker& worker, const KnownProgram& program, std::unique_ptr<TransformJob> job);
  void start_missing();
  void start(Worker& worker);
  [[nodiscard]] bool alone_allowed() const;

  void wait(int wake);
  [[nodiscard]] std::optional<Clock::time_point> next_deadline() const;
  [[nodiscard]] std::optional<Clock::time_point> deadline_of(const Worker& worker) const;
  void write(Worker& worker);
  void read(Worker& worker);
  void check_deadlines(Clock::time_point now);

  bool take_answers(Worker& worker);
  bool take_answer(Worker& worker, WorkerAnswer answer);
  bool take_defined(Worker& worker, DefinedAnswer answer);
  bool take_ran(Worker& worker, RanAnswer answer);
  [[nodiscard]] bool is_within_limits(const TransformOutcome& outcome) const;
  void completed(Worker& worker, const TransformJob& job);

  // The worker ended by itself, or ends now for this reason.
  void lose(Worker& worker, std::optional<TransformFailed> reason);
  // X1: the job was the only one in the worker.
  void judge(std::unique_ptr<TransformJob> job, TransformFailed reason, bool was_first,
             bool from_outside);
  void blame(std::unique_ptr<TransformJob> job, TransformFailed reason);
  void fail(std::unique_ptr<TransformJob> job, const Error& why);
  void tell(TransformJob& job, Result<Compiled> compiled);
  void tell(TransformJob& job, Result<TransformOutcome> outcome);
  void start_failed(const Error& why);

  TransformSettings settings_;
  Backlog backlog_;
  std::vector<Worker> workers_;
  TransformCounts counts_;
  std::vector<std::function<void()>> outcomes_;
  std::size_t settled_weight_ = 0;
  unsigned starts_failed_ = 0;  // one after the other
  Clock::time_point start_after_;
};

}  // namespace hapax::transform
