// The embedded store without threads: the state, the batch being built, the batch on its way to the
// disk, and who waits for which. One owner calls it; in production that is the state thread, in the
// simulation the scheduler.
//
//   submit()      decides at once; the answer waits until what it says is durable
//   seal()        the batch being built is now in flight; its owner writes and syncs it
//   completed()   it is durable: answers leave
//   refused()     the disk was full: everything since is rolled back and answered so; only what
//                 frees space is decided once more, for a batch of its own that may use the reserve
//
//   proven()      a log that others write, too, has nothing new: who only looked is answered
//   overtaken()   others wrote first: everything since is rolled back, what they wrote is followed,
//                 and everybody is decided again
//
// E1: no answer leaves before the batch that holds its facts, and every batch it may have looked
//     at, is durable: the caller of completed() must show the proof. A message id that was stored
//     before these batches were begun looked at none of them, if all they do is append.
// E2: what is decided after a batch was sealed sees that batch's facts; so if it is refused, both
//     are rolled back, and whoever only looked is decided again.
// W5: an answer that something is over or not there leaves only if log time is durable to within
//     kStepMax of the time by which it is. Otherwise log time is written down first.
// E3: what is over is cleared away faster than new things come: after each batch twice as many
//     entries as it had facts.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include <hapax/store.h>

#include "core/commit.h"
#include "core/state.h"
#include "digest/hash.h"
#include "engine/answers.h"
#include "engine/log_clock.h"
#include "engine/prepare.h"
#include "engine/watches.h"
#include "journal/batch.h"
#include "journal/segment_files.h"
#include "journal/writer.h"

namespace hapax::engine {

class Machine final : private core::StateOwner {
 public:
  // Looks at the state; the returned function is called when all that was seen is durable.
  using Look = std::function<std::function<void()>(const core::State&, Time now)>;
  // Called instead if that will never be known.
  using Fail = std::function<void(const Error&)>;
  // Whether what is seen may be that something is over (W5).
  enum class Sees : std::uint8_t { kState, kEnds };
  // An act of the store itself (trim, move). False: there was nothing to do.
  using Act = std::function<bool(core::Turn&)>;
  // L18: what only frees space may use the reserve of a full disk.
  enum class Purpose : std::uint8_t { kOrdinary, kFreesSpace };

  // Where the log ends.
  struct LogEnd {
    std::uint32_t segment_bytes = 0;
    journal::Lsn next{1};
    journal::Slot slot;       // of the next batch
    Time log_time{};          // the newest that is durable
    std::uint64_t bytes = 0;  // that others wrote since it was known before
    std::uint64_t facts = 0;  // the same
  };
  // Whose log it is. kShared, E7: what the state says may be old, so nobody is answered before the
  // log was asked, by appending to it or by proven().
  enum class Log : std::uint8_t { kOwn, kShared };

  Machine(std::unique_ptr<core::State> state, const LogEnd& end, const digest::HashKey& key,
          LogClock& clock, journal::SegmentFiles& files, Log log = Log::kOwn);

  void submit(Prepared request, OnFinished reply);
  void look(Look look, Fail fail = {}, Sees sees = Sees::kState);
  // REQUIRES, E14: the batch being built has no facts but of such acts.
  void act(Act act, Purpose purpose = Purpose::kOrdinary);

  // Whether the request still fits the batch being built.
  [[nodiscard]] bool has_room(const Prepared& request) const;
  [[nodiscard]] bool in_flight() const { return in_flight_.sealed; }
  [[nodiscard]] bool has_facts() const { return !building_.batch.empty(); }
  // Of the batch being built.
  [[nodiscard]] std::uint32_t decided_bytes() const { return building_.batch.payload_bytes(); }
  // Nothing can be rolled back and nobody waits.
  [[nodiscard]] bool quiescent() const {
    return !in_flight() && building_.waiting.empty() && answerable_.empty();
  }

  // REQUIRES: has_facts() and not in_flight().
  [[nodiscard]] journal::Batch& seal();
  void completed(const journal::Durable& proof) {
    retire(proof);
    answer();
  }
  // The same in two steps, so that the next batch can be sealed before the answers of this one
  // leave. REQUIRES: nothing is decided between them.
  void retire(const journal::Durable& proof);
  void answer();
  void refused(const Error& error);
  // REQUIRES: not has_facts() and not in_flight().
  void proven();
  // `follow` applies what others wrote and says where the log ends now.
  using Follow = std::function<LogEnd(core::State&)>;
  void overtaken(const Follow& follow);
  // Nobody waits any longer: who wrote something that is in flight is told `unknown`, the others
  // `error`. What is in flight stays so.
  void give_up(const Error& unknown, const Error& error);

  // Both do `work_min` or, once per batch, twice what it had facts, and answer what is left: so
  // clearing is faster than adding, and costs no more than in proportion to it.
  // Removes what is dead. REQUIRES: quiescent().
  core::Leftover collect(std::size_t work_min);
  // Forgets expired ids; at any time.
  bool expire(std::size_t work_min);

  // Those who wait for facts from now on. They outlive the machine.
  void wake(Watches& watches) { watches_ = &watches; }
  // W5: writes log time down, as a fact, if what is durable is so much older.
  void note_time(Duration older);
  // Log time now; of the batch being built, if that has facts.
  [[nodiscard]] Time read_clock();

  // No fact, and undone by nothing: it says what is decided from now on.
  void set_shares(ShareOf share_of) { state_->tenants.set(std::move(share_of)); }

  [[nodiscard]] core::State& state() { return *state_; }
  // Log time of the batch being built.
  [[nodiscard]] Time decided_at() const { return building_.batch.log_time(); }
  [[nodiscard]] core::Moment moment() const { return {decided_at(), clock_.wall()}; }
  // What is over at this time is over for everybody. E11: of a log that others write, too, that is
  // the time of its last batch: theirs may be behind the one that is being built here.
  [[nodiscard]] Time over_until() const { return log_ == Log::kOwn ? decided_at() : latest_; }
  // Bytes of journal since the start.
  [[nodiscard]] std::uint64_t written_bytes() const { return written_bytes_; }
  [[nodiscard]] journal::Lsn next_lsn() const { return next_lsn_; }
  [[nodiscard]] journal::Slot next_slot() const { return next_slot_; }
  // L21: the next batch begins a segment, however little the present one holds.
  // REQUIRES: quiescent().
  void begin_segment();
  [[nodiscard]] Statistics statistics() const;
  [[nodiscard]] bool writes_refused() const { return writes_refused_; }
  // Something that was durable and that a decision needed cannot be read.
  [[nodiscard]] const std::optional<Error>& damage() const { return damage_; }
  Error note_damage(Error error);
  [[nodiscard]] bool clock_jump_pending() const { return clock_.jump_pending(); }
  [[nodiscard]] const digest::HashKey& key() const { return key_; }

 private:
  struct WaitingCommit {
    Prepared request;
    OnFinished reply;
    Finished finished;
    bool wrote = false;
    bool again = false;  // It was in a refused batch with others.
  };
  struct WaitingLook {
    Look look;
    Fail fail;
    std::function<void()> deliver;
    Sees sees = Sees::kState;
  };
  struct WaitingAct {
    Act act;
    Purpose purpose = Purpose::kOrdinary;
  };
  using Waiting = std::variant<WaitingCommit, WaitingLook, WaitingAct>;

  // One batch, the inverses of its facts, and who waits for it.
  struct Stage {
    journal::Batch batch;
    journal::Slot slot;
    core::Undo undo;
    std::vector<Waiting> waiting;
    Wakes wakes;  // Some of facts that were taken back may be among them.
    bool sealed = false;
    bool ordinary = false;     // Not all of its facts only free space.
    bool only_appends = true;  // All of its facts are appended records, or note the time.
  };

  [[nodiscard]] std::vector<Waiting> roll_back();
  static void fail(Waiting& waiting, const Error& error);
  void begin_batch();
  void refresh_time();
  void decide(Waiting waiting);
  void look_again(Waiting waiting, const Error& error, bool may_write);
  bool decide_commit(WaitingCommit& waiting);
  [[nodiscard]] static bool frees_space(const Waiting& waiting);
  [[nodiscard]] bool may_try_again(const WaitingCommit& commit, const Error& error) const;
  [[nodiscard]] Finished finish(const Prepared& request, core::Executed executed, Time now);
  void wait_or_deliver(Waiting waiting);
  [[nodiscard]] bool knew_before(const Waiting& waiting) const;
  [[nodiscard]] bool owes_time(const Waiting& waiting) const;
  void write_time();
  static void deliver(Waiting& waiting);
  [[nodiscard]] core::Turn turn();
  [[nodiscard]] Result<std::string> bytes_at(base::Where where) const;
  void plan(const Prepared& request, Answer& answer, Finished& finished, Time now) const;
  void check_suspect();
  void resolve_files(Finished& finished);

  // As the owner of the state.
  base::Where write(const core::Fact& fact) override;
  Result<std::string> read_record(const core::Stream& stream, Sequence sequence) override;
  core::ContentId content_id(std::string_view payload) override;
  std::size_t batch_mark() override;
  void cut_batch(std::size_t mark) override;
  bool take_overflow() override;
  Time wall(Time now) override;

  std::unique_ptr<core::State> state_;
  std::uint32_t segment_bytes_;
  digest::HashKey key_;
  LogClock& clock_;
  journal::SegmentFiles& files_;
  journal::Lsn next_lsn_;    // behind the batch being built
  journal::Slot next_slot_;  // of the batch being built
  Stage building_;
  Stage in_flight_;
  std::vector<Waiting> answerable_;  // for batches that are durable
  Wakes durable_wakes_;              // of these
  Watches* watches_ = nullptr;       // none: nobody waits
  std::uint64_t commits_ = 0;
  std::uint64_t batches_ = 0;
  std::uint64_t written_bytes_ = 0;
  std::size_t owed_collect_ = 0;  // work, for the latest batch that was written
  std::size_t owed_expire_ = 0;
  bool writes_refused_ = false;
  bool time_refused_ = false;  // the latest batch was: then nobody waits for log time
  std::optional<Error> damage_;
  std::optional<std::uint32_t> suspect_;  // a segment that was not there, and may have been removed
  bool overflow_ = false;                 // a fact did not fit the batch being built
  const Log log_;
  Time latest_;  // the newest log time that is durable
};

}  // namespace hapax::engine
