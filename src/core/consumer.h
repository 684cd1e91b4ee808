// A named consumer of a stream: what it was handed, what it acked, who waits behind whom.
//
//   acked     done with: acked, gone to the dead letters, or gone from the stream
//   pending   handed out, waiting to be, or blocked
//   parked    behind an older record of their group
//   next      first record never looked at
//
// C1: a group key has at most one record in `pending`, its head: the oldest one not acked. The
//     younger ones are parked.
// C2: only the latest token of a record is valid.
// C3: attempts are counted when a record is handed out, so a crash of the worker counts.
// C4: every record below `next` is in exactly one of acked, pending and parked: none is lost.
// C5: a record in flight is in `due`, one that waits is in `waiting`; nothing else is.
// C9: a record that was redriven to another consumer counts as acked (Stream::addressed).
// C12: a record that is replayed (Redrive::again_for) is put behind the last one of its stream once
//     under the name of a replay, for that consumer alone.
// C7: what failed before is kept for the dead letter, within limits (past_attempts.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "core/facts.h"
#include "core/past_attempts.h"
#include "core/spans.h"

namespace hapax::core {

enum class PendingState : std::uint8_t {
  kInFlight,  // until due, the lease's end; its holder may still ack it later
  kWaiting,   // until due: nacked with a delay, or next in its group
  kBlocked,   // last attempt failed, policy kBlock
};

struct Pending {
  PendingState state = PendingState::kWaiting;
  std::uint32_t attempts = 0;
  GroupHash group = 0;
  Token token;  // of the latest hand-out; 0 = none yet
  Time due{};
  Time first_handed_out{};
  Time last_handed_out{};
  std::shared_ptr<const std::string> owner;  // of the latest hand-out, shared by its records
  std::shared_ptr<const PastAttempts> past;  // null: none failed. Replaced, never changed.
};

struct OwnedConsumerSettings {
  std::uint32_t attempts_max = 10;
  LastAttempt last_attempt = LastAttempt::kDeadLetter;
  std::string dead_letters;
  Sequence start{1};
  std::uint32_t in_flight_max = 10'000;
};

struct Consumer {
  ConsumerUid uid;
  StreamUid stream;
  std::string name;
  OwnedConsumerSettings settings;
  Sequence next{1};
  Token next_token{1};
  Token valid_from{1};  // older tokens ended with a seek
  Spans acked;          // from 1 on
  std::map<Sequence, Pending> pending;
  std::set<std::pair<Time, Sequence>> due;          // in flight, by Pending::due
  std::set<std::pair<Time, Sequence>> waiting;      // the same of those that wait
  std::unordered_map<GroupHash, Sequence> heads;    // of the groups with a pending record
  std::set<std::pair<GroupHash, Sequence>> parked;  // a group's next one is its first here
  std::uint64_t in_flight = 0;                      // number of kInFlight
  std::uint64_t dead_lettered = 0;
  std::uint64_t past_bytes = 0;  // of Pending::past, as past_memory() counts
  // The token each acked record was acked with, so that acking twice with the valid receipt is
  // recognised. The label is token - sequence: records acked at the first attempt lie in one span,
  // so the memory reaches far back although the number of spans is limited.
  Spans acked_tokens;

  // Everything up to it is acked.
  [[nodiscard]] Sequence floor() const {
    return Sequence{acked.first_missing(Sequence{1}).value - 1};
  }
};

inline constexpr std::size_t kAckedTokenSpansMax = 10'000;  // the lowest ones are forgotten first

}  // namespace hapax::core
