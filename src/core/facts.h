// What became true. The journal is a list of facts; the state is what they add up to. A decision
// produces facts, `apply` follows them and cannot refuse, so a later version of the rules never
// reinterprets history. Text and bytes are views into the operation or the journal's payload.
// docs/internals/facts.md gives the bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include <hapax/ops.h>
#include <hapax/result.h>
#include <hapax/verdicts.h>

#include "base/hash128.h"
#include "base/where.h"

namespace hapax::core {

using StreamUid = Number<struct StreamUidTag>;      // never reused, unlike a stream's name
using ConsumerUid = Number<struct ConsumerUidTag>;  // never reused
using GroupHash = std::uint64_t;                    // 0 = no group key

struct StreamMade {
  StreamUid stream;
  std::string_view name;
  StreamSettings settings;
};
struct StreamConfigured {
  StreamUid stream;
  StreamSettings settings;
};
struct StreamGone {
  StreamUid stream;
};

struct RecordAppended {
  StreamUid stream;
  Sequence sequence;
  base::Hash128 id_hash;  // in its scope; zero = not remembered
  Fingerprint fingerprint;
  Window window = limits::kWindowDefault;  // of the id
  GroupHash group_hash = 0;
  std::string_view id;
  std::string_view group;
  std::string_view headers;  // encoded, see encode_headers
  std::optional<ProducerMark> producer;
  std::optional<Lineage> lineage;
  std::string_view payload;
};

// A repeat renewed the window of an id (WindowStart::kLastSeen).
struct IdRenewed {
  StreamUid stream;
  base::Hash128 id_hash;
  Window window = limits::kWindowDefault;  // counted from the first acceptance, as ever
};
struct RecordsTrimmed {
  StreamUid stream;
  Sequence before;
  // D7: since format 2; from then on the group keys are forgotten whose last record lies below.
  Time groups_end = Time::max();
};
// The records of one run were copied here so that their old segment can go.
struct RunMoved {
  StreamUid stream;
  Sequence first;
  std::uint32_t count = 0;
  std::string_view frames;  // last in the encoding: its place follows from the fact's place
};
struct ProducerRetired {
  StreamUid stream;
  std::string_view producer;
  Time forgotten_at = Time::max();  // P6: since format 2
};
// A producer's next record was already stored under its message id: only its sequence moves on.
struct ProducerNoted {
  StreamUid stream;
  ProducerMark producer;
  Sequence sequence;
  Fingerprint fingerprint;
  Time first_seen{};  // of the record
};

struct ClaimOpened {
  base::Hash128 hash;
  std::string_view scope;
  std::string_view key;
  Fingerprint fingerprint;
  std::string_view owner;
  Fence fence;
  Time lease_until{};
  std::uint32_t attempt = 1;
  Window retention = limits::kWindowDefault;
  Window tombstone = limits::kWindowDefault;
  OnLapse on_lapse = OnLapse::kTakeOver;  // since version 2
};
struct ClaimRenewed {
  base::Hash128 hash;
  Time lease_until{};
};
// For kCompleted the fact itself is where owner and result are read from.
struct ClaimSettled {
  base::Hash128 hash;
  Fence fence;
  Outcome outcome = Outcome::kCompleted;
  std::string_view reason;
  ResultView result;
  std::string_view owner;  // since version 2; of kCompleted
};
// Released, resolved as never applied, or removed by hand.
struct ClaimForgotten {
  base::Hash128 hash;
  Fence fence;
};
// The answer of a commit that had an id. It is remembered like a settled claim.
struct CommitAnswered {
  base::Hash128 hash;
  Fingerprint fingerprint;
  Fence fence;
  Window window = limits::kWindowDefault;
  std::string_view answer;  // encoded, see encode_answer in commit.h
};
// A ClaimSettled or CommitAnswered was copied here so that its old segment can go.
struct ResultMoved {
  base::Hash128 hash;
  std::string_view frame;  // last in the encoding
};

struct ConsumerMade {
  StreamUid stream;
  ConsumerUid consumer;
  std::string_view name;
  ConsumerSettings settings;
};
struct ConsumerGone {
  ConsumerUid consumer;
};
struct Sought {
  ConsumerUid consumer;
  Sequence to;
};
// Records between the consumer's old `next` and the new one that are not handed out wait behind
// their group.
struct HandedOut {
  ConsumerUid consumer;
  std::string_view owner;
  Time lease_until{};
  Token first_token;  // the i-th sequence has first_token + i
  Sequence next;
  std::string_view sequences;  // encoded, see encode_sequences
};
struct Acked {
  ConsumerUid consumer;
  Sequence sequence;
  bool gave_up = false;  // it went to the dead letters instead
};
struct Returned {
  ConsumerUid consumer;
  Sequence sequence;
  Time ready_at{};
  std::string_view reason;
};
struct LeaseExtended {
  ConsumerUid consumer;
  Sequence sequence;
  Time lease_until{};
};
struct Blocked {  // the last attempt failed and the consumer's policy is to wait for a person
  ConsumerUid consumer;
  Sequence sequence;
};

struct PositionMoved {
  std::string_view source;
  std::string_view value;
  Epoch epoch;
};
struct RegisterSet {
  base::Hash128 hash;
  std::string_view name;
  std::string_view value;
  Version version;
  HybridTime at;
  Time expires_at = Time::max();
};
struct TransactionBegun {
  std::string_view name;
  Epoch epoch;
  Time expires_at{};
};
struct TransactionStaged {
  std::string_view name;
  std::string_view ops;  // encoded, see encode_staged in commit.h
};
struct TransactionEnded {
  std::string_view name;
  bool committed = false;
};
// Written by a repair: facts of this range are lost. Every horizon moves to now.
struct JournalGap {
  std::uint64_t first_lsn = 0;
  std::uint64_t last_lsn = 0;
};
// A record left from between others: a dead letter that was redriven. At the front it is a trim.
struct RecordRemoved {
  StreamUid stream;
  Sequence sequence;
};
// The producer's writer is another one from now on: nothing is stored under the epoch yet.
struct ProducerRaised {
  StreamUid stream;
  std::string_view producer;
  Epoch epoch;
};
// Records whose payloads a repair gave up. Their ids stay remembered.
struct RecordsLost {
  StreamUid stream;
  std::string_view sequences;  // encode_sequences()
};
// The same for the stored result of a claim, or the stored answer of a commit: that it happened
// stays known.
struct ResultLost {
  base::Hash128 hash;
};

struct RegisterExpires {
  base::Hash128 hash;
  Time expires_at = Time::max();
};
struct RegisterGone {  // removed; one that expires goes without a fact
  base::Hash128 hash;
};
// W5: nothing happened, and log time is durable up to that of the batch.
struct TimeNoted {};

// The lease of an open claim ran out, and its outcome is unknown since then.
struct ClaimLapsed {
  base::Hash128 hash;
};

using Fact =
    std::variant<StreamMade, StreamConfigured, StreamGone, RecordAppended, IdRenewed,
                 RecordsTrimmed, RunMoved, ProducerRetired, ClaimOpened, ClaimRenewed, ClaimSettled,
                 ClaimForgotten, CommitAnswered, ResultMoved, ConsumerMade, ConsumerGone, Sought,
                 HandedOut, Acked, Returned, LeaseExtended, Blocked, PositionMoved, RegisterSet,
                 TransactionBegun, TransactionStaged, TransactionEnded, JournalGap, ProducerNoted,
                 RecordRemoved, ProducerRaised, RecordsLost, ResultLost, RegisterExpires,
                 RegisterGone, TimeNoted, ClaimLapsed>;

// A fact's kind on disk is its place in the variant plus one: the order above never changes. A
// changed fact is a new kind at the end of the variant; the old kind stays and means what it meant.
// Only a field at the very end of a fact can be added to its kind: FieldReader::of_fact().
// Every encoded fact is followed by the CRC32C that the engine adds, so that one fact can be read
// and trusted alone.
inline constexpr std::size_t kFactTrailer = 4;

void encode(const Fact& fact, std::string& out);
[[nodiscard]] Result<Fact> decode_fact(std::string_view bytes);

void encode_headers(std::span<const Header> headers, std::string& out);
[[nodiscard]] Result<std::vector<std::pair<std::string, std::string>>> decode_headers(
    std::string_view bytes);

}  // namespace hapax::core
