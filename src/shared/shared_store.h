// A store of which there may be any number, in as many processes, over one log: each holds the
// whole state, follows what the others append, and appends what it decides behind it. They behave
// as one.
//
//   callers      as with the embedded store
//   driver       decides what callers ask, in rounds: one batch, one append, all answers
//   background   writes snapshots and removes dead segments, in the process that is the keeper
//
// E7: nothing is answered from what may be old. A round ends with one question to the log: an
//     append that only succeeds where the state ends, or, if nothing is to be written, whether
//     there is anything new. If there is, the round is rolled back, what others wrote is followed,
//     and everything is decided again.
// E8: an append that nobody knows the outcome of is said again, until it is known to be there, or
//     something else in its place. Nothing else is decided before.
// E9: a log without the latest batch that was known, or without what followed it, lost it (or
//     dropped it while this process was asleep): the state is built anew from what is there, and
//     people are told which facts are lost.
// W8: a process that does not know what log time the others have asks for it, by a batch that does
//     nothing else. Whoever is ahead answers with one that has its own time, unless somebody has
//     decided by the older time: then it goes back to that, and asks. So a lease that was given is
//     not over for somebody else at once. shared_time.cc.
// E10: snapshots, removal and retention are the keeper's, who holds a lock in the place where the
//     log is. A new keeper builds its state anew from the newest snapshot, so that the parts it
//     refers to are the ones that it knows.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <hapax/store.h>

#include "base/mutex.h"
#include "engine/engine.h"
#include "engine/machine_store.h"
#include "engine/replay.h"
#include "ports/clock.h"
#include "ports/entropy.h"
#include "ports/files.h"
#include "ports/shared_log.h"
#include "shared/known_batches.h"

namespace hapax::shared {

// Locks in the folder.
inline constexpr std::string_view kKeeperName = "KEEPER";  // of who keeps the store (E10)
inline constexpr std::string_view kMakingName = "MAKING";  // of who makes it

struct SharedPorts {
  ports::SharedLog& log;
  ports::Folder& folder;  // snapshots, STORE, and the log's segments for reading; for the driver
  ports::Clock& clock;    // wall time is that of the log's place
  ports::Entropy& entropy;
};

struct SharedOptions {
  engine::EngineOptions engine;
  // How long callers wait for a log that does not answer, or in which others are always first.
  std::chrono::milliseconds patience{10'000};
  // While somebody waits for facts (Store::watch), those of others are asked for so often.
  std::chrono::milliseconds watch_every{20};
  std::chrono::milliseconds tend_every{250};  // what is due is done so often
  // So often a process that is not the keeper tries to be, and follows what others wrote when
  // nobody asks here.
  std::chrono::milliseconds keep_every{1'000};
  // W8: who asks for log time waits so long at most. Longer than `keep_every`.
  std::chrono::milliseconds answer_within{2'000};
};

class SharedStore final : public engine::MachineStore {
 public:
  static Result<std::unique_ptr<SharedStore>> open(std::shared_ptr<void> owner, SharedPorts ports,
                                                   SharedOptions options, TellPeople tell);
  ~SharedStore() override;

 private:
  SharedStore(std::shared_ptr<void> owner, SharedPorts ports, SharedOptions options,
              const journal::Identity& identity, std::shared_ptr<journal::SegmentFiles> files,
              TellPeople tell);

  [[nodiscard]] bool hand_over(Task& task, Lead lead, WhenFull when_full) override;
  [[nodiscard]] Statistics figures() override { return engine_->machine().statistics(); }
  [[nodiscard]] core::Moment moment() override { return engine_->machine().moment(); }
  [[nodiscard]] Status add_disk_figures(Statistics& stats) override;

  // driver: rounds
  void run();
  bool next(std::deque<Task>& tasks);
  void serve_all(std::deque<Task>& tasks);
  void take_in(std::deque<Task>& tasks);
  void take_shares(SharesTask& task);
  void end_round();
  void bound_round(std::int64_t began_ms);
  void append();
  void append_failed(const Error& error);
  void sent_is_there();
  void see_what_is_there();
  void ask_for_news();
  [[nodiscard]] Result<ports::LogPart> read_news();
  void follow(const ports::LogPart& news);
  Status follow_one(engine::Replay& replay, const ports::LogBatch& batch);
  void clear_away();
  struct Facts {
    journal::Lsn first;
    journal::Lsn last;
  };
  void stand_behind(const ports::LogBatch& batch, std::uint32_t checksum, Facts facts,
                    Time log_time);

  // driver: trouble
  [[nodiscard]] bool is_ours(const ports::LogBatch& batch) const;
  void no_news(const Error& error);
  void no_answer(const Error& error);
  void out_of_patience(const Error& error);
  void try_again();
  void build_anew(const Error& why);
  void read_anew();
  void tell_losses();
  void refuse(std::deque<Task>& tasks, const Error& error);

  // driver: reading everything
  Status read_all();
  Status read_once();
  [[nodiscard]] Result<journal::Lsn> newest_snapshot();
  Status read_log(engine::Engine::Read& read);
  Status stand_on(const ports::LogBatch& batch);
  [[nodiscard]] journal::Slot end_of_log() const;

  // driver: time
  void start_time();
  void compare_time(const ports::LogPart& news);
  void ask_for_time();
  bool put_question(Time asked);
  void answer_with_time();

  // driver: what is due
  void tend();
  void tend_as_keeper();
  void try_to_keep(std::int64_t now_ms);
  Status clear_leftovers();

  void run_background();
  [[nodiscard]] bool background_stops();

  const std::shared_ptr<void> owner_;
  const SharedPorts ports_;
  const SharedOptions options_;
  const journal::Identity identity_;
  const std::shared_ptr<journal::SegmentFiles> files_;

  base::Mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable room_;
  std::condition_variable background_wake_;
  std::deque<Task> tasks_ HAPAX_GUARDED_BY(mutex_);
  std::size_t tasks_bytes_ HAPAX_GUARDED_BY(mutex_) = 0;
  bool stop_ HAPAX_GUARDED_BY(mutex_) = false;
  bool background_stop_ HAPAX_GUARDED_BY(mutex_) = false;
  // Handed to the background until it is done.
  engine::Snapshotter* to_write_ HAPAX_GUARDED_BY(mutex_) = nullptr;
  bool keeper_lost_ HAPAX_GUARDED_BY(mutex_) = false;
  std::thread::id driver_id_ HAPAX_GUARDED_BY(mutex_);
  std::optional<std::int64_t> counted_ms_ HAPAX_GUARDED_BY(mutex_);
  journal::SegmentUse use_ HAPAX_GUARDED_BY(mutex_);

  // The driver's:
  std::unique_ptr<engine::Engine> engine_;
  ShareOf share_of_;  // none: nobody has a share of its own
  ports::LogTip tip_;
  journal::Lsn durable_;  // of the last fact up to the tip
  Time log_time_{};       // of the tip
  std::uint32_t tip_bytes_ = 0;
  std::uint32_t chain_ = 0;  // checksum of the tip
  KnownBatches known_;
  bool sent_ = false;  // a batch is in flight
  ports::LogBatch batch_;
  Time batch_time_{};
  std::uint32_t batch_chain_ = 0;
  bool may_be_there_ = false;  // an append of it ended without an outcome
  std::optional<std::int64_t> silent_since_ms_;
  bool half_read_ = false;        // reading everything failed; then failing_, too
  std::optional<Error> failing_;  // the log does not answer; so are callers told
  engine::Wakes news_;            // what others gave to those who wait here
  std::unique_ptr<ports::Lock> keeper_;
  std::int64_t keeper_tried_ms_ = 0;
  std::int64_t tended_ms_ = 0;
  std::int64_t followed_ms_ = 0;
  core::StreamUid sweep_from_;
  // W8: the newest time that others wrote is long over here, …
  bool others_behind_ = false;   // … and nobody has decided by it,
  bool decided_behind_ = false;  // … or somebody has;
  bool unsure_ = false;          // others may be ahead: who decides asks them before

  std::thread driver_;
  std::thread background_;
};

}  // namespace hapax::shared
