#include "engine/embedded_store.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/assert.h"
#include "base/mutex.h"
#include "engine/queries.h"

namespace hapax::engine {

namespace {

constexpr std::chrono::milliseconds kClaimsEvery{3};  // while claims that are over are left
// One slice of clearing away: a tenth of a millisecond, the longest that a commit waits for it.
constexpr std::size_t kSlice = 1'024;
// One slice of the sweep for retention trims so many streams, or looks at 16 times as many; commits
// wait for a slice. Four slices follow each time something is to be tended.
constexpr std::size_t kSweepStreams = 250;
constexpr int kSweepSlices = 4;

std::int64_t steady_ms() {
  const auto steady = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(steady).count();
}

}  // namespace

// Nothing was written, and a later try may succeed.
bool EmbeddedStore::is_refusal(const Error& error) {
  return error.code == Errc::kNoSpace || error.code == Errc::kUnavailable;
}

EmbeddedStore::EmbeddedStore(std::shared_ptr<void> ports, std::unique_ptr<Engine> engine,
                             Fatal on_fatal, TellPeople tell)
    : MachineStore(engine->identity(), engine->files(), std::move(tell)),
      ports_(std::move(ports)),
      engine_(std::move(engine)),
      on_fatal_(std::move(on_fatal)) {
  engine_->machine().wake(watches());
  state_thread_ = std::thread([this] { run_state(); });
  journal_thread_ = std::thread([this] { run_journal(); });
  background_thread_ = std::thread([this] { run_background(); });
}

EmbeddedStore::~EmbeddedStore() {
  {
    const base::MutexLock lock(mutex_);
    stop_ = true;
    background_stop_ = true;
    state_wake_.notify_all();
    background_wake_.notify_all();
  }
  state_thread_.join();
  background_thread_.join();
  engine_->note_time();
  {
    const base::MutexLock lock(mutex_);
    journal_stop_ = true;
    journal_wake_.notify_all();
  }
  journal_thread_.join();
}

Status EmbeddedStore::add_disk_figures(Statistics& stats) {
  return engine_->add_disk_figures(stats);
}

// --- state thread
// ------------------------------------------------------------------------------------

void EmbeddedStore::run_state() {
  std::deque<Task> tasks;
  std::optional<Result<journal::Durable>> written;
  while (next_event(tasks, written)) {
    if (written) finish_write(*std::exchange(written, std::nullopt));
    take_in(tasks);
    start_write();
    tend();
    clear_slice();
  }
}

// Decides as many as fit the batch being built; the rest goes back to the front of the queue.
void EmbeddedStore::take_in(std::deque<Task>& tasks) {
  Machine& machine = engine_->machine();
  while (!tasks.empty()) {
    if (auto* commit = std::get_if<CommitTask>(&tasks.front())) {
      full_ = !machine.has_room(commit->request) && machine.in_flight();
      if (full_) break;
      if (!machine.has_room(commit->request)) start_write();
      const journal::Lsn before = machine.next_lsn();
      machine.submit(std::move(commit->request), std::move(commit->reply));
      note_kind(machine.next_lsn() != before);
    } else if (auto* look = std::get_if<LookTask>(&tasks.front())) {
      machine.look(std::move(look->look), std::move(look->fail), look->sees);
    } else {
      machine.set_shares(std::move(std::get<SharesTask>(tasks.front()).share_of));
    }
    tasks.pop_front();
  }
  if (tasks.empty()) return;
  const base::MutexLock lock(mutex_);
  for (; !tasks.empty(); tasks.pop_back()) {
    if (const auto* commit = std::get_if<CommitTask>(&tasks.back())) {
      tasks_bytes_ += commit->request.bytes;
    }
    tasks_.push_front(std::move(tasks.back()));
  }
}

void EmbeddedStore::start_write() {
  Machine& machine = engine_->machine();
  if (machine.in_flight() || !machine.has_facts()) return;
  journal::Batch& batch = machine.seal();
  if (!take_writer(batch)) return;
  const auto began = std::chrono::steady_clock::now();
  auto written = engine_->writer().write(batch);
  give_back_writer(batch, std::chrono::steady_clock::now() - began);
  finish_write(std::move(written));
}

void EmbeddedStore::finish_write(Result<journal::Durable> written) {
  Machine& machine = engine_->machine();
  if (written) {
    machine.retire(*written);
    start_large_write();  // The disk need not wait for the answers, nor for what is decided next.
    machine.answer();
  } else if (is_refusal(written.error())) {
    refusal_ = written.error().text();
    machine.refused(written.error());
    start_write();  // What frees space, before anything else joins it.
  } else {
    on_fatal_(written.error());
    std::abort();  // on_fatal_ must not return: nothing may be answered any more.
  }
  leftover_.entries = machine.expire(kSlice);
}

// Alarms for people, once per change.
void EmbeddedStore::tell_changes() {
  const bool full = engine_->machine().writes_refused();
  if (full != told_full_) {
    tell(full ? "writes are refused, repeats and reads are answered: " + refusal_
              : "writes are accepted again");
  }
  const bool jump = engine_->machine().clock_jump_pending();
  if (jump != told_jump_) {
    tell(jump ? "the wall clock jumped by more than clock_jump_max and is not followed; check the "
                "clock, or restart to let log time approach it"
              : "the wall clock is followed again");
  }
  told_full_ = full;
  told_jump_ = jump;
}

// While nobody needs this thread it goes on clearing, slice by slice; and while somebody always
// does, be it only to look, once a millisecond.
void EmbeddedStore::clear_slice() {
  if (!leftover_.claims && !leftover_.entries && !may_sweep()) return;
  const std::int64_t now_ms = steady_ms();
  if (!idle_ && now_ms == sliced_ms_) return;
  sliced_ms_ = now_ms;
  Machine& machine = engine_->machine();
  if (leftover_.claims && machine.quiescent()) {
    leftover_ = machine.collect(kSlice);
  } else if (leftover_.entries) {
    leftover_.entries = machine.expire(kSlice);
  }
  if (may_sweep()) {
    sweep_slice();
    start_write();
  }
}

// E14: one commit may have filled the batch being built, so a slice begins one.
bool EmbeddedStore::may_sweep() const {
  return sweeps_left_ != 0 && !engine_->machine().has_facts();
}

void EmbeddedStore::sweep_slice() {
  engine_->machine().act(
      [this](core::Turn& turn) {
        sweep_from_ = sweep_retention(turn, sweep_from_, kSweepStreams);
        return true;
      },
      Machine::Purpose::kFreesSpace);
  sweeps_left_ = sweep_from_ == core::StreamUid{0} ? 0 : sweeps_left_ - 1;
}

// Housekeeping between batches: retention, garbage, snapshots.
void EmbeddedStore::tend() {
  Machine& machine = engine_->machine();
  tell_changes();
  if (machine.damage()) stop_serving(*machine.damage());
  if (!check_sound()) {
    holding_ = false;
    sweeps_left_ = 0;
    return;
  }
  const std::int64_t now_ms = steady_ms();
  const bool due = now_ms - tended_ms_ >= kTendEvery.count();
  const bool claims = leftover_.claims && now_ms - collected_ms_ >= kClaimsEvery.count();
  const bool wants_snapshot = engine_->snapshot_due();
  holding_ = (due || claims || wants_snapshot) && !machine.quiescent();
  if (!machine.quiescent() || !(due || claims || wants_snapshot)) return;
  collected_ms_ = now_ms;
  leftover_ = machine.collect(kSlice);
  if (!due && !wants_snapshot) return;
  // Only when it is due: each sweep may write, and while it does the snapshot and everybody behind
  // it wait.
  if (due) {
    tended_ms_ = now_ms;
    sweeps_left_ = kSweepSlices;
    sweep_slice();
    engine_->note_time();
  }
  engine_->carry_out_moves();
  if (wants_snapshot && machine.quiescent()) engine_->make_way();
  // The snapshot follows the batch that makes way for it, before anything else is taken in.
  holding_ = wants_snapshot && !machine.quiescent();
  if (wants_snapshot && !holding_ && engine_->snapshot_due()) {
    engine_->begin_snapshot();
    const base::MutexLock lock(mutex_);
    background_wake_.notify_one();
  }
  start_write();
}

// --- background thread
// -------------------------------------------------------------------------------

void EmbeddedStore::run_background() {
  Snapshotter& snapshotter = engine_->snapshotter();
  for (;;) {
    {
      base::MutexLock lock(mutex_);
      lock.wait(background_wake_,
                [&]() HAPAX_REQUIRES(mutex_) { return background_stop_ || snapshotter.busy(); });
      if (background_stop_) return;
    }
    const Status stepped = snapshotter.step();
    if (!stepped && stepped.error().code == Errc::kCorruption) {
      stop_serving(stepped.error());
    } else if (!stepped) {
      tell("a snapshot was given up, the next one will be tried: " + stepped.error().text());
      if (stepped.error().code == Errc::kIo) on_fatal_(stepped.error());
    }
    if (!snapshotter.busy()) {
      const base::MutexLock lock(mutex_);
      snapshot_ready_ = true;
      state_wake_.notify_one();
    }
  }
}

}  // namespace hapax::engine
