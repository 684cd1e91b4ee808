// What operations answer. A duplicate is a success; a refusal of the rules is a verdict, not an
// error. word_of() gives the one word used in every interface.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <hapax/ids.h>
#include <hapax/ops.h>
#include <hapax/result.h>
#include <hapax/time.h>

namespace hapax {

enum class AttemptEnding : std::uint8_t {
  kNacked,
  kLeaseRanOut,
};
// One hand-out of a record that came to nothing.
struct PastAttempt {
  std::uint32_t attempt = 0;   // counted from 1, again after each redrive
  std::uint32_t redrives = 0;  // how often the record had been redriven by then
  Time handed_out{};
  Time ended{};  // when it was nacked, or when its lease ended
  AttemptEnding ending = AttemptEnding::kNacked;
  std::string owner;
  std::string reason;  // of kNacked
  friend bool operator==(const PastAttempt&, const PastAttempt&) = default;
};

// Where a redriven record or a dead letter came from.
struct Lineage {
  std::string stream;  // of the first record
  Sequence sequence;
  std::string consumer;  // of that stream, that gave up
  std::string reason;    // of the last attempt
  std::uint32_t attempts = 0;
  Time first_handed_out{};
  Time last_handed_out{};
  std::uint32_t redrives = 0;
  // The latest attempts of all rounds, oldest first; see limits::kHistoryAttemptsMax.
  std::vector<PastAttempt> history;
  std::optional<RedriveTo> to{};  // of a redriven record: who is handed it; none: a dead letter
  friend bool operator==(const Lineage&, const Lineage&) = default;

  [[nodiscard]] bool is_dead_letter() const { return !to && !consumer.empty(); }
  // Only the consumer that gave up is handed the record.
  [[nodiscard]] bool is_for_one() const { return to == RedriveTo::kConsumer; }
};

struct Record {
  Sequence sequence;
  Time time{};
  std::string id;
  std::string group;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string payload;
  std::optional<Lineage> lineage;
  friend bool operator==(const Record&, const Record&) = default;
};

struct StoredResult {
  std::uint32_t status = 0;
  std::string headers;
  std::string body;
  friend bool operator==(const StoredResult&, const StoredResult&) = default;
};

// append
struct Appended {  // "fresh"
  Sequence sequence;
  friend bool operator==(const Appended&, const Appended&) = default;
};
struct Duplicate {  // stored before under this id or producer sequence
  Sequence sequence;
  Time first_seen{};
  Time expires_at{};  // of the message id; the end of time if no clock ends it
  // Of a producer sequence: how many further records of its producer push it out of memory. 0 = it
  // was the message id that was known.
  std::uint64_t forgotten_after = 0;
  friend bool operator==(const Duplicate&, const Duplicate&) = default;
};
struct Conflict {  // the id or key is known with other content; nothing was stored
  Fingerprint stored;
  Fingerprint received;
  Time first_seen{};
  friend bool operator==(const Conflict&, const Conflict&) = default;
};
struct Fenced {  // an older epoch or fence than the current one
  std::uint64_t current = 0;
  std::uint64_t received = 0;
  friend bool operator==(const Fenced&, const Fenced&) = default;
};
struct Gap {  // something before it never arrived
  ProducerSequence expected;
  ProducerSequence received;
  friend bool operator==(const Gap&, const Gap&) = default;
};
struct UnknownProducer {  // not known here and does not start at 0
  Epoch epoch;
  ProducerSequence received;
  friend bool operator==(const UnknownProducer&, const UnknownProducer&) = default;
};
struct Opened {  // "done": a producer's new epoch, and what its former writer got stored
  Epoch epoch;
  Epoch former;                  // the latest epoch that stored something; 0 = none did
  ProducerSequence former_next;  // under `former`, everything below it was stored and nothing else
  Sequence former_last;          // the last of these; 0 = none, or no longer known
  friend bool operator==(const Opened&, const Opened&) = default;
};
struct TooOldToKnow {  // first sent before the horizon: it may have been stored and forgotten
  Time horizon{};
  friend bool operator==(const TooOldToKnow&, const TooOldToKnow&) = default;
};
struct ExpectationFailed {  // conditional append, or advance
  Sequence actual;
  std::string actual_position;
  friend bool operator==(const ExpectationFailed&, const ExpectationFailed&) = default;
};

// claim, settle
enum class Former : std::uint8_t {
  kNone,    // this is the first attempt
  kFailed,  // every earlier owner said that it failed: nothing happened
  kLapsed,  // the lease of an earlier owner ran out: it may have done the work
};
struct Claimed {  // "fresh"
  Fence fence;
  std::uint32_t attempt = 1;  // 2 and more: see `former`
  Time lease_until{};
  Former former = Former::kNone;
  friend bool operator==(const Claimed&, const Claimed&) = default;
};
struct DuplicateClaim {                // settled as completed
  std::optional<StoredResult> result;  // none: its retention is over, the tombstone remains
  Fence fence;
  Time settled_at{};
  Time expires_at{};
  bool left_out = false;  // there is a result that is too large for Detail::kBrief
  bool hidden = false;    // there is a result that a server does not show to this caller
  friend bool operator==(const DuplicateClaim&, const DuplicateClaim&) = default;
};
struct InProgress {
  std::string owner;
  Time lease_until{};
  std::uint32_t attempt = 1;
  friend bool operator==(const InProgress&, const InProgress&) = default;
};
struct UnknownOutcome {  // held until resolved
  std::string owner;
  std::string reason;
  Time since{};
  friend bool operator==(const UnknownOutcome&, const UnknownOutcome&) = default;
};

// consumers
struct Delivery {
  Token token;
  std::uint32_t attempt = 1;
  Time lease_until{};
  Record record;
  bool gone = false;  // of a repeated answer: the record left its stream; its sequence is told
  friend bool operator==(const Delivery&, const Delivery&) = default;
};
struct Received {  // "records"
  std::vector<Delivery> deliveries;
  bool left_out = false;  // of the only record there is its sequence: too large for Detail::kBrief
  // Of an answer without records: the log time at which a lease or a delay ends, so that there may
  // be one. The end of time: only a change can bring one (Store::watch). A repeated answer does not
  // know it.
  Time next_due = Time::max();
  friend bool operator==(const Received&, const Received&) = default;
};
struct Stale {        // the receipt is not the latest one of that record
  std::string owner;  // who holds it now; empty: nobody
  bool acked = false;
  friend bool operator==(const Stale&, const Stale&) = default;
};

// the rest
struct Done {
  friend bool operator==(const Done&, const Done&) = default;
};
struct Renewed {  // "done"
  Time lease_until{};
  friend bool operator==(const Renewed&, const Renewed&) = default;
};
struct Registered {  // "done"
  Version version;
  HybridTime at;
  friend bool operator==(const Registered&, const Registered&) = default;
};
struct Superseded {  // the register has moved on
  Version version;
  HybridTime at;
  friend bool operator==(const Superseded&, const Superseded&) = default;
};
// What became of a register by set (kAlways, kAbsent, kPresent), get, unset, expire or add: an
// answer in any case, which never aborts a commit.
struct Held {                          // "done", or "unchanged" if not applied
  bool applied = false;                // get: it is there
  std::optional<std::string> value;    // if asked for: of set and unset the former one; none = none
  Version version;                     // from now on; 0 = there is none
  Time expires_at = Time::max();       // from now on, of the wall clock; the end of time = it stays
  std::optional<std::int64_t> number;  // of add only: what it holds now
  Duration expires_in{};               // how long until then, from now on; 0 if it stays
  friend bool operator==(const Held&, const Held&) = default;
};
struct Began {  // "done"
  Epoch epoch;
  Time expires_at{};
  friend bool operator==(const Began&, const Began&) = default;
};
struct Staged {
  friend bool operator==(const Staged&, const Staged&) = default;
};
struct NotApplied {  // an atomic commit in which another operation was refused
  friend bool operator==(const NotApplied&, const NotApplied&) = default;
};
struct Refused {  // the operation itself is wrong: unknown stream, limit, quota …
  Error error;
  friend bool operator==(const Refused&, const Refused&) = default;
};

using Verdict = std::variant<Appended, Duplicate, Conflict, Fenced, Gap, UnknownProducer,
                             TooOldToKnow, ExpectationFailed, Claimed, DuplicateClaim, InProgress,
                             UnknownOutcome, Received, Stale, Done, Renewed, Registered, Superseded,
                             Began, Staged, NotApplied, Refused, Opened, Held>;

[[nodiscard]] std::string_view word_of(const Verdict& verdict);

// Whether the operation's purpose holds: done now, or done before. One verdict that does not hold
// aborts an atomic commit.
[[nodiscard]] bool holds(const Verdict& verdict);

struct Answer {
  bool committed = false;         // an atomic commit: all applied; each: always true
  bool repeated = false;          // the answer of an earlier commit with the same id
  Time time{};                    // log time at which it was decided
  std::vector<Verdict> verdicts;  // one per op, in order
  friend bool operator==(const Answer&, const Answer&) = default;
};

}  // namespace hapax
