// The one door to a store, whatever is behind it. Thread-safe. commit() answers only when what it
// says is durable; reads see committed, durable state only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <hapax/ops.h>
#include <hapax/result.h>
#include <hapax/verdicts.h>

namespace hapax {

struct ReadRange {
  std::string_view stream{};
  Sequence from{1};
  std::uint32_t max = 100;
  std::uint64_t bytes_max = std::uint64_t{4} << 20;  // at least one record is returned
};
struct Records {
  std::vector<Record> records;
  Sequence first;  // oldest kept; records below it were trimmed
  Sequence last;   // newest
  // Which stream of that name it is: one that is deleted and made again gets another number.
  std::uint64_t stream_uid = 0;
};

struct IdStatus {  // of a message id that is remembered
  Sequence sequence;
  Fingerprint fingerprint;
  Time first_seen{};
  Time expires_at{};
};

enum class ClaimState : std::uint8_t { kProcessing, kCompleted, kFailed, kUnknown };
struct ClaimStatus {
  ClaimState state = ClaimState::kProcessing;
  Fence fence;
  std::uint32_t attempts = 0;
  Fingerprint fingerprint;
  std::string owner;                   // of kCompleted while the result is kept; not of kFailed
  std::string reason;                  // of kFailed and kUnknown
  Time since{};                        // of the state
  Time until{};                        // lease end, or when it is forgotten
  std::optional<StoredResult> result;  // of kCompleted, while kept
};

struct RegisterValue {
  std::string value;
  Version version;
  HybridTime at;
  Time expires_at = Time::max();  // the end of time: it stays
};
// Registers that there are, a piece at a time.
struct RegisterScan {
  std::uint64_t cursor = 0;   // 0 = from the beginning; then RegisterPage::next
  std::uint32_t max = 100;    // how many to look at; some of them may not be told
  std::string_view prefix{};  // with one, further ones are looked at until some are told
};
struct RegisterPage {
  std::vector<std::string> names;  // in no particular order
  std::uint64_t next = 0;          // 0 = that was all
};
struct Position {
  std::string value;
  Epoch epoch;
};

struct ProducerStatus {  // what a producer that restarts needs to know
  Epoch epoch;
  ProducerSequence next;
  bool retired = false;
};

struct ConsumerStats {
  std::string consumer;
  Sequence floor;  // everything up to here is acked
  Sequence next;   // first never handed out
  std::uint64_t in_flight = 0;
  std::uint64_t waiting = 0;  // delayed, or behind a busy group
  std::uint64_t dead_lettered = 0;
};

// Records that a consumer is not done with, a piece at a time.
enum class UnackedState : std::uint8_t {
  kNew,       // never handed out
  kParked,    // behind an older record of its group
  kInFlight,  // handed out, until `until`; its holder may still ack it later
  kWaiting,   // nacked, or next in its group: not handed out before `until`
  kBlocked,   // the last attempt failed, and the consumer keeps it (LastAttempt::kBlock)
};
struct UnackedRecord {
  Sequence sequence;
  UnackedState state = UnackedState::kNew;
  std::uint32_t attempts = 0;  // times that it was handed out
  Time since{};                // of kInFlight and of a nacked record: since when it is so
  Time until{};                // of kInFlight and kWaiting
  Sequence behind{};           // of kParked
  std::string owner{};         // of kInFlight
  std::string reason{};        // of the latest nack
};
struct UnackedScan {
  std::string_view stream{};
  std::string_view consumer{};  // one that does not exist was handed nothing
  Sequence from{1};
  std::uint32_t max = 100;
};
struct UnackedPage {
  std::vector<UnackedRecord> records;  // in the order of the stream
  Sequence next{};  // where to go on, also behind an empty page; 0 = that was all
};

struct StreamStats {
  std::string stream;
  StreamSettings settings;
  Sequence first;
  Sequence last;
  std::uint64_t bytes = 0;
  std::uint64_t ids = 0;
  std::uint64_t producers = 0;
  Time created_at{};
  Time horizon{};  // every id accepted since then is known
  std::vector<ConsumerStats> consumers;
};

// Streams that there are, with their figures, a piece at a time: one question to the store for
// each.
struct StreamScan {
  std::uint64_t cursor = 0;  // 0 = from the beginning; then StreamPage::next
  std::uint32_t max = 1'000;
};
struct StreamPage {
  std::vector<StreamStats> streams;  // in the order in which they were made
  std::uint64_t next = 0;            // 0 = that was all
};

// What somebody waits for. The views are needed only during the call.
struct StreamWatch {
  std::string_view stream{};
  // Empty: only what changes the records of the stream counts. Otherwise also what lets this
  // consumer have one: a nack, the ack of a group's oldest record, a free place, a seek.
  std::string_view consumer{};
};
struct ClaimWatch {  // until the claim is settled, resolved, released or forgotten
  std::string_view scope{};
  std::string_view key{};
};
using Watch = std::variant<StreamWatch, ClaimWatch>;

struct Statistics {
  std::uint64_t streams = 0;
  std::uint64_t ids = 0;
  std::uint64_t claims_open = 0;
  std::uint64_t claims_unknown = 0;
  std::uint64_t claims_settled = 0;
  std::uint64_t registers = 0;           // those that just expired included
  std::uint64_t registers_expiring = 0;  // of these, those that go by themselves
  std::uint64_t positions = 0;
  std::uint64_t transactions_open = 0;
  std::uint64_t fenced = 0;         // acts refused for an old epoch, fence or receipt
  std::uint64_t gaps = 0;           // repairs that accepted a loss (hapax repair --accept-loss)
  std::uint64_t records_lost = 0;   // payloads they gave up: of records …
  std::uint64_t results_lost = 0;   // … and of settled claims and answered commits
  std::uint64_t memory_bytes = 0;   // of remembered state, as accounted against the budget
  std::uint64_t journal_bytes = 0;  // of all segments on disk, reserved space included
  std::uint64_t segments = 0;       // on disk
  std::uint64_t commits = 0;
  std::uint64_t batches = 0;
  std::uint64_t snapshots = 0;
  Time log_time{};
  bool writes_refused = false;      // the disk is full
  bool clock_jump_pending = false;  // see EmbeddedOptions::clock_jump_max
  Duration clock_lag{};             // of log time behind the wall clock; negative: it is ahead
  bool damaged = false;             // damage was found; everything else is refused (HX1021)
};

// The tenants of a server share a store, and the server keeps their names apart: no tenant can name
// what is another's. Who opens a store without a server is the tenant whose name is empty.
struct TenantShare {  // what one may take, and what holds where it says nothing; 0 = no limit
  // As much as is still free: one that is alone takes half, and together they never take all.
  static constexpr std::uint64_t kWhatIsFree = ~std::uint64_t{0};

  std::uint64_t storage_max = 0;  // bytes of records, results and registers
  std::uint64_t total_max = 0;    // of these and of what is remembered, together
  std::uint64_t memory_max = 0;   // of remembered state; may be kWhatIsFree, as those below
  std::uint64_t streams_max = 0;
  std::uint64_t transactions_max = 0;  // that are open
  Duration ttl_max{0};                 // of registers: they go by themselves, and no later
  Duration ttl_default{0};             // of registers whose writer does not say; 0 = they stay
  std::string outbox{};                // name of a stream, and the attempts of consumers that …
  std::uint32_t outbox_attempts_max = 0;  // … a receive makes there; 0 = as of any other
  friend bool operator==(const TenantShare&, const TenantShare&) = default;
};
// Asked with the name of a tenant as the server's credentials have it; empty: the one without.
using ShareOf = std::function<TenantShare(std::string_view tenant)>;

struct TenantUse {
  std::string tenant;
  std::uint64_t storage_bytes = 0;  // results count from the start of the process on
  std::uint64_t memory_bytes = 0;   // so do settled claims and commit ids
  std::uint64_t total_bytes = 0;    // both; registers, which are in both, once
  std::uint64_t streams = 0;
  std::uint64_t registers = 0;  // those that just expired included
  std::uint64_t transactions_open = 0;
  std::uint64_t refused = 0;  // because of its share
  TenantShare share;          // kWhatIsFree as a number, as things are
};

class Store {
 public:
  using Done = std::function<void(Result<Answer>)>;

  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  virtual ~Store() = default;

  // Drawn when the store was made, and told by no other one: 32 hexadecimal digits. Empty: a store
  // behind a door, which does not say.
  [[nodiscard]] virtual std::string id() { return {}; }

  // An Error means: certainly nothing happened, except kOutcomeUnknown.
  [[nodiscard]] virtual Result<Answer> commit(const Commit& commit) = 0;
  // As commit(), answered by `done`: on a thread of the store, on that of a caller who leads it, or
  // at once on one's own if no state could accept the commit. It must not block, but it may submit.
  // Answers may overtake each other. All that the commit's views refer to must live until then.
  // It never waits: while too much is waiting already, the answer is kUnavailable, at once.
  virtual void submit(const Commit& commit, Done done) = 0;
  // As submit(), but the calling thread may do the work itself, the wait for the disk included, if
  // nobody else does it and the disk is quick; `done` then runs inside of this call. Use this when
  // the calling thread would only wait until `done` runs.
  virtual void submit_here(const Commit& commit, Done done) { submit(commit, std::move(done)); }

  [[nodiscard]] virtual Result<Records> read(const ReadRange& range) = 0;
  // Where ids are unique per group (IdScope::kGroup), name the group. Without one only records
  // without a group are looked at; if none of them has the id, the question is refused
  // (kInvalidArgument): "not there" would be said of groups that nobody looked at.
  [[nodiscard]] virtual Result<std::optional<IdStatus>> find_id(
      std::string_view stream, std::string_view id, std::optional<std::string_view> group) = 0;
  [[nodiscard]] virtual Result<std::optional<ClaimStatus>> find_claim(std::string_view scope,
                                                                      std::string_view key) = 0;
  [[nodiscard]] virtual Result<std::optional<RegisterValue>> find_register(
      std::string_view name) = 0;
  // Going from 0 to 0 tells every register that was there all the while at least once, as long as
  // the store stays open. One that comes or goes meanwhile may be told or not.
  [[nodiscard]] virtual Result<RegisterPage> scan_registers(const RegisterScan& scan) = 0;
  [[nodiscard]] virtual Result<std::optional<Position>> find_position(std::string_view source) = 0;
  [[nodiscard]] virtual Result<std::optional<ProducerStatus>> find_producer(
      std::string_view stream, std::string_view producer) = 0;
  [[nodiscard]] virtual Result<StreamStats> describe(std::string_view stream) = 0;
  // A page costs no more than a receive, however many records there are. kPreconditionFailed: this
  // kind of store does not tell.
  [[nodiscard]] virtual Result<UnackedPage> scan_unacked(const UnackedScan& scan);
  [[nodiscard]] virtual Result<std::vector<std::string>> streams() = 0;
  // One that is there all the while is told once. Without an answer of its own, a store tells all
  // streams at once.
  [[nodiscard]] virtual Result<StreamPage> scan_streams(const StreamScan& scan);
  [[nodiscard]] virtual Result<Statistics> statistics() = 0;

  using Changed = std::function<void()>;
  // Calls `changed` once, after the next fact that may give something to somebody who waits for
  // this. It means "look again": who looks may find nothing. Whoever watches first and looks then
  // misses nothing. Facts of other processes of a shared store count, too. What time alone brings
  // is not told: Received::next_due and Claim's lease say when to look. `changed` runs on a thread
  // of the store or of a caller that leads it, and must not block.
  [[nodiscard]] virtual std::uint64_t watch(const Watch& /*watch*/, Changed /*changed*/) {
    return 0;
  }
  // A call of `changed` that has begun may still be running.
  virtual void unwatch(std::uint64_t /*number*/) {}

  // What tenants may take from now on; asked once for each, on a thread of the store. Without it
  // nobody has a limit of its own. What is beyond a new share stays.
  virtual void set_shares(ShareOf /*share_of*/) {}  // NOLINT: who overrides it keeps it
  // Those that have been here since the start or have something stored.
  [[nodiscard]] virtual Result<std::vector<TenantUse>> tenants() {
    return std::vector<TenantUse>{};
  }
};

inline Result<UnackedPage> Store::scan_unacked(const UnackedScan& /*scan*/) {
  return Error{Errc::kPreconditionFailed, "this store does not tell what is not acked"};
}

inline Result<StreamPage> Store::scan_streams(const StreamScan& /*scan*/) {
  HAPAX_TRY(const std::vector<std::string> names, streams());
  StreamPage page;
  for (const std::string& name : names) {
    Result<StreamStats> stats = describe(name);
    if (!stats) continue;  // It was deleted meanwhile.
    page.streams.push_back(*std::move(stats));
  }
  return page;
}

}  // namespace hapax
