// How facts about consumers change the state.
#include <algorithm>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/mutant.h"
#include "core/group_cursor.h"
#include "core/sequences.h"
#include "core/state.h"
#include "core/text_bytes.h"

namespace hapax::core {

namespace {

Tenant& tenant_of(const State& state, const Consumer& consumer) {
  return *state.stream(consumer.stream).tenant;
}

// Keeps State::text_bytes in step with a consumer, for changes and their inverses alike.
class Weighed {
 public:
  Weighed(State& state, const Consumer& consumer)
      : state_(state),
        tenant_(tenant_of(state, consumer)),
        consumer_(consumer),
        before_(text_bytes_of(consumer)) {}
  Weighed(const Weighed&) = delete;
  Weighed& operator=(const Weighed&) = delete;
  // The sum is what it was, less or more: it wraps on its way.
  ~Weighed() { state_.grow(tenant_, text_bytes_of(consumer_) - before_); }

 private:
  State& state_;
  Tenant& tenant_;
  const Consumer& consumer_;
  std::uint64_t before_;
};

Consumer& consumer_of(State& state, ConsumerUid uid) {
  const auto found = state.consumers.find(uid);
  HAPAX_ASSERT(found != state.consumers.end(), "a fact names a consumer that exists");
  return found->second;
}

Pending& pending_of(Consumer& consumer, Sequence sequence) {
  const auto found = consumer.pending.find(sequence);
  HAPAX_ASSERT(found != consumer.pending.end(), "a fact names a pending record");
  return found->second;
}

// C5: `due` and `waiting` follow every change of a pending record's state or time.
void leave_due(Consumer& consumer, Sequence sequence, const Pending& pending) {
  if (pending.state == PendingState::kWaiting) consumer.waiting.erase({pending.due, sequence});
  if (pending.state != PendingState::kInFlight) return;
  --consumer.in_flight;
  consumer.due.erase({pending.due, sequence});
}

void join_due(Consumer& consumer, Sequence sequence, const Pending& pending) {
  if (pending.state == PendingState::kWaiting) consumer.waiting.emplace(pending.due, sequence);
  if (pending.state != PendingState::kInFlight) return;
  ++consumer.in_flight;
  consumer.due.emplace(pending.due, sequence);
}

void start_at(Consumer& consumer, Sequence next) {
  consumer.next = next;
  if (next > Sequence{1}) consumer.acked.add({Sequence{1}, Sequence{next.value - 1}, 0});
}

// --- attempts that came to nothing ---------------------------------------------------------------

std::uint64_t past_bytes_of(const Pending& pending) {
  return pending.past == nullptr ? 0 : past_memory(*pending.past);
}

// The attempt under way ends. What was known before stays as it is for whoever rolls back.
void end_attempt(Consumer& consumer, Pending& pending, AttemptEnding ending, Time ended,
                 std::string_view reason) {
  auto past = pending.past == nullptr ? std::make_shared<PastAttempts>()
                                      : std::make_shared<PastAttempts>(*pending.past);
  add_attempt(*past, {pending.attempts, 0, pending.last_handed_out, ended, ending, *pending.owner,
                      std::string(reason)});
  consumer.past_bytes -= past_bytes_of(pending);
  pending.past = std::move(past);
  consumer.past_bytes += past_bytes_of(pending);
}

// --- handing out -------------------------------------------------------------------------------

struct Handing {
  Consumer& consumer;
  const Stream& stream;
  const HandedOut& fact;
  Time now;
  std::shared_ptr<const std::string> owner;
  Token token;  // of the next one
};

void hand_out(Handing& handing, Pending& pending) {
  pending.state = PendingState::kInFlight;
  if (++pending.attempts == 1) pending.first_handed_out = handing.now;
  pending.last_handed_out = handing.now;
  pending.token = handing.token;
  pending.due = handing.fact.lease_until;
  pending.owner = handing.owner;
  handing.token = handing.token.next();
}

void hand_out_again(Handing& handing, Sequence sequence) {
  Pending& pending = pending_of(handing.consumer, sequence);
  HAPAX_ASSERT(pending.state != PendingState::kBlocked, "a blocked record is not handed out");
  leave_due(handing.consumer, sequence, pending);
  if (pending.state == PendingState::kInFlight) {
    end_attempt(handing.consumer, pending, AttemptEnding::kLeaseRanOut, pending.due, {});
  }
  hand_out(handing, pending);
  join_due(handing.consumer, sequence, pending);
}

// C4: each record from `next` to the fact's is handed out, parked behind its group, or counted as
// acked because it is no longer there or for another consumer (C9).
void pass_new(Handing& handing, std::span<const Sequence> listed) {
  Consumer& consumer = handing.consumer;
  const Stream& stream = handing.stream;
  const Sequence end = handing.fact.next;
  const Sequence kept = std::min(std::max(consumer.next, stream.first), end);
  if (kept > consumer.next) consumer.acked.add({consumer.next, Sequence{kept.value - 1}, 0});
  GroupCursor groups(stream);
  auto hint = consumer.due.upper_bound({handing.fact.lease_until, kept});
  for (Sequence at = kept; at < end; at = at.next()) {
    const bool chosen = !listed.empty() && listed.front() == at;
    if (chosen) {
      const auto made = consumer.pending.emplace_hint(consumer.pending.end(), at, Pending{});
      Pending& pending = made->second;
      pending.group = groups.at(at);
      hand_out(handing, pending);
      ++consumer.in_flight;
      hint = std::next(consumer.due.emplace_hint(hint, pending.due, at));
      if (pending.group != 0) {
        const bool free = consumer.heads.emplace(pending.group, at).second;
        HAPAX_ASSERT(free, "C1: a group has one record outside the parked ones");
      }
      listed = listed.subspan(1);
    } else if (!stream.offers(consumer.name, at)) {
      consumer.acked.add(at);
    } else {
      const GroupHash group = groups.at(at);
      HAPAX_ASSERT(consumer.heads.contains(group), "C1: only a record of a busy group is parked");
      consumer.parked.emplace(group, at);
    }
  }
  HAPAX_ASSERT(listed.empty(), "what is handed out lies below the new next");
  consumer.next = end;
}

// The inverse of pass_new: the records in between are taken from wherever it put them.
void unpass_new(Consumer& consumer, const Stream& stream, Sequence next) {
  const Sequence end = consumer.next;
  const Sequence kept = std::min(std::max(next, stream.first), end);
  for (Sequence at{end.value - 1}; at >= kept; at = Sequence{at.value - 1}) {
    const auto found = consumer.pending.find(at);
    if (found != consumer.pending.end()) {
      leave_due(consumer, at, found->second);
      if (found->second.group != 0) consumer.heads.erase(found->second.group);
      consumer.pending.erase(found);
    } else if (!stream.offers(consumer.name, at)) {
      consumer.acked.remove(at);
    } else {
      consumer.parked.erase({stream.group_of(at), at});
    }
  }
  if (kept > next) consumer.acked.remove(next, Sequence{kept.value - 1});
  consumer.next = next;
}

// --- acking ------------------------------------------------------------------------------------

// What an ack changed and cannot be told from what is there afterwards.
struct AckTrace {
  Consumer* consumer = nullptr;
  std::map<Sequence, Pending>::node_type pending;
  Sequence promoted;                          // 0 = none
  bool remembered = false;                    // its token
  std::optional<Spans::Span> forgotten = {};  // tokens that made room for it
};

// The next one of the group becomes its head, due at once.
Sequence promote(Consumer& consumer, GroupHash group, Time now) {
  const auto head = consumer.heads.find(group);
  HAPAX_ASSERT(head != consumer.heads.end(), "a pending record with a group key is its head");
  const auto next = consumer.parked.lower_bound({group, Sequence{0}});
  if (next == consumer.parked.end() || next->first != group) {
    consumer.heads.erase(head);
    return Sequence{0};
  }
  const Sequence sequence = next->second;
  consumer.parked.erase(next);
  head->second = sequence;
  Pending& pending = consumer.pending[sequence];
  pending.group = group;
  pending.due = now;
  join_due(consumer, sequence, pending);
  return sequence;
}

void unpromote(Consumer& consumer, GroupHash group, Sequence promoted, Sequence head) {
  consumer.heads[group] = head;
  if (promoted == Sequence{0}) return;
  const auto found = consumer.pending.find(promoted);
  leave_due(consumer, promoted, found->second);
  consumer.pending.erase(found);
  consumer.parked.emplace(group, promoted);
}

void remember_token(Consumer& consumer, AckTrace& trace) {
  const Sequence sequence = trace.pending.key();
  const Pending& pending = trace.pending.mapped();
  // Nobody has a receipt of it: it left the stream while it waited.
  if (pending.state == PendingState::kWaiting) return;
  trace.remembered = true;
  consumer.acked_tokens.add({sequence, sequence, pending.token.value - sequence.value});
  if (consumer.acked_tokens.size() > kAckedTokenSpansMax) {
    trace.forgotten = consumer.acked_tokens.pop_front();
  }
}

void unack(State& state, AckTrace& trace) {
  Consumer& consumer = *trace.consumer;
  const Weighed weighed(state, consumer);
  const Sequence sequence = trace.pending.key();
  if (trace.forgotten) consumer.acked_tokens.add(*trace.forgotten);
  if (trace.remembered) consumer.acked_tokens.remove(sequence);
  consumer.acked.remove(sequence);
  const Pending& pending = trace.pending.mapped();
  if (pending.group != 0) unpromote(consumer, pending.group, trace.promoted, sequence);
  join_due(consumer, sequence, pending);
  consumer.past_bytes += past_bytes_of(pending);
  consumer.pending.insert(std::move(trace.pending));
}

// Mutants only: a replayed ack is taken for a failed attempt.
bool is_stale_cursor(Consumer& consumer, const Acked& fact, const Undo* undo) {
  if (!base::mutant(base::Mutant::kStaleCursor) || undo != nullptr || fact.gave_up) return false;
  const Pending& pending = pending_of(consumer, fact.sequence);
  return pending.state == PendingState::kInFlight && pending.group == 0;
}

}  // namespace

void apply_consumer(State& state, const ConsumerMade& fact, base::Where, Time, Undo* undo) {
  HAPAX_ASSERT(fact.consumer == state.next_consumer, "consumer uids are gap-free");
  Stream& stream = state.stream(fact.stream);
  Consumer& consumer = state.consumers[fact.consumer];
  consumer.uid = fact.consumer;
  consumer.stream = fact.stream;
  consumer.name = fact.name;
  consumer.settings = {fact.settings.attempts_max, fact.settings.last_attempt,
                       std::string(fact.settings.dead_letters), fact.settings.start,
                       fact.settings.in_flight_max};
  consumer.next_token = state.first_token;
  consumer.valid_from = state.first_token;
  start_at(consumer, std::max(fact.settings.start, stream.first));
  const bool free = stream.consumers.emplace(consumer.name, consumer.uid).second;
  HAPAX_ASSERT(free, "the consumers of a stream have different names");
  state.next_consumer = fact.consumer.next();
  state.grow(*stream.tenant, text_bytes_of(consumer));
  record(undo, [made = &consumer, owner = &stream](State& s) {
    s.shrink(*owner->tenant, text_bytes_of(*made));
    s.next_consumer = made->uid;
    owner->consumers.erase(made->name);
    s.consumers.erase(ConsumerUid{made->uid});
  });
}

void apply_consumer(State& state, const ConsumerGone& fact, base::Where, Time, Undo* undo) {
  const Consumer& consumer = consumer_of(state, fact.consumer);
  state.shrink(tenant_of(state, consumer), text_bytes_of(consumer));
  state.stream(consumer.stream).consumers.erase(consumer.name);
  const Token first = state.first_token;
  state.first_token = std::max(first, consumer.next_token);
  record(undo, [first, node = state.consumers.extract(fact.consumer)](State& s) mutable {
    s.first_token = first;
    const Consumer& back = s.consumers.insert(std::move(node)).position->second;
    s.stream(back.stream).consumers.emplace(back.name, back.uid);
    s.grow(tenant_of(s, back), text_bytes_of(back));
  });
}

void apply_consumer(State& state, const Sought& fact, base::Where, Time, Undo* undo) {
  Consumer& consumer = consumer_of(state, fact.consumer);
  const Weighed weighed(state, consumer);
  Consumer before = std::exchange(consumer, Consumer{});
  consumer.uid = before.uid;
  consumer.stream = before.stream;
  consumer.name = before.name;
  consumer.settings = before.settings;
  consumer.dead_lettered = before.dead_lettered;
  consumer.next_token = before.next_token;
  consumer.valid_from = before.next_token;
  start_at(consumer, fact.to);
  record(undo, [moved = &consumer, before = std::move(before)](State& s) mutable {
    const Weighed undone(s, *moved);
    *moved = std::move(before);
  });
}

void apply_consumer(State& state, const HandedOut& fact, base::Where, Time now, Undo* undo) {
  Consumer& consumer = consumer_of(state, fact.consumer);
  const Stream& stream = state.stream(consumer.stream);
  const auto sequences = decode_sequences(fact.sequences);
  HAPAX_ASSERT(sequences.has_value(), "what is handed out can be decoded");
  HAPAX_ASSERT(fact.first_token == consumer.next_token, "C2: tokens grow without gaps");
  HAPAX_ASSERT(fact.next >= consumer.next, "a consumer moves forward");
  const std::span<const Sequence> all(*sequences);
  const auto again = static_cast<std::size_t>(
      std::lower_bound(all.begin(), all.end(), consumer.next) - all.begin());

  const Weighed weighed(state, consumer);
  std::vector<std::pair<Sequence, Pending>> before;
  if (undo != nullptr) {
    before.reserve(again);
    for (const Sequence sequence : all.first(again)) {
      before.emplace_back(sequence, pending_of(consumer, sequence));
    }
  }
  record(undo, [moved = &consumer, from = &stream, next = consumer.next, before = std::move(before),
                token = consumer.next_token](State& s) mutable {
    const Weighed undone(s, *moved);
    unpass_new(*moved, *from, next);
    for (auto& [sequence, old] : before) {
      Pending& pending = pending_of(*moved, sequence);
      leave_due(*moved, sequence, pending);
      moved->past_bytes += past_bytes_of(old) - past_bytes_of(pending);
      pending = std::move(old);
      join_due(*moved, sequence, pending);
    }
    moved->next_token = token;
  });
  Handing handing{
      consumer,        stream, fact, now, std::make_shared<const std::string>(fact.owner),
      fact.first_token};
  for (const Sequence sequence : all.first(again)) hand_out_again(handing, sequence);
  pass_new(handing, all.subspan(again));
  consumer.next_token = handing.token;
}

void apply_consumer(State& state, const Acked& fact, base::Where at, Time now, Undo* undo) {
  Consumer& consumer = consumer_of(state, fact.consumer);
  if (is_stale_cursor(consumer, fact, undo)) {
    return apply_consumer(state, Returned{fact.consumer, fact.sequence, now, {}}, at, now, undo);
  }
  const Weighed weighed(state, consumer);
  AckTrace trace;
  trace.consumer = &consumer;
  trace.pending = consumer.pending.extract(fact.sequence);
  HAPAX_ASSERT(!trace.pending.empty(), "only a pending record is acked");
  const Pending& pending = trace.pending.mapped();
  leave_due(consumer, fact.sequence, pending);
  consumer.past_bytes -= past_bytes_of(pending);
  if (pending.group != 0) trace.promoted = promote(consumer, pending.group, now);
  consumer.acked.add(fact.sequence);
  if (fact.gave_up) {
    // Its token is not remembered: a late ack must hear that the record went another way.
    ++consumer.dead_lettered;
    record(undo, [gave_up = &consumer](State&) { --gave_up->dead_lettered; });
  } else {
    remember_token(consumer, trace);
  }
  record(undo, [trace = std::move(trace)](State& s) mutable { unack(s, trace); });
}

void apply_consumer(State& state, const Returned& fact, base::Where, Time now, Undo* undo) {
  Consumer& consumer = consumer_of(state, fact.consumer);
  const Weighed weighed(state, consumer);
  Pending& pending = pending_of(consumer, fact.sequence);
  HAPAX_ASSERT(pending.state == PendingState::kInFlight, "only a record in flight is returned");
  leave_due(consumer, fact.sequence, pending);
  const Time due = std::exchange(pending.due, fact.ready_at);
  std::shared_ptr<const PastAttempts> past = pending.past;
  end_attempt(consumer, pending, AttemptEnding::kNacked, now, fact.reason);
  pending.state = PendingState::kWaiting;
  join_due(consumer, fact.sequence, pending);
  record(undo,
         [of = &consumer, sequence = fact.sequence, due, past = std::move(past)](State& s) mutable {
           const Weighed undone(s, *of);
           Pending& back = pending_of(*of, sequence);
           leave_due(*of, sequence, back);
           back.state = PendingState::kInFlight;
           back.due = due;
           of->past_bytes -= past_bytes_of(back);
           back.past = std::move(past);
           of->past_bytes += past_bytes_of(back);
           join_due(*of, sequence, back);
         });
}

void apply_consumer(State& state, const LeaseExtended& fact, base::Where, Time, Undo* undo) {
  Consumer& consumer = consumer_of(state, fact.consumer);
  Pending& pending = pending_of(consumer, fact.sequence);
  HAPAX_ASSERT(pending.state == PendingState::kInFlight, "only a record in flight has a lease");
  leave_due(consumer, fact.sequence, pending);
  const Time due = std::exchange(pending.due, fact.lease_until);
  join_due(consumer, fact.sequence, pending);
  record(undo, [of = &consumer, sequence = fact.sequence, due](State&) {
    Pending& back = pending_of(*of, sequence);
    leave_due(*of, sequence, back);
    back.due = due;
    join_due(*of, sequence, back);
  });
}

void apply_consumer(State& state, const Blocked& fact, base::Where, Time, Undo* undo) {
  Consumer& consumer = consumer_of(state, fact.consumer);
  Pending& pending = pending_of(consumer, fact.sequence);
  HAPAX_ASSERT(pending.state != PendingState::kBlocked, "a record is blocked once");
  leave_due(consumer, fact.sequence, pending);
  const PendingState before = std::exchange(pending.state, PendingState::kBlocked);
  record(undo, [of = &consumer, sequence = fact.sequence, before](State&) {
    Pending& back = pending_of(*of, sequence);
    back.state = before;
    join_due(*of, sequence, back);
  });
}

}  // namespace hapax::core
