// The embedded store with its threads.
//
//   callers      hash, hand over, wait, read payloads; lead, if nobody else does
//   state        leads: decides, seals, answers; writes small batches itself
//   journal      writes and syncs the others, one at a time, and the marks
//   background   writes snapshots, removes and rewrites segments
//
// E6: the machine has one leader at a time, the writer one user. Who waits for an answer anyway may
//     lead for one batch while everything rests; in all other cases the state thread leads. Where
//     the disk is slow and most commits repeat what is known, who leads never writes: what is known
//     needs no disk.
//
// One mutex guards the hand-over fields between them and nothing else (docs/internals/threads.md).
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <variant>

#include <hapax/store.h>

#include "base/mutex.h"
#include "engine/engine.h"
#include "engine/machine_store.h"

namespace hapax::engine {

class EmbeddedStore final : public MachineStore {
 public:
  // `on_fatal` is called when nothing after a failed sync can be trusted; it must not return.
  using Fatal = std::function<void(const Error&)>;

  EmbeddedStore(std::shared_ptr<void> ports, std::unique_ptr<Engine> engine, Fatal on_fatal,
                TellPeople tell);
  ~EmbeddedStore() override;

  [[nodiscard]] const OpenReport& report() const { return engine_->report(); }

 private:
  static constexpr std::chrono::milliseconds kTendEvery{250};
  [[nodiscard]] static bool is_refusal(const Error& error);

  [[nodiscard]] bool hand_over(Task& task, Lead lead, WhenFull when_full) override;
  [[nodiscard]] Statistics figures() override { return engine_->machine().statistics(); }
  [[nodiscard]] core::Moment moment() override { return engine_->machine().moment(); }
  [[nodiscard]] Status add_disk_figures(Statistics& stats) override;
  [[nodiscard]] bool may_lead(Lead lead) const HAPAX_REQUIRES(mutex_);
  // What others asked for is answered here, too: what they throw must not reach this caller.
  void lead_one_batch() noexcept HAPAX_REQUIRES(mutex_);
  void begin_to_lead() HAPAX_REQUIRES(mutex_);
  void end_to_lead() HAPAX_REQUIRES(mutex_);

  // whoever leads
  void take_tasks(std::deque<Task>& tasks) HAPAX_REQUIRES(mutex_);
  void take_in(std::deque<Task>& tasks);
  void finish_write(Result<journal::Durable> written);
  void start_write();
  void start_large_write();
  [[nodiscard]] bool take_writer(journal::Batch& batch);
  void give_back_writer(const journal::Batch& batch, std::chrono::nanoseconds took);
  void note_kind(bool wrote) { repeats_ += ((wrote ? 0.0 : 1.0) - repeats_) / 64; }
  [[nodiscard]] bool decides_beside() const HAPAX_REQUIRES(mutex_);
  void note_write_time(std::chrono::nanoseconds took) HAPAX_REQUIRES(mutex_);
  void count_unmarked(std::uint32_t bytes) HAPAX_REQUIRES(mutex_);
  [[nodiscard]] bool mark_due() const HAPAX_REQUIRES(mutex_);

  // state thread
  void run_state();
  bool next_event(std::deque<Task>& tasks, std::optional<Result<journal::Durable>>& written);
  void wait_for_event(base::MutexLock& lock) HAPAX_REQUIRES(mutex_);
  [[nodiscard]] bool worth_waking() const HAPAX_REQUIRES(mutex_);
  void tend();
  void clear_slice();
  [[nodiscard]] bool may_sweep() const;
  void sweep_slice();
  void tell_changes();

  // journal thread
  void run_journal();
  [[nodiscard]] bool wait_for_journal_work(base::MutexLock& lock) HAPAX_REQUIRES(mutex_);
  void write_mark(journal::MarkKind kind);

  // background thread
  void run_background();

  const std::shared_ptr<void> ports_;  // folder, clock and entropy; outlive the engine
  const std::unique_ptr<Engine> engine_;
  const Fatal on_fatal_;

  base::Mutex mutex_;
  std::condition_variable state_wake_;
  std::condition_variable journal_wake_;
  std::condition_variable background_wake_;
  std::condition_variable room_;
  std::deque<Task> tasks_ HAPAX_GUARDED_BY(mutex_);
  std::size_t tasks_bytes_ HAPAX_GUARDED_BY(mutex_) = 0;
  std::optional<std::thread::id> leader_ HAPAX_GUARDED_BY(mutex_);
  // Nobody leads, nothing is under way, nothing is to be tended.
  bool resting_ HAPAX_GUARDED_BY(mutex_) = false;
  bool lead_wanted_ HAPAX_GUARDED_BY(mutex_) = false;  // by the state thread
  // A batch is being written by the journal thread.
  bool awaits_disk_ HAPAX_GUARDED_BY(mutex_) = false;
  bool writer_taken_ HAPAX_GUARDED_BY(mutex_) = false;
  std::chrono::microseconds write_time_ HAPAX_GUARDED_BY(mutex_){0};  // of one batch, of late
  // Batches since the latest mark, and their bytes.
  std::uint64_t unmarked_ HAPAX_GUARDED_BY(mutex_) = 0;
  std::uint64_t unmarked_bytes_ HAPAX_GUARDED_BY(mutex_) = 0;
  journal::Batch* to_write_ HAPAX_GUARDED_BY(mutex_) = nullptr;
  std::optional<Result<journal::Durable>> written_ HAPAX_GUARDED_BY(mutex_);
  bool snapshot_ready_ HAPAX_GUARDED_BY(mutex_) = false;
  bool stop_ HAPAX_GUARDED_BY(mutex_) = false;  // no new tasks; the state thread drains and leaves
  bool journal_stop_ HAPAX_GUARDED_BY(mutex_) = false;
  bool background_stop_ HAPAX_GUARDED_BY(mutex_) = false;

  // Owned by the leader, read under mutex_ while nobody leads:
  double repeats_ = 0;  // share of the latest commits that wrote nothing
  // Owned by the leader:
  bool holding_ = false;  // tasks wait until the machine is quiescent
  bool full_ = false;     // tasks wait until the batch in flight is written
  bool idle_ = false;     // the latest wait ended without an event
  core::Leftover leftover_;
  std::int64_t tended_ms_ = 0;
  std::int64_t collected_ms_ = 0;
  std::int64_t sliced_ms_ = 0;
  core::StreamUid sweep_from_;
  int sweeps_left_ = 0;  // slices of the sweep, until something is to be tended again
  std::string refusal_;  // why the latest batch was refused
  bool told_full_ = false;
  bool told_jump_ = false;

  std::thread state_thread_;
  std::thread journal_thread_;
  std::thread background_thread_;
};

}  // namespace hapax::engine
