// One operation being carried out: decide by pure rules, emit the facts, answer the verdict.
// A Turn is the only way from a decision to the journal: emit() writes the fact and applies it, so
// no state can change without a fact. It cannot fail: a batch that does not reach the disk is
// rolled back through the undo log.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>

#include <hapax/ops.h>
#include <hapax/verdicts.h>

#include "core/facts.h"
#include "core/moment.h"
#include "core/state.h"
#include "core/undo.h"

namespace hapax::core {

struct ContentId {
  std::string id;
  base::Hash128 hash;
};

// What the owner of the state provides.
class StateOwner {
 public:
  // Adds the fact to the batch being built and says where it will lie.
  virtual base::Where write(const Fact& fact) = 0;
  // The encoded RecordAppended of a kept record (checked); for copies to and from dead letters.
  virtual Result<std::string> read_record(const Stream& stream, Sequence sequence) = 0;
  // The id of a record that has none, in a stream with content ids.
  virtual ContentId content_id(std::string_view payload) = 0;
  // The batch being built, to cut off the facts of a commit that was refused half way.
  virtual std::size_t batch_mark() = 0;
  virtual void cut_batch(std::size_t mark) = 0;
  // Whether a fact since the last question did not fit the batch. Whoever asks takes back what it
  // belongs to.
  virtual bool take_overflow() { return false; }
  // The wall clock as far as it is believed.
  virtual Time wall(Time now) { return now; }

 protected:
  ~StateOwner() = default;
};

class Turn {
 public:
  Turn(State& state, Time now, Undo& undo, StateOwner& owner)
      : state_(state), now_(now), undo_(undo), owner_(owner) {}

  [[nodiscard]] State& state() { return state_; }
  [[nodiscard]] const State& state() const { return state_; }
  [[nodiscard]] Time now() const { return now_; }
  // What callers give and are told as absolute times is judged by this; facts have log time only.
  [[nodiscard]] Moment moment() const { return {now_, owner_.wall(now_)}; }
  // Log time or the wall clock as far as it is believed, whichever is later.
  [[nodiscard]] Time latest() const { return std::max(now_, moment().wall); }

  base::Where emit(const Fact& fact) {
    const base::Where at = owner_.write(fact);
    apply(state_, fact, at, now_, &undo_);
    return at;
  }
  [[nodiscard]] Result<std::string> read_record(const Stream& stream, Sequence sequence) {
    return owner_.read_record(stream, sequence);
  }
  [[nodiscard]] ContentId content_id(std::string_view payload) {
    return owner_.content_id(payload);
  }

  // Everything emitted since the mark can be taken back.
  struct Mark {
    Undo::Mark undo;
    std::size_t batch;
    std::size_t told;
    std::size_t told_results;
  };
  [[nodiscard]] Mark mark() { return {undo_.mark(), owner_.batch_mark(), told_, told_results_}; }
  void roll_back(Mark mark) {
    undo_.roll_back(state_, mark.undo);
    owner_.cut_batch(mark.batch);
    told_ = mark.told;
    told_results_ = mark.told_results;
  }

  void use(Detail detail) { detail_ = detail; }
  // What its audit lines may take beyond the tenant's storage.
  void use_reserve(std::uint64_t bytes) { reserve_ = bytes; }
  [[nodiscard]] std::uint64_t reserve() const { return reserve_; }
  [[nodiscard]] std::size_t receive_bytes_max() const {
    return brief() ? limits::kBriefReceiveBytesMax : limits::kReceiveBytesMax;
  }
  // The answer brings so many bytes along: values, records, or the result of a claim. Those of
  // results cannot be known before; they are counted apart so that they take no room of the others.
  // Small ones are always told: operations are counted, too.
  void tell(std::size_t bytes) { told_ += bytes; }
  void tell_records(std::size_t bytes) {
    if (!brief() || bytes <= limits::kBriefReceiveBytesMax) told_ += bytes;
  }
  void tell_result(std::size_t bytes) {
    if (!brief() && bytes > limits::kBriefResultBytesMax) told_results_ += bytes;
  }
  [[nodiscard]] bool tells_too_much() const {
    return told_ > limits::kAnswerBytesMax || told_results_ > limits::kAnswerBytesMax;
  }

  // The fact of an answered commit does not say whose it is: its tenant is charged beside it.
  void charge_commit(std::string_view id, base::Hash128 hash);
  [[nodiscard]] bool take_overflow() { return owner_.take_overflow(); }

  // Acts refused because somebody newer is there; counted for people, not part of the journal.
  void count_fenced() { ++state_.counters.fenced; }

 private:
  [[nodiscard]] bool brief() const { return detail_ == Detail::kBrief; }

  State& state_;
  Time now_;
  Undo& undo_;
  StateOwner& owner_;
  Detail detail_ = Detail::kFull;
  std::uint64_t reserve_ = 0;
  std::size_t told_ = 0;
  std::size_t told_results_ = 0;
};

// Hashes are computed outside, in parallel, before the state is touched.
struct AppendHashes {
  base::Hash128 id;     // of the message id alone; ignored when there is none
  Fingerprint content;  // of payload and group key
  GroupHash group = 0;  // never 0 for a group key
};
struct RegisterHash {
  base::Hash128 key;  // of the name
};
struct ClaimHashes {
  base::Hash128 key;    // of scope and key
  Fingerprint content;  // of Claim only
};

// streams (streams.cc)
Verdict run(Turn& turn, const CreateStream& op);
Verdict run(Turn& turn, const ConfigureStream& op);
Verdict run(Turn& turn, const DeleteStream& op);
Verdict run(Turn& turn, const Trim& op);
Verdict run(Turn& turn, const RetireProducer& op);
Verdict run(Turn& turn, const OpenProducer& op);
Verdict run(Turn& turn, const Append& op, const AppendHashes& hashes);
// The fact of a trim at `now`.
[[nodiscard]] RecordsTrimmed trimmed(const Stream& stream, Sequence before, Time now);
// What a message id is remembered under, in its scope.
[[nodiscard]] base::Hash128 scoped_id(const Stream& stream, const AppendHashes& hashes);
// Writes an act of a person to the stream kAuditStream, if it has room there: an act that cannot be
// audited is refused. Of a tenant's acts the server keeps the audit, in the tenant's own stream.
std::optional<Error> audit(Turn& turn, std::string_view act, std::string_view subject,
                           std::string_view actor, std::string_view reason);
// Copies a kept record to the end of `to`, with lineage and without remembering its id again; what
// is remembered instead is `remembered_as`, unless that is zero.
Result<Sequence> copy_record(Turn& turn, const Stream& from, Sequence sequence, Stream& to,
                             const Lineage& lineage, base::Hash128 remembered_as = {});
// Finds or makes a stream with default settings.
Stream& ensure_stream(Turn& turn, std::string_view name);

// claims (claims.cc)
Verdict run(Turn& turn, const Claim& op, const ClaimHashes& hashes);
Verdict run(Turn& turn, const Renew& op, const ClaimHashes& hashes);
Verdict run(Turn& turn, const Settle& op, const ClaimHashes& hashes);
Verdict run(Turn& turn, const Resolve& op, const ClaimHashes& hashes);
Verdict run(Turn& turn, const Forget& op, const ClaimHashes& hashes);

// consumers (consumers.cc)
Verdict run(Turn& turn, const CreateConsumer& op);
Verdict run(Turn& turn, const DeleteConsumer& op);
Verdict run(Turn& turn, const Seek& op);
// Deliveries carry the sequence only: the owner of the disk fills in the records.
Verdict run(Turn& turn, const Receive& op);
Verdict run(Turn& turn, const Ack& op);
Verdict run(Turn& turn, const Nack& op);
Verdict run(Turn& turn, const Extend& op);
Verdict run(Turn& turn, const Redrive& op);

// positions (positions.cc)
Verdict run(Turn& turn, const Advance& op);

// registers (registers.cc)
Verdict run(Turn& turn, const Set& op, const RegisterHash& hash);
Verdict run(Turn& turn, const hapax::Get& op, const RegisterHash& hash);
Verdict run(Turn& turn, const Unset& op, const RegisterHash& hash);
Verdict run(Turn& turn, const Expire& op, const RegisterHash& hash);
Verdict run(Turn& turn, const Add& op, const RegisterHash& hash);

// transactions (commit.cc)
Verdict run(Turn& turn, const Begin& op);

inline constexpr std::string_view kAuditStream = "$audit";

// What an operation may look like, checked before anything is decided. Empty = fine.
[[nodiscard]] std::optional<Error> check(const Op& op);

// Whether a window is within its limits. Empty = fine.
[[nodiscard]] std::optional<Error> check_window(std::string_view what, Window window);

// Whether the memory budget has room for `more` bytes than are remembered. Empty = it has.
[[nodiscard]] std::optional<Error> check_budget(const State& state, const Tenant& tenant,
                                                std::uint64_t more);
// Whether the memory budget and the tenant's share of it have room for `more` bytes than are
// remembered. Empty = they have.
[[nodiscard]] std::optional<Error> check_memory(const State& state, Tenant& tenant,
                                                std::uint64_t more);
// The same for something that grows from `before` to `after` bytes. What does not grow always fits.
[[nodiscard]] std::optional<Error> check_growth(const State& state, Tenant& tenant,
                                                std::uint64_t before, std::uint64_t after);
// Whether the tenant may store `more` bytes, and so many beyond its share.
[[nodiscard]] std::optional<Error> check_storage(Tenant& tenant, std::uint64_t more,
                                                 std::uint64_t beyond = 0);
[[nodiscard]] bool may_store(const Tenant& tenant, std::uint64_t more, std::uint64_t beyond = 0);
// Before something is refused for want of room: what retention gives up anyway goes at once, of
// `own` if there is one, then of the tenant's other streams, until it is enough. If it is not,
// nothing goes: a refusal that changes nothing may be tried again under its id.
void free_storage(Turn& turn, const Tenant& tenant, const Stream* own,
                  const std::function<bool()>& enough);
// The same for `more` bytes of something that is no record.
void free_storage(Turn& turn, const Tenant& tenant, std::uint64_t more);
// Whether one that has `has` of the `used` things of which there are at most `all` may have
// another.
[[nodiscard]] bool may_have_one_more(std::uint64_t share, std::uint64_t has, std::uint64_t used,
                                     std::uint64_t all);

// "name 'x…' has 300 bytes; the most is 255" and the like.
// A field that is given and empty. "None" is the field left out: a value that was never filled in
// must not turn a guarantee off.
[[nodiscard]] Error empty_error(std::string_view field);
[[nodiscard]] Error limit_error(std::string_view what, std::uint64_t value, std::uint64_t max);
[[nodiscard]] Error no_stream(std::string_view name);
[[nodiscard]] Error no_consumer(std::string_view stream, std::string_view name);

}  // namespace hapax::core
