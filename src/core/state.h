// Everything the store remembers, in memory. The same facts always give the same state. Owned by
// one thread; no clock, no I/O: `now` is always a parameter.
//
// apply(state, fact, …) changes it and pushes the inverse of each change to `undo` (null on
// replay). Removing what is logically dead (expired ids, trimmed runs) is not undone: it happens in
// collect(), after the facts that killed it are durable.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <hapax/store.h>

#include "core/consumer.h"
#include "core/facts.h"
#include "core/id_entry.h"
#include "core/remembered.h"
#include "core/run_list.h"
#include "core/settled_entry.h"
#include "core/shared_map.h"
#include "core/shared_table.h"
#include "core/spans.h"
#include "core/string_map.h"
#include "core/tenants.h"
#include "core/undo.h"
#include "core/words.h"

namespace hapax::core {

struct Producer {
  struct Stored {
    Sequence at;
    Fingerprint fingerprint;  // shows that two writers share a name
    Time time{};              // when the record was accepted; it may be gone by now
  };
  struct Former {  // of the latest epoch before this one that stored something
    Epoch epoch;
    ProducerSequence next;
    Sequence last;  // 0 = no longer known
  };
  Epoch epoch;
  ProducerSequence next;            // the one expected now
  std::deque<Stored> stored;        // the latest ones; back() is next - 1
  bool retired = false;             // only a higher epoch may come back
  Time forgotten_at = Time::max();  // P6: of a retired one
  Former former;                    // kept when an epoch is opened

  [[nodiscard]] bool is_forgotten(Time now) const { return retired && forgotten_at <= now; }

  // What a new writer must know of the ones before it.
  [[nodiscard]] Former before() const {
    if (next == ProducerSequence{0}) return former;
    return {epoch, next, stored.empty() ? Sequence{0} : stored.back().at};
  }
};

struct Stream {
  StreamUid uid;
  std::string name;
  Tenant* tenant = nullptr;  // whose it is
  StreamSettings settings;
  Time created_at{};
  Time horizon_floor{};  // raised when the window changes, or after a repair
  Sequence first{1};     // oldest kept
  Sequence last{0};
  std::uint64_t bytes = 0;  // of the kept records' frames
  RunList runs;
  Spans removed;  // single records that left from between others
  // C9: kept records that are for one consumer alone, by its name: it may be made again meanwhile.
  std::map<Sequence, std::string> addressed;
  SharedMap<GroupHash, Sequence> group_last;
  bool has_groups = false;  // a record with a tracked group key was appended
  // D7: from which instant on the keys are forgotten whose last record lies below. Trims of one
  // slice of the window are forgotten together, so that these are few.
  std::map<Time, Sequence> groups_end;
  // Where collect() is among the keys; no part of the state.
  struct {
    Sequence below;  // it takes those out; 0 = it is not under way
    GroupHash next = 0;
  } groups_sweep;
  StringMap<Producer> producers;
  std::uint32_t producers_active = 0;  // not retired
  std::map<std::string, ConsumerUid, std::less<>> consumers;

  // Every id accepted since then is known.
  [[nodiscard]] Time horizon(Time now) const {
    if (settings.window.is_forever()) return horizon_floor;
    const Time by_window = now - std::chrono::seconds{settings.window.raw()};
    return std::max(horizon_floor, by_window);
  }
  // D7: the last record of a group key; 0 = none, or it is forgotten.
  [[nodiscard]] Sequence last_of_group(GroupHash group, Time now) const;
  // The keys whose last record lies below are forgotten.
  [[nodiscard]] Sequence groups_floor(Time now) const;
  // P6: none if nobody of that name is known, or it is forgotten.
  [[nodiscard]] const Producer* find_producer(std::string_view producer, Time now) const;
  // Whether the record is there to be read.
  [[nodiscard]] bool keeps(Sequence sequence) const {
    return sequence >= first && sequence <= last && !removed.contains(sequence);
  }
  // Whether a consumer that comes to the record is handed it.
  // REQUIRES: it is not below `first`.
  [[nodiscard]] bool offers(std::string_view consumer, Sequence sequence) const {
    return !removed.contains(sequence) && is_for(consumer, sequence);
  }
  // C9: a record that was redriven to one consumer is nobody else's.
  [[nodiscard]] bool is_for(std::string_view consumer, Sequence sequence) const;
  // Run that holds `sequence`; null if trimmed or not there.
  [[nodiscard]] const Run* run_of(Sequence sequence) const;
  [[nodiscard]] const Run* run_starting_at(Sequence first_of_run) const;
  [[nodiscard]] GroupHash group_of(Sequence sequence) const;
};

struct OpenClaim {
  ClaimState state = ClaimState::kProcessing;  // as facts have it; see state_at()
  OnLapse on_lapse = OnLapse::kTakeOver;
  Former former = Former::kNone;
  std::uint32_t attempts = 1;
  Words<4> words;  // scope, key, owner, reason
  Fingerprint fingerprint;
  Fence fence;
  Time since{};  // of the state
  Time lease_until{};
  Window retention = limits::kWindowDefault;
  Window tombstone = limits::kWindowDefault;

  [[nodiscard]] std::string_view scope() const { return words[0]; }
  [[nodiscard]] std::string_view key() const { return words[1]; }
  [[nodiscard]] std::string_view owner() const { return words[2]; }
  [[nodiscard]] std::string_view reason() const { return words[3]; }

  [[nodiscard]] bool lapsed_at(Time now) const {
    return state == ClaimState::kProcessing && lease_until <= now;
  }
  // K6: a guarded claim is of unknown outcome from the end of its lease on, whether a fact says so
  // yet or not.
  [[nodiscard]] bool is_guarded() const {
    return state == ClaimState::kProcessing && on_lapse == OnLapse::kUnknown;
  }
  [[nodiscard]] ClaimState state_at(Time now) const {
    return is_guarded() && lapsed_at(now) ? ClaimState::kUnknown : state;
  }

  [[nodiscard]] Time since_at(Time now) const {  // of state_at()
    return is_guarded() && lapsed_at(now) ? lease_until : since;
  }

  // When it is forgotten if nobody comes back; what is or will be of unknown outcome never is.
  [[nodiscard]] Time forgotten_at() const {
    if (state == ClaimState::kUnknown || is_guarded()) return Time::max();
    return retention.end(state == ClaimState::kProcessing ? lease_until : since);
  }
};

struct Register {
  Words<2> words;  // name, value
  Version version;
  HybridTime at;
  Time expires_at = Time::max();

  [[nodiscard]] std::string_view name() const { return words[0]; }
  [[nodiscard]] std::string_view value() const { return words[1]; }
  [[nodiscard]] bool stays() const { return expires_at == Time::max(); }
};

struct Transaction {
  Epoch epoch;
  bool open = false;
  bool committed = false;
  Time ends_at{};                   // when it times out; once it is over: when that was
  std::vector<std::string> staged;  // encoded operations, one string per commit
  std::uint64_t staged_bytes = 0;
  std::uint64_t staged_ops = 0;

  // T3: when its name is forgotten.
  [[nodiscard]] Time forgotten_at() const { return ends_at + limits::kTransactionRetention; }
  // When collect() has something to do about it.
  [[nodiscard]] Time due() const { return open ? ends_at : forgotten_at(); }
};

struct StateCounters {
  std::uint64_t fenced = 0;  // acts refused for an old epoch, fence or receipt, since the start
};

class State {
 public:
  explicit State(unsigned index_shards_log2 = 12)
      : ids(index_shards_log2),
        open_claims(index_shards_log2),
        settled(index_shards_log2),
        registers(index_shards_log2) {}

  // streams
  std::vector<std::unique_ptr<Stream>> streams;  // by uid - 1; null = deleted
  StringMap<StreamUid> stream_names;
  std::set<StreamUid> retaining;  // those whose records leave by themselves
  Remembered<IdEntry> ids;

  // claims
  SharedTable<std::shared_ptr<const OpenClaim>> open_claims;
  // By forgotten_at(). The fence is unique and grows, so that a new claim mostly goes to the end.
  std::map<std::pair<Time, Fence>, base::Hash128> open_claims_end;
  std::uint64_t claims_unknown = 0;                 // by facts; see core::claims_unknown()
  std::set<std::pair<Time, Fence>> guarded_claims;  // in progress, by the end of their leases
  Remembered<SettledEntry> settled;
  Fence next_fence{1};

  // consumers, by uid
  std::map<ConsumerUid, Consumer> consumers;
  ConsumerUid next_consumer{1};
  Token first_token{1};  // C2: of the next consumer; above every token of those that are gone

  // the rest
  SharedMap<std::string, Position> positions;
  SharedTable<std::shared_ptr<const Register>> registers;
  // Those that go, by when. A new one is the last of its instant: its version is above the floor,
  // and so it is added without a search.
  std::set<std::tuple<Time, Version, base::Hash128>> registers_end;
  Version version_floor;  // H3: of what went or may go
  HybridTime hybrid;      // never behind anything seen
  StringMap<Transaction> transactions;
  std::set<std::pair<Time, std::string>> transactions_due;  // by Transaction::due()
  std::uint64_t transactions_open = 0;
  Epoch next_epoch{1};  // of a transaction or an opened producer; never given out twice

  // Bytes in each segment that are still needed; a segment without any can be removed.
  std::map<std::uint32_t, std::uint64_t> live_bytes;
  // Result bytes by the instant they are no longer needed: end of slice → segment → bytes.
  std::map<Time, std::map<std::uint32_t, std::uint64_t>> results_end;

  // Waiting for collect(): their facts may still be rolled back.
  std::vector<std::unique_ptr<Stream>> graveyard;  // deleted streams
  std::vector<StreamUid> trimmed;                  // streams with runs below `first`
  // Where collect() will find something over, and when. Hints: what they name may have changed or
  // gone. A roll-back takes back its own: it may take the stream they name out of `streams`.
  std::set<std::pair<Time, StreamUid>> groups_due;
  std::set<std::tuple<Time, StreamUid, std::string>> producers_due;

  std::uint64_t memory_max = std::uint64_t{4} << 30;  // see memory_bytes()
  std::uint64_t text_bytes = 0;    // rough memory of everything but ids and settled claims
  Tenants tenants;                 // what of it is whose
  std::uint64_t gaps = 0;          // repairs that accepted a loss
  std::uint64_t records_lost = 0;  // payloads they gave up: of records …
  std::uint64_t results_lost = 0;  // … and of settled claims and answered commits
  StateCounters counters;

  [[nodiscard]] Stream* find_stream(std::string_view name) const;
  [[nodiscard]] Stream& stream(StreamUid uid) const;
  [[nodiscard]] Consumer* find_consumer(const Stream& stream, std::string_view name);
  [[nodiscard]] const Consumer* find_consumer(const Stream& stream, std::string_view name) const;
  void grow(Tenant& tenant, std::uint64_t bytes) {
    text_bytes += bytes;
    tenant.memory += bytes;
  }
  void shrink(Tenant& tenant, std::uint64_t bytes) {
    text_bytes -= bytes;
    tenant.memory -= bytes;
  }
  [[nodiscard]] std::uint64_t memory_bytes() const {
    return ids.bytes() + settled.bytes() + open_claims.free_bytes() + registers.free_bytes() +
           text_bytes;
  }
};

// Follows a fact. `at` is where its frame lies, `now` the log time of its batch.
void apply(State& state, const Fact& fact, base::Where at, Time now, Undo* undo);

void apply_stream(State& state, const StreamMade& fact, base::Where at, Time now, Undo* undo);
void apply_stream(State& state, const StreamConfigured& fact, base::Where at, Time now, Undo* undo);
void apply_stream(State& state, const StreamGone& fact, base::Where at, Time now, Undo* undo);
void apply_stream(State& state, const RecordAppended& fact, base::Where at, Time now, Undo* undo);
void apply_stream(State& state, const IdRenewed& fact, base::Where at, Time now, Undo* undo);
void apply_stream(State& state, const RecordsTrimmed& fact, base::Where at, Time now, Undo* undo);
void apply_stream(State& state, const RunMoved& fact, base::Where at, Time now, Undo* undo);
void apply_stream(State& state, const ProducerRetired& fact, base::Where at, Time now, Undo* undo);
void apply_stream(State& state, const ProducerNoted& fact, base::Where at, Time now, Undo* undo);
void apply_stream(State& state, const ProducerRaised& fact, base::Where at, Time now, Undo* undo);
void apply_stream(State& state, const RecordRemoved& fact, base::Where at, Time now, Undo* undo);
void apply_stream(State& state, const RecordsLost& fact, base::Where at, Time now, Undo* undo);

void apply_claim(State& state, const ClaimOpened& fact, base::Where at, Time now, Undo* undo);
void apply_claim(State& state, const ClaimRenewed& fact, base::Where at, Time now, Undo* undo);
void apply_claim(State& state, const ClaimSettled& fact, base::Where at, Time now, Undo* undo);
void apply_claim(State& state, const ClaimForgotten& fact, base::Where at, Time now, Undo* undo);
void apply_claim(State& state, const CommitAnswered& fact, base::Where at, Time now, Undo* undo);
void apply_claim(State& state, const ResultMoved& fact, base::Where at, Time now, Undo* undo);
void apply_claim(State& state, const ResultLost& fact, base::Where at, Time now, Undo* undo);
void apply_claim(State& state, const ClaimLapsed& fact, base::Where at, Time now, Undo* undo);

void apply_consumer(State& state, const ConsumerMade& fact, base::Where at, Time now, Undo* undo);
void apply_consumer(State& state, const ConsumerGone& fact, base::Where at, Time now, Undo* undo);
void apply_consumer(State& state, const Sought& fact, base::Where at, Time now, Undo* undo);
void apply_consumer(State& state, const HandedOut& fact, base::Where at, Time now, Undo* undo);
void apply_consumer(State& state, const Acked& fact, base::Where at, Time now, Undo* undo);
void apply_consumer(State& state, const Returned& fact, base::Where at, Time now, Undo* undo);
void apply_consumer(State& state, const LeaseExtended& fact, base::Where at, Time now, Undo* undo);
void apply_consumer(State& state, const Blocked& fact, base::Where at, Time now, Undo* undo);

void apply_rest(State& state, const PositionMoved& fact, base::Where at, Time now, Undo* undo);
void apply_rest(State& state, const RegisterSet& fact, base::Where at, Time now, Undo* undo);
void apply_rest(State& state, const RegisterExpires& fact, base::Where at, Time now, Undo* undo);
void apply_rest(State& state, const RegisterGone& fact, base::Where at, Time now, Undo* undo);
inline void apply_rest(State&, const TimeNoted&, base::Where, Time, Undo*) {}
void apply_rest(State& state, const TransactionBegun& fact, base::Where at, Time now, Undo* undo);
void apply_rest(State& state, const TransactionStaged& fact, base::Where at, Time now, Undo* undo);
void apply_rest(State& state, const TransactionEnded& fact, base::Where at, Time now, Undo* undo);
void apply_rest(State& state, const JournalGap& fact, base::Where at, Time now, Undo* undo);

// Bytes of a segment became needed, or are no longer.
void add_live(State& state, std::uint32_t segment, std::uint64_t bytes);
void drop_live(State& state, std::uint32_t segment, std::uint64_t bytes);

// What a bounded piece of tidying did not get to.
struct Leftover {
  bool claims = false;   // open claims, results, registers, group keys and producers that are over
  bool entries = false;  // expired ids and settled claims
};
// Removes what died by the passing of log time or by facts. Only when nothing can be rolled back.
Leftover collect(State& state, Time now, std::size_t work_max);
// Takes expired ids and settled claims out. At any time. Answers whether some are left.
bool expire(State& state, Time now, std::size_t work_max);

// State::retaining follows every change of a stream's settings.
void note_retention(State& state, const Stream& stream);

// First record that retention still wants, if that is above the stream's `first`.
[[nodiscard]] std::optional<Sequence> retention_target(const State& state, const Stream& stream,
                                                       Time now);

}  // namespace hapax::core
