// The operations of a commit. All text and bytes are views: they must stay alive until the commit
// is answered. What each operation answers is in verdicts.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

#include <hapax/ids.h>
#include <hapax/limits.h>
#include <hapax/time.h>

namespace hapax {

// --- streams ---------------------------------------------------------------------------------

enum class IdScope : std::uint8_t { kStream, kGroup };  // where a message id must be unique
enum class WindowStart : std::uint8_t {
  kFirstSeen,
  kLastSeen
};  // kLastSeen: a repeat renews the window, for up to an eighth longer than the window is

// Records leave when any of these says so; all off = kept until trimmed.
struct Retention {
  std::optional<Duration> age{};
  std::optional<std::uint64_t> bytes{};
  std::optional<std::uint64_t> count{};
  bool acked_by_all = false;  // as soon as every consumer of the stream has acked it
  friend bool operator==(const Retention&, const Retention&) = default;
};

struct StreamSettings {
  Window window = limits::kWindowDefault;
  WindowStart window_start = WindowStart::kFirstSeen;
  IdScope id_scope = IdScope::kStream;
  bool content_ids = false;  // SHA-256 of the payload is the id of a record that has none
  bool track_groups = true;  // remember the last sequence of each group key (conditional append)
  Retention retention{};
  std::uint64_t record_bytes_max = std::uint64_t{1} << 20;
  std::uint64_t quota_bytes = 0;  // of stored records, 0 = none; a full quota refuses appends
  std::uint32_t producer_memory = limits::kProducerMemoryDefault;
  std::uint32_t producers_max = 10'000;  // when full, a new producer is refused; see RetireProducer
  friend bool operator==(const StreamSettings&, const StreamSettings&) = default;
};

// Repeating it with the same settings is fine; with others it is refused (use ConfigureStream).
struct CreateStream {
  std::string_view stream{};
  StreamSettings settings{};
};
struct ConfigureStream {
  std::string_view stream{};
  StreamSettings settings{};
};
// Removes the stream, its records and consumers. A stream of that name made later is another one.
struct DeleteStream {
  std::string_view stream{};
};
// Removes the records below `before`. Their message ids stay remembered.
struct Trim {
  std::string_view stream{};
  Sequence before{};
};

struct Header {
  std::string_view name{};
  std::string_view value{};
};

struct ProducerMark {
  std::string_view name{};
  Epoch epoch{};
  ProducerSequence sequence{};
};

struct ExpectLast {
  enum class Of : std::uint8_t { kStream, kGroup };
  Of of = Of::kStream;
  Sequence last{};  // 0 = must be empty
};

struct Append {
  std::string_view stream{};
  std::string_view payload{};
  // Message id. None: nothing recognises a repetition. An empty one is refused, so that a value
  // that was never filled in cannot turn the guarantee off.
  std::optional<std::string_view> id{};
  // Group key: order and "one in flight" are kept per group. An empty one is refused.
  std::optional<std::string_view> group{};
  std::span<const Header> headers{};
  std::optional<ProducerMark> producer{};
  std::optional<ExpectLast> expect{};
  std::optional<Time>
      first_sent{};  // when the caller first tried; older than the horizon is refused
};

// Makes the caller the only writer under this name: answers an epoch above every one used before,
// and whoever writes with an older one is fenced from then on.
struct OpenProducer {
  std::string_view stream;
  std::string_view producer;
};

// Frees the place of a producer that will not come back. It must return with a higher epoch.
struct RetireProducer {
  std::string_view stream{};
  std::string_view producer{};
  std::string_view actor{};
  std::string_view reason{};
};

// --- claims ----------------------------------------------------------------------------------

// What a claim comes to when its lease runs out before its owner settled it: the owner may have
// done the work.
enum class OnLapse : std::uint8_t {
  kTakeOver,  // the next claim gets the key; Claimed::former tells it
  kUnknown,   // the outcome is unknown: held until resolved, or settled by that owner after all
};
struct Claim {
  std::string_view scope{};
  std::string_view key{};
  std::string_view content{};  // fingerprinted: the same key with other content is a conflict
  std::string_view owner{};
  Duration lease = limits::kLeaseDefault;
  Window retention = limits::kWindowDefault;  // of the result, from the settle on
  Window tombstone = limits::kWindowDefault;  // of "it happened"; at least `retention`
  // Kept with the claim that it opens. It also judges the owner before: if either of the two says
  // kUnknown, a lapse between them is an unknown outcome.
  OnLapse on_lapse = OnLapse::kTakeOver;
};
struct Renew {
  std::string_view scope{};
  std::string_view key{};
  Fence fence{};
  Duration lease = limits::kLeaseDefault;
};

// What a duplicate is answered with, byte for byte.
struct ResultView {
  std::uint32_t status = 0;
  std::string_view headers{};
  std::string_view body{};
};

enum class Outcome : std::uint8_t {
  kCompleted,  // duplicates get the result
  kFailed,     // nothing happened; the key may be claimed again
  kUnknown,    // it may have happened; held until resolved
  kReleased,   // as if never claimed
};
struct Settle {
  std::string_view scope{};
  std::string_view key{};
  Fence fence{};
  Outcome outcome = Outcome::kCompleted;
  ResultView result{};        // of kCompleted
  std::string_view reason{};  // of kFailed and kUnknown
};

enum class Resolution : std::uint8_t { kCompleted, kNotApplied, kRelease };
// Decides an unknown outcome by hand; audited.
struct Resolve {
  std::string_view scope{};
  std::string_view key{};
  Resolution resolution = Resolution::kCompleted;
  ResultView result{};  // of kCompleted
  std::string_view actor{};
  std::string_view reason{};
};
// Removes a key whatever its state; audited. A worker that still holds it is fenced.
struct Forget {
  std::string_view scope{};
  std::string_view key{};
  std::string_view actor{};
  std::string_view reason{};
};

// --- consumers -------------------------------------------------------------------------------

enum class LastAttempt : std::uint8_t { kDeadLetter, kBlock };

struct ConsumerSettings {
  std::uint32_t attempts_max = 10;
  LastAttempt last_attempt = LastAttempt::kDeadLetter;
  std::string_view dead_letters{};  // stream; empty = "<stream>.dead", made on first use
  Sequence start{1};                // first record the consumer is interested in
  std::uint32_t in_flight_max = 10'000;
};
struct CreateConsumer {
  std::string_view stream{};
  std::string_view consumer{};
  ConsumerSettings settings{};
};
struct DeleteConsumer {
  std::string_view stream{};
  std::string_view consumer{};
};
// Goes on from `to`: what is below counts as acked, what is at or above is handed out (again).
struct Seek {
  std::string_view stream{};
  std::string_view consumer{};
  Sequence to{};
};

// A consumer that does not exist yet is made with the default settings.
struct Receive {
  std::string_view stream{};
  std::string_view consumer{};
  std::uint32_t max = 1;
  Duration lease = limits::kLeaseDefault;
  std::string_view owner{};
};
struct Receipt {
  Sequence sequence{};
  Token token{};
};
struct Ack {
  std::string_view stream{};
  std::string_view consumer{};
  Receipt receipt{};
};
struct Nack {
  std::string_view stream{};
  std::string_view consumer{};
  Receipt receipt{};
  Duration delay{0};
  std::string_view reason{};
  bool last = false;  // no attempt follows, however many are left: see ConsumerSettings
};
struct Extend {
  std::string_view stream{};
  std::string_view consumer{};
  Receipt receipt{};
  Duration lease = limits::kLeaseDefault;
};
// Who is handed a redriven record.
enum class RedriveTo : std::uint8_t {
  kConsumer,  // the one that gave it up; every other one counts it as acked
  kAll,       // every consumer of the stream
};
// Puts a dead letter back to the stream it came from, with its lineage; dedup of its message id
// does not swallow it. The dead letter itself is removed in the same commit. A second dead letter
// of the same failure (a seek let the consumer give the record up twice) is a duplicate: it is
// removed and nothing is appended.
struct Redrive {
  std::string_view dead_letters{};  // or the stream of the record, if it is no dead letter
  Sequence sequence{};
  RedriveTo to = RedriveTo::kConsumer;
  // Of a record that is no dead letter: the consumer of its stream that is done with it and is to
  // be handed it again, alone. The record stays, and its copy is the last one of the stream.
  std::string_view again_for{};
  // Of such a record, never empty then: the same record under the same name is a duplicate, and
  // nothing is appended.
  std::string_view replay{};
};

// --- positions, registers, transactions ------------------------------------------------------

// Position of an outside source. An owner with an older epoch is fenced; `expected` empty = none
// yet.
struct Advance {
  std::string_view source{};
  std::string_view expected{};
  std::string_view to{};
  Epoch epoch{};
};

// When a register goes by itself: from that instant of log time on it is as if it were not there.
struct Expiry {
  enum class Kind : std::uint8_t {
    kNever,
    kKeep,   // as it was
    kAt,     // when the wall clock shows `at`
    kAfter,  // `after` the log time of the commit
  };
  Kind kind = Kind::kNever;
  Time at{};
  Duration after{};
  friend bool operator==(const Expiry&, const Expiry&) = default;
};

enum class SetMode : std::uint8_t {
  kVersion,     // only if it has the version `expected`
  kLastWriter,  // the highest hybrid time wins
  kAlways,
  kAbsent,   // only if there is none
  kPresent,  // only if there is one
};
// kVersion and kLastWriter answer Registered or Superseded; the others answer Held, which never
// aborts a commit.
struct Set {
  std::string_view name{};
  std::string_view value{};
  SetMode mode = SetMode::kVersion;
  Version expected{};              // of kVersion: the version it must have; 0 = not set yet
  std::optional<HybridTime> at{};  // of kLastWriter: the writer's time; none = the store's clock
  Expiry expiry{};                 // one that is over already: the register is removed
  bool tell_value = false;         // answer with the value there was
};
struct Get {
  std::string_view name{};
  bool tell_value = true;  // false: only whether it is there, its version and when it goes
};
struct Unset {
  std::string_view name{};
  bool tell_value = false;  // answer with the value there was
};

// By what it would replace. A register that never goes counts as one that goes at the end of time.
enum class ExpireIf : std::uint8_t { kAlways, kNever, kSome, kLater, kEarlier, kSomeEarlier };
// Changes when a register goes. Applied only if there is one; Expiry::kNever only if it would go.
struct Expire {
  std::string_view name{};
  Expiry expiry{};  // one that is over already: the register is removed
  ExpireIf only_if = ExpireIf::kAlways;
};
// Adds to a register that holds a whole number in decimal; one that is not there counts as 0. Its
// expiry stays.
struct Add {
  std::string_view name{};
  std::int64_t by = 1;
};

// Opens a transaction under a stable name; an older one of that name is aborted and fenced.
struct Begin {
  std::string_view transaction{};
  Duration timeout = limits::kTransactionTimeoutDefault;
};
enum class Finish : std::uint8_t { kCommit, kAbort };
// Alone in its commit. Answers with its own verdict and then those of all staged operations.
struct End {
  std::string_view transaction{};
  Epoch epoch{};
  Finish finish = Finish::kCommit;
};

using Op = std::variant<Append, Claim, Renew, Settle, Receive, Ack, Nack, Extend, Advance, Set,
                        CreateStream, ConfigureStream, DeleteStream, Trim, RetireProducer, Resolve,
                        Forget, CreateConsumer, DeleteConsumer, Seek, Redrive, Begin, End,
                        OpenProducer, Get, Unset, Expire, Add>;

// --- the commit ------------------------------------------------------------------------------

enum class Mode : std::uint8_t {
  kAtomic,  // all or nothing: one refusal and nothing happens
  kEach,    // every operation on its own
};

struct TransactionRef {
  std::string_view name{};
  Epoch epoch{};
};

// How much an answer brings along. Whoever asks does not know how large results and records are.
enum class Detail : std::uint8_t {
  kFull,  // as far as there is room: limits::kAnswerBytesMax
  // Results to limits::kBriefResultBytesMax; find_claim() has a larger one. A receive hands out
  // records to limits::kBriefReceiveBytesMax, or a single larger one, which read() has.
  kBrief,
};

struct Commit {
  std::span<const Op> ops{};
  Mode mode = Mode::kAtomic;
  std::optional<std::string_view> id{};  // repeating it returns the first answer; never empty
  Window id_window = limits::kWindowDefault;
  std::optional<TransactionRef> transaction{};  // stage the ops there instead of applying them
  Detail detail = Detail::kFull;
  // So many appends at the end only note the other operations: a repetition of the id may word them
  // otherwise, and is still the same commit.
  std::size_t notes = 0;
  // Mode::kEach without a transaction: the places of the operations that they note, one each,
  // ascending. A noted operation holds with its note or not at all: if the note is refused, so is
  // the operation, for the same reason; if the operation does not hold by itself, the note is
  // NotApplied. Empty: the notes stand on their own.
  std::span<const std::size_t> noted{};
};

}  // namespace hapax
