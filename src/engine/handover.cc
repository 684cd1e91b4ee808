// Who leads, who writes, and who waits for whom (E6).
#include <chrono>
#include <utility>

#include "base/mutex.h"
#include "engine/embedded_store.h"

namespace hapax::engine {

namespace {

// Then callers wait, and loops of connections are refused: back-pressure.
constexpr std::size_t kTasksBytesMax = std::size_t{64} << 20;
constexpr std::size_t kTasksMax = 16'384;
constexpr std::chrono::milliseconds kIdleBeforeMark{20};
// What lies behind the latest mark is written anew by a start after a crash.
constexpr std::uint64_t kBatchesPerMark = 1'024;
constexpr std::uint64_t kBytesPerMark = std::uint64_t{4} << 20;
// The state thread writes up to so much itself: handing it over and back takes longer than deciding
// the operations that come meanwhile.
constexpr std::uint32_t kWriteHereMax = std::uint32_t{8} << 10;
// So much a loop of connections may decide itself, and for a disk that is as quick as this.
constexpr std::size_t kLeadMax = std::size_t{64} << 10;
constexpr std::chrono::microseconds kQuick{1'000};
// While a batch is being written, so much is worth to begin the next one for.
constexpr std::size_t kWakeTasks = 32;
constexpr std::size_t kWakeBytes = std::size_t{8} << 10;

}  // namespace

// --- callers
// ---------------------------------------------------------------------------------------

bool EmbeddedStore::hand_over(Task& task, Lead lead, WhenFull when_full) {
  const auto* commit = std::get_if<CommitTask>(&task);
  const std::size_t bytes = commit == nullptr ? 0 : commit->request.bytes;
  base::MutexLock lock(mutex_);
  // E4: the leader, from whom `done` may submit, never waits for room that only it can make.
  const bool makes_room = leader_ == std::this_thread::get_id();
  const auto has_room = [&]() HAPAX_REQUIRES(mutex_) {
    const bool some = tasks_bytes_ < kTasksBytesMax && tasks_.size() < kTasksMax;
    return makes_room || tasks_.empty() || some;
  };
  if (when_full == WhenFull::kRefuse && !has_room()) return false;
  lock.wait(room_, has_room);
  tasks_bytes_ += bytes;
  tasks_.push_back(std::move(task));
  if (may_lead(lead)) {
    lead_one_batch();
  } else if (!leader_ && worth_waking()) {  // Who leads looks at what has come when it ends.
    state_wake_.notify_one();
  }
  return true;
}

bool EmbeddedStore::may_lead(Lead lead) const {
  const bool quick = write_time_ < kQuick && tasks_bytes_ <= kLeadMax;
  return resting_ && (lead == Lead::kAlways || (lead == Lead::kIfQuick && quick));
}

void EmbeddedStore::lead_one_batch() noexcept {
  begin_to_lead();
  std::deque<Task> tasks;
  take_tasks(tasks);
  mutex_.unlock();
  take_in(tasks);
  start_write();
  mutex_.lock();
  end_to_lead();
  const bool to_clear = leftover_.entries || leftover_.claims;
  if (!resting_ || to_clear) state_wake_.notify_one();
}

void EmbeddedStore::begin_to_lead() {
  leader_ = std::this_thread::get_id();
  resting_ = false;
}

void EmbeddedStore::end_to_lead() {
  const Machine& machine = engine_->machine();
  leader_.reset();
  awaits_disk_ = machine.in_flight();
  const bool done = tasks_.empty() && !written_ && machine.quiescent() && !machine.damage();
  resting_ = done && !holding_ && !full_ && !lead_wanted_ && !stop_;
}

// --- state thread
// ------------------------------------------------------------------------------------

// Under the lock, while nobody else leads. What arrives while a batch is being written waits for it
// in most cases, so it may as well gather: each waking costs as much as deciding several
// operations.
bool EmbeddedStore::worth_waking() const {
  if (!awaits_disk_ || decides_beside()) return !tasks_.empty();
  return tasks_.size() >= kWakeTasks || tasks_bytes_ >= kWakeBytes;
}

// Under the lock, while nobody else leads.
bool EmbeddedStore::decides_beside() const { return repeats_ > 0.5 && write_time_ >= kQuick; }

void EmbeddedStore::take_tasks(std::deque<Task>& tasks) {
  tasks.swap(tasks_);
  tasks_bytes_ = 0;
  room_.notify_all();
}

// Ends when there is something to do, or something to tend, and nobody else leads.
void EmbeddedStore::wait_for_event(base::MutexLock& lock) {
  const Machine& machine = engine_->machine();
  const auto ready = [&]() HAPAX_REQUIRES(mutex_) {
    if (leader_) return false;
    const bool takes_in = !holding_ && !full_;
    const bool damaged = machine.damage() && check_sound().ok();
    // What the tasks are held for was written by this thread: nobody else will tell of it.
    const bool held_for_nothing = holding_ && machine.quiescent();
    return written_.has_value() || snapshot_ready_ || damaged || held_for_nothing ||
           (stop_ && takes_in) || (takes_in && worth_waking());
  };
  const auto to_clear = [&]() HAPAX_REQUIRES(mutex_) {
    if (leader_) return false;
    const bool claims = leftover_.claims && machine.quiescent();
    return leftover_.entries || claims || may_sweep();
  };
  lock.wait_for(state_wake_, kTendEvery,
                [&]() HAPAX_REQUIRES(mutex_) { return ready() || to_clear(); });
  const bool idle = !ready();
  lead_wanted_ = true;
  lock.wait(state_wake_, [this]() HAPAX_REQUIRES(mutex_) { return !leader_; });
  lead_wanted_ = false;
  idle_ = idle;
}

// Waits until there is something to do; false when the store is to stop and all is done.
bool EmbeddedStore::next_event(std::deque<Task>& tasks,
                               std::optional<Result<journal::Durable>>& written) {
  Machine& machine = engine_->machine();
  base::MutexLock lock(mutex_);
  end_to_lead();
  wait_for_event(lock);
  begin_to_lead();
  written = std::exchange(written_, std::nullopt);
  snapshot_ready_ = false;
  if (written) full_ = false;
  if ((!holding_ && !full_) || (stop_ && !full_)) take_tasks(tasks);
  const bool idle = tasks.empty() && !written && machine.quiescent() && !machine.has_facts();
  return !(stop_ && idle);
}

// E6: the writer has one user at a time. False: the journal thread writes this one, because it is
// large, because others came meanwhile or are to come that can be decided beside it, or because a
// mark is due.
bool EmbeddedStore::take_writer(journal::Batch& batch) {
  const bool small = batch.bytes() <= kWriteHereMax;
  const base::MutexLock lock(mutex_);
  const bool alone = tasks_.empty() && !decides_beside();
  if (small && !writer_taken_ && alone && !mark_due()) {
    writer_taken_ = true;
    return true;
  }
  to_write_ = &batch;
  journal_wake_.notify_one();
  return false;
}

// Of what is decided already, if it is a batch for the journal thread.
void EmbeddedStore::start_large_write() {
  if (engine_->machine().decided_bytes() > kWriteHereMax) start_write();
}

void EmbeddedStore::give_back_writer(const journal::Batch& batch, std::chrono::nanoseconds took) {
  const base::MutexLock lock(mutex_);
  note_write_time(took);
  writer_taken_ = false;
  if (unmarked_ == 0) journal_wake_.notify_one();  // It looks out for a pause from now on.
  count_unmarked(batch.bytes());
}

void EmbeddedStore::note_write_time(std::chrono::nanoseconds took) {
  write_time_ += (std::chrono::duration_cast<std::chrono::microseconds>(took) - write_time_) / 8;
}

void EmbeddedStore::count_unmarked(std::uint32_t bytes) {
  ++unmarked_;
  unmarked_bytes_ += bytes;
}

bool EmbeddedStore::mark_due() const {
  return unmarked_ >= kBatchesPerMark || unmarked_bytes_ >= kBytesPerMark;
}

// --- journal thread
// ----------------------------------------------------------------------------------

// False when the store is to stop; true with no batch to write is a pause, good for a mark.
bool EmbeddedStore::wait_for_journal_work(base::MutexLock& lock) {
  while (to_write_ == nullptr) {
    if (journal_stop_) return false;
    if (unmarked_ == 0) {
      // W5: also if nothing was written, the mark takes log time along.
      const auto woken = lock.wait_for(journal_wake_, engine_->options().mark_every);
      if (woken == std::cv_status::timeout && to_write_ == nullptr && !writer_taken_) return true;
      continue;
    }
    const std::uint64_t seen = unmarked_;
    const auto woken = lock.wait_for(journal_wake_, kIdleBeforeMark);
    if (woken == std::cv_status::timeout && unmarked_ == seen && !writer_taken_) return true;
  }
  return true;
}

void EmbeddedStore::write_mark(journal::MarkKind kind) {
  const Status marked = engine_->writer().write_mark(kind);
  if (!marked && !is_refusal(marked.error())) on_fatal_(marked.error());
}

void EmbeddedStore::run_journal() {
  base::MutexLock lock(mutex_);
  while (wait_for_journal_work(lock)) {
    writer_taken_ = true;
    bool mark = to_write_ == nullptr;
    if (to_write_ != nullptr) {
      journal::Batch* const batch = std::exchange(to_write_, nullptr);
      lock.unlock();
      const auto began = std::chrono::steady_clock::now();
      auto written = engine_->writer().write(*batch);
      lock.lock();
      if (batch->bytes() <= kWriteHereMax)
        note_write_time(std::chrono::steady_clock::now() - began);
      written_.emplace(std::move(written));
      state_wake_.notify_one();
      count_unmarked(batch->bytes());
      mark = mark_due();
    }
    if (mark) {
      unmarked_ = 0;
      unmarked_bytes_ = 0;
      lock.unlock();
      write_mark(journal::MarkKind::kRunning);
      lock.lock();
    }
    writer_taken_ = false;
  }
  lock.unlock();
  write_mark(journal::MarkKind::kClean);
}

}  // namespace hapax::engine
