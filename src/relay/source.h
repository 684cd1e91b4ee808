// Where outgoing records come from: an outbox, divided into lanes by key. A relay leases lanes,
// takes the next records of each, and settles them. One thread at a time, wake() excepted.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <hapax/result.h>
#include <hapax/time.h>

#include "relay/outgoing.h"

namespace hapax::relay {

struct Lease {
  std::uint32_t lane = 0;
  std::int64_t fence = 0;  // grows whenever the lane is taken
  friend bool operator==(const Lease&, const Lease&) = default;
};

struct Leases {
  std::vector<Lease> held;
  Duration left{0};         // until they end, by the source's own clock when it answered
  std::uint32_t share = 0;  // how many lanes this relay should hold, the others considered
};

struct SendOutcome {
  enum class Kind : std::uint8_t {
    kNotSent,   // nothing is known about it; no attempt was made
    kAccepted,  // the sink has it
    kRetry,     // refused: again after `after`, and later records of its key wait behind it
    kDead,      // refused for good: a dead letter with `reason`
    kHeld,      // no attempt counts, and later records of its key wait: not before `after`
  };
  Kind kind = Kind::kNotSent;
  Duration after{0};
  std::string reason{};
};

struct OutgoingBatch {
  std::uint32_t lane = 0;
  std::vector<Outgoing> records;  // to be sent in this order
};

// What is wanted of a lane: settle its former batch, take the next one, or both.
struct LaneTurn {
  Lease lease;
  std::vector<SendOutcome> outcomes;  // one per record of the former batch; empty = there is none
  std::uint32_t take = 0;             // at most so many
  bool alone = false;                 // one record, and no other turn of the relay takes anything
};

// A lane whose next record may be what ended the relays that sent it (pieces.h).
struct SuspectLane {
  std::uint32_t lane = 0;
  std::uint32_t attempts = 0;  // how often it was taken
};

// What next() answers for the lanes of its turns.
struct TakenBatches {
  std::vector<OutgoingBatch> batches;   // of those with records
  std::vector<std::uint32_t> lost;      // somebody else holds them now: nothing was settled
  bool more = false;                    // there may be more at once, although nothing was taken
  std::vector<SuspectLane> suspects{};  // nothing was taken of these: their turns were not alone
};

struct LaneReport {
  std::uint32_t lane = 0;
  std::string owner;  // empty = nobody
  Duration lease_left{0};
  std::uint64_t waiting = 0;  // not sent yet, as far as they were counted
  bool more_waiting = false;  // the count ended before they did
  std::optional<Duration> oldest_waiting{};
  std::uint32_t attempts = 0;  // how often what comes next was taken and not settled
  std::uint64_t retries = 0;   // records that wait for another attempt, or behind one
  std::uint64_t blocked_keys = 0;
  std::uint64_t sent = 0;  // accepted, since the lane exists
};

struct OutboxReport {
  std::vector<LaneReport> lanes;
  std::uint64_t dead_letters = 0;
  std::uint64_t outbox_bytes = 0;
  std::uint64_t dead_rows = 0;  // that the database has not cleaned up yet, in all of our tables
  std::optional<Duration> oldest_transaction{};  // of this database
  std::string oldest_transaction_of;             // who
  bool sees_transactions = true;                 // of others, or the oldest may be hidden
};

struct DeadLetter {
  std::string id;
  std::string type;
  std::string key;
  std::uint32_t attempts = 0;
  std::string reason;
  Duration dead_for{0};
};

// What became of an event, as the view outbox_trace says it; times are milliseconds since 1970.
struct TracedEvent {
  std::int64_t number = 0;
  std::optional<std::uint32_t> lane{};
  std::string type;
  std::string key;
  std::string state;
  std::uint32_t attempts = 0;
  std::string last_error;
  std::string relay;  // that holds its lane
  std::int64_t created_ms = 0;
  std::optional<std::int64_t> next_ms{};  // of its next attempt
  std::optional<std::int64_t> died_ms{};
};

struct Redriven {
  struct Refused {
    std::string id;
    std::string reason;
  };
  std::uint64_t count = 0;         // so many were published
  std::vector<Refused> refused{};  // these may not be, as they are, and stay
};

class Source {
 public:
  Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual ~Source() = default;

  // Renews `kept`, as far as nobody else took them, and takes free lanes up to this relay's share.
  // What this relay held and does not name is taken anew, under a higher fence.
  [[nodiscard]] virtual Result<Leases> lease(std::span<const Lease> kept, Duration span) = 0;
  // All turns in one round trip. A batch counts as taken from then on, whatever becomes of it
  // (pieces.h says what follows from that).
  // An error: it may have happened or not, so all lanes must be leased anew.
  [[nodiscard]] virtual Result<TakenBatches> next(std::span<const LaneTurn> turns) = 0;
  [[nodiscard]] virtual Status release(std::span<const Lease> leases) = 0;

  // Forgets some of what was sent and is older than the retention; false: there is no more.
  [[nodiscard]] virtual Result<bool> clean() = 0;
  [[nodiscard]] virtual Result<OutboxReport> report() = 0;

  // Every event of that id, the latest last. All of the outbox is looked through.
  [[nodiscard]] virtual Result<std::vector<TracedEvent>> trace(const std::string& id) = 0;
  // The oldest, at most so many.
  [[nodiscard]] virtual Result<std::vector<DeadLetter>> dead_letters(std::uint32_t most) = 0;
  // Publishes dead letters anew, in their order and under their ids; those with these ids, or all.
  // One that is refused keeps back no other.
  [[nodiscard]] virtual Result<Redriven> redrive(std::span<const std::string> ids) = 0;

  // Returns true when there may be something new, or after `most`; false when it was nudged.
  virtual bool wait(Duration most) = 0;
  // Lets wait() return, once. From any thread.
  virtual void nudge() = 0;
  // The relay is to end: from now on nothing waits for long, neither wait() nor a question to a
  // database that does not answer. From any thread.
  virtual void wake() = 0;
};

}  // namespace hapax::relay
