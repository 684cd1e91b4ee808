// Receive: which records a consumer is handed, in which order, and what becomes of those that used
// up their attempts.
#include <algorithm>
#include <bit>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/consumer_rules.h"
#include "core/group_cursor.h"
#include "core/sequences.h"
#include "core/tenants.h"

namespace hapax::core {

namespace {

// Bounds of one receive, so that none holds up the commits behind it. What is left over is
// reached by the next one.
constexpr std::size_t kDeadLettersPerReceive = 1'000;
constexpr std::size_t kDeadLetterBytesPerReceive = std::size_t{4} << 20;
constexpr std::size_t kGonePerReceive = 100'000;
constexpr std::size_t look_max(const Receive& op) { return std::size_t{op.max} * 16 + 1'000; }

// Walks what is due, the oldest first: leases that ran out and, while there is room in flight,
// those that wait. C8: without room these are not even looked at: however many wait, a record whose
// holder died is reached.
class DueWalk {
 public:
  DueWalk(const Consumer& consumer, const Receive& op, Time now)
      : consumer_(consumer),
        now_(now),
        looks_(look_max(op)),
        room_(consumer.settings.in_flight_max -
              std::min<std::uint64_t>(consumer.settings.in_flight_max, consumer.in_flight)),
        lease_(consumer.due.begin()),
        waiting_(consumer.waiting.begin()) {}

  // 0 = none is left, or it has looked far enough.
  [[nodiscard]] Sequence next() {
    const bool lapsed = lease_ != consumer_.due.end() && lease_->first <= now_;
    const bool waits = room_ > 0 && waiting_ != consumer_.waiting.end() && waiting_->first <= now_;
    if (looks_ == 0 || (!lapsed && !waits)) return Sequence{0};
    --looks_;
    takes_room_ = waits && (!lapsed || *waiting_ < *lease_);
    return takes_room_ ? (waiting_++)->second : (lease_++)->second;
  }
  // The latest one is handed out.
  void take() { room_ -= takes_room_ ? 1 : 0; }
  // The latest one waits to be given up, which may take many receives: no reason to look less far.
  void pass_by() { ++looks_; }
  [[nodiscard]] std::size_t room() const { return room_; }

 private:
  using At = std::set<std::pair<Time, Sequence>>::const_iterator;

  const Consumer& consumer_;
  Time now_;
  std::size_t looks_;
  std::size_t room_;
  bool takes_room_ = false;
  At lease_;
  At waiting_;
};

// --- what leaves before anything is handed out -------------------------------------------------

// Pending records that are not handed out again.
struct Leaving {
  std::vector<Sequence> gone;       // from the stream: trimmed or removed meanwhile
  std::vector<Sequence> exhausted;  // the lease of the last attempt ran out; the first ones
};

// Looks only as far as the hand-out itself will look.
Leaving decide_leaving(const Stream& stream, const Consumer& consumer, const Receive& op,
                       Time now) {
  Leaving leaving;
  std::size_t looked = 0;
  // A blocked record is never due; trimming lets its group go on.
  for (const auto& [sequence, pending] : consumer.pending) {
    if (sequence >= stream.first || ++looked > look_max(op)) break;
    if (pending.state == PendingState::kBlocked) leaving.gone.push_back(sequence);
  }
  DueWalk walk(consumer, op, now);
  for (std::size_t staying = 0; staying < op.max;) {
    const Sequence sequence = walk.next();
    if (sequence == Sequence{0}) break;
    if (!stream.keeps(sequence)) {
      leaving.gone.push_back(sequence);
    } else if (consumer.pending.at(sequence).attempts >= consumer.settings.attempts_max) {
      walk.pass_by();
      if (leaving.exhausted.size() < kDeadLettersPerReceive) leaving.exhausted.push_back(sequence);
    } else {
      walk.take();
      ++staying;
    }
  }
  return leaving;
}

// The next one of its group may be gone too: trimming took the oldest.
void leave(Turn& turn, const Stream& stream, const Consumer& consumer, Sequence gone,
           std::size_t& work_max) {
  const GroupHash group = consumer.pending.at(gone).group;
  for (; work_max > 0; --work_max) {
    turn.emit(Acked{consumer.uid, gone, false});
    const auto head = consumer.heads.find(group);
    if (head == consumer.heads.end() || stream.keeps(head->second)) return;
    gone = head->second;
  }
}

std::string lease_ran_out(const Pending& pending) {
  std::string reason = "lease ran out";
  const std::string_view nacked = pending.past == nullptr ? "" : last_reason(*pending.past);
  if (!nacked.empty()) reason += "; last nack: " + std::string(nacked);
  return reason;
}

Status give_up(Turn& turn, const Stream& stream, const Consumer& consumer,
               const std::vector<Sequence>& exhausted) {
  std::size_t bytes = 0;
  for (const Sequence sequence : exhausted) {
    if (consumer.settings.last_attempt == LastAttempt::kBlock) {
      turn.emit(Blocked{consumer.uid, sequence});
      continue;
    }
    const Run* run = stream.run_of(sequence);
    const Status buried = bury(turn, stream, consumer, sequence, AttemptEnding::kLeaseRanOut,
                               lease_ran_out(consumer.pending.at(sequence)));
    // The others go on; it is given up when there is room again.
    if (!buried && buried.error().code == Errc::kQuotaExceeded) break;
    HAPAX_CHECK(buried);
    bytes += run->at.length / run->count;
    if (bytes > kDeadLetterBytesPerReceive) break;
  }
  return Ok{};
}

// --- what is handed out ------------------------------------------------------------------------

// The group keys taken by new records of this receive. They are hashes already: their low bits
// are the slot.
class GroupsTaken {
 public:
  explicit GroupsTaken(std::size_t groups_max) : slots_(std::bit_ceil(groups_max * 2 + 2)) {}

  // Whether it was free.
  bool take(GroupHash group) {
    for (std::size_t at = group;; ++at) {
      GroupHash& slot = slots_[at & (slots_.size() - 1)];
      if (slot == group) return false;
      if (slot != 0) continue;
      slot = group;
      return true;
    }
  }

 private:
  std::vector<GroupHash> slots_;
};

struct HandOut {
  std::vector<Sequence> sequences;  // ascending
  std::size_t again = 0;            // number of those that were pending already: the first ones
  Sequence next;                    // of the consumer
  std::uint64_t bytes = 0;          // of the records
};

// Records whose lease or delay is over, and those whose turn has come in their group. Answers the
// room that is left for new ones.
std::size_t take_due(const Stream& stream, const Consumer& consumer, const Receive& op, Time now,
                     BytesTaken& bytes, HandOut& out) {
  DueWalk walk(consumer, op, now);
  while (out.sequences.size() < op.max) {
    const Sequence sequence = walk.next();
    if (sequence == Sequence{0}) break;
    if (!stream.keeps(sequence)) continue;
    if (consumer.pending.at(sequence).attempts >= consumer.settings.attempts_max) {
      walk.pass_by();
      continue;
    }
    if (!bytes.take(sequence)) break;
    walk.take();
    out.sequences.push_back(sequence);
  }
  std::sort(out.sequences.begin(), out.sequences.end());
  out.again = out.sequences.size();
  return walk.room();
}

// C1: a new record of a busy group is passed over; following the fact parks it. As long as nothing
// is found it looks on: what is passed over once is never looked at again, so that this costs no
// more than many empty answers would.
void take_new(const Stream& stream, const Consumer& consumer, const Receive& op, std::size_t room,
              BytesTaken& bytes, HandOut& out) {
  Sequence at = std::max(consumer.next, stream.first);
  const std::uint64_t ahead = at > stream.last ? 0 : stream.last.value - at.value + 1;
  std::size_t wanted = std::min<std::uint64_t>({op.max - out.sequences.size(), room, ahead});
  std::size_t looks = look_max(op);
  std::size_t parked = consumer.parked.size();
  GroupsTaken taken(wanted);
  GroupCursor groups(stream);
  out.sequences.reserve(out.sequences.size() + wanted);
  for (; wanted > 0 && at <= stream.last; at = at.next()) {
    const bool looks_on = looks > 0 || out.sequences.empty();
    if (!looks_on) break;
    looks -= std::min<std::size_t>(looks, 1);
    if (!stream.offers(consumer.name, at)) continue;
    const GroupHash group = groups.at(at);
    if (group != 0 && (consumer.heads.contains(group) || !taken.take(group))) {
      if (parked == limits::kParkedPerConsumerMax) break;
      ++parked;
      continue;
    }
    if (!bytes.take(at)) break;
    out.sequences.push_back(at);
    --wanted;
  }
  out.next = at;
}

// What is ready may lie behind many that are gone: they leave until something is found.
HandOut decide_hand_out(Turn& turn, const Stream& stream, const Consumer& consumer,
                        const Receive& op, std::vector<Sequence> gone) {
  HandOut out;
  BytesTaken bytes(stream, turn.receive_bytes_max());
  std::size_t work_max = kGonePerReceive;
  std::size_t room = 0;
  while (true) {
    for (const Sequence sequence : gone) leave(turn, stream, consumer, sequence, work_max);
    room = take_due(stream, consumer, op, turn.now(), bytes, out);
    if (!out.sequences.empty() || gone.empty() || work_max == 0) break;
    gone = decide_leaving(stream, consumer, op, turn.now()).gone;
  }
  take_new(stream, consumer, op, room, bytes, out);
  out.bytes = bytes.bytes();
  return out;
}

Received hand_out(Turn& turn, const Consumer& consumer, const Receive& op, const HandOut& out) {
  std::string sequences;
  sequences.reserve(out.sequences.size() + 10);
  encode_sequences(out.sequences, sequences);
  const Time until = turn.now() + op.lease;
  Token token = consumer.next_token;
  turn.tell_records(out.bytes);
  turn.emit(HandedOut{consumer.uid, op.owner, until, token, out.next, sequences});

  Received received;
  received.deliveries.resize(out.sequences.size());
  for (std::size_t i = 0; i < out.sequences.size(); ++i, token = token.next()) {
    Delivery& delivery = received.deliveries[i];
    delivery.token = token;
    if (i < out.again) delivery.attempt = consumer.pending.at(out.sequences[i]).attempts;
    delivery.lease_until = until;
    delivery.record.sequence = out.sequences[i];
  }
  return received;
}

// C11: when time alone may bring a record to a consumer that was handed none: the end of a lease
// and, while there is room in flight, of a delay. At once, if there is more to look at than one
// receive does.
Time next_due(const Stream& stream, const Consumer& consumer, bool passed_some, Time now) {
  const bool room = consumer.in_flight < consumer.settings.in_flight_max;
  if (room && passed_some && consumer.next <= stream.last) return now;
  Time next = consumer.due.empty() ? Time::max() : consumer.due.begin()->first;
  if (room && !consumer.waiting.empty()) next = std::min(next, consumer.waiting.begin()->first);
  return next;
}

// Of a consumer that a receive makes.
ConsumerSettings usual_settings(const Stream& stream) {
  ConsumerSettings settings;
  const TenantShare& share = stream.tenant->share;
  const bool outbox = share.outbox_attempts_max != 0 && local_name(stream.name) == share.outbox;
  if (outbox) settings.attempts_max = share.outbox_attempts_max;
  return settings;
}

}  // namespace

Verdict run(Turn& turn, const Receive& op) {
  const Stream* stream = turn.state().find_stream(op.stream);
  if (stream == nullptr) return Refused{no_stream(op.stream)};
  const Consumer* consumer = turn.state().find_consumer(*stream, op.consumer);
  if (consumer == nullptr) {
    auto made = make_consumer(turn, *stream, op.consumer, usual_settings(*stream));
    if (!made) return Refused{std::move(made).error()};
    consumer = *made;
  }
  Leaving leaving = decide_leaving(*stream, *consumer, op, turn.now());
  auto given_up = give_up(turn, *stream, *consumer, leaving.exhausted);
  if (!given_up) return Refused{std::move(given_up).error()};
  const HandOut out = decide_hand_out(turn, *stream, *consumer, op, std::move(leaving.gone));
  const bool passes_some = out.next != consumer->next;
  Received received;
  if (!out.sequences.empty() || passes_some) received = hand_out(turn, *consumer, op, out);
  if (received.deliveries.empty()) {
    received.next_due = next_due(*stream, *consumer, passes_some, turn.now());
  }
  return received;
}

}  // namespace hapax::core
