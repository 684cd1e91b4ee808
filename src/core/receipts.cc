// Ack, nack and extend: what the holder of a receipt may say about its record.
#include <utility>
#include <variant>

#include "base/format.h"
#include "core/consumer_rules.h"

namespace hapax::core {

namespace {

struct AckedBefore {};  // With this very receipt.
using ReceiptDecision = std::variant<const Pending*, AckedBefore, Stale, Error>;

std::string named(const Stream& stream, Sequence sequence) {
  return base::format("record {} of stream '{}'", sequence.value, stream.name);
}

Error never_given(const Stream& stream, const Consumer& consumer, Receipt receipt) {
  return {
      Errc::kInvalidArgument,
      base::format("{} was never handed out to consumer '{}' with token {}; nothing was changed",
                   named(stream, receipt.sequence), consumer.name, receipt.token.value)};
}

// The record is not pending: acked, parked, ahead of the consumer, or not there at all.
ReceiptDecision decide_absent(const Stream& stream, const Consumer& consumer, Receipt receipt) {
  if (consumer.acked.contains(receipt.sequence)) {
    const auto known = consumer.acked_tokens.find(receipt.sequence);
    const std::uint64_t label = receipt.token.value - receipt.sequence.value;
    if (known && known->label == label) return AckedBefore{};
    return Stale{{}, true};
  }
  if (receipt.token < consumer.valid_from) return Stale{};
  return never_given(stream, consumer, receipt);
}

ReceiptDecision decide_receipt(const Stream& stream, const Consumer& consumer, Receipt receipt) {
  if (receipt.sequence == Sequence{0} || receipt.sequence > stream.last) {
    return Error{Errc::kNotFound,
                 base::format("stream '{}' has no record {}; its last is {}", stream.name,
                              receipt.sequence.value, stream.last.value)};
  }
  const bool existed = receipt.token > Token{0} && receipt.token < consumer.next_token;
  if (!existed) return never_given(stream, consumer, receipt);
  const auto found = consumer.pending.find(receipt.sequence);
  if (found == consumer.pending.end()) return decide_absent(stream, consumer, receipt);
  const Pending& pending = found->second;
  // C2: the token is compared, not the clock: a lease that ran out while nobody else was handed
  // the record leaves its holder the only one who knows what happened to it.
  if (receipt.token == pending.token) return &pending;
  if (receipt.token > pending.token) {
    // A younger token than the record's latest is one of another record, or from before a seek.
    if (receipt.token < consumer.valid_from) return Stale{};
    return never_given(stream, consumer, receipt);
  }
  const bool held = pending.state == PendingState::kInFlight;
  return Stale{held ? *pending.owner : std::string(), false};
}

// What an operation with a receipt acts on, or the verdict if it may not act.
struct Holding {
  const Stream* stream = nullptr;
  const Consumer* consumer = nullptr;
  const Pending* pending = nullptr;  // none: acked before with this receipt
};

template <class Op>
std::variant<Holding, Verdict> find_held(Turn& turn, const Op& op) {
  const Stream* stream = turn.state().find_stream(op.stream);
  if (stream == nullptr) return Verdict{Refused{no_stream(op.stream)}};
  const Consumer* consumer = turn.state().find_consumer(*stream, op.consumer);
  if (consumer == nullptr) return Verdict{Refused{no_consumer(op.stream, op.consumer)}};
  ReceiptDecision decision = decide_receipt(*stream, *consumer, op.receipt);
  if (const auto* pending = std::get_if<const Pending*>(&decision)) {
    return Holding{stream, consumer, *pending};
  }
  if (std::holds_alternative<AckedBefore>(decision)) return Holding{stream, consumer, nullptr};
  if (auto* error = std::get_if<Error>(&decision)) return Verdict{Refused{std::move(*error)}};
  turn.count_fenced();
  return Verdict{std::get<Stale>(std::move(decision))};
}

// The receipt was given back or used up: by an ack, by a nack, or by the end of the last attempt.
Verdict used_up(Turn& turn, const Holding& held) {
  turn.count_fenced();
  return Stale{{}, held.pending == nullptr};
}

// The last attempt failed at the word of its holder, or no further one would help.
Verdict give_up(Turn& turn, const Holding& held, const Nack& op) {
  const ConsumerUid consumer = held.consumer->uid;
  const Sequence sequence = op.receipt.sequence;
  if (!held.stream->keeps(sequence)) {
    turn.emit(Acked{consumer, sequence, false});
    return Done{};
  }
  if (held.consumer->settings.last_attempt == LastAttempt::kBlock) {
    turn.emit(Returned{consumer, sequence, turn.now(), op.reason});
    turn.emit(Blocked{consumer, sequence});
    return Done{};
  }
  auto buried =
      bury(turn, *held.stream, *held.consumer, sequence, AttemptEnding::kNacked, op.reason);
  if (!buried) return Refused{std::move(buried).error()};
  return Done{};
}

}  // namespace

Verdict run(Turn& turn, const Ack& op) {
  auto found = find_held(turn, op);
  if (auto* verdict = std::get_if<Verdict>(&found)) return std::move(*verdict);
  const Holding& held = std::get<Holding>(found);
  if (held.pending == nullptr) return Done{};
  // Who was late on the last attempt may still say that it was done: nobody else holds the record.
  // After a nack the receipt is given back.
  if (held.pending->state == PendingState::kWaiting) return used_up(turn, held);
  turn.emit(Acked{held.consumer->uid, op.receipt.sequence, false});
  return Done{};
}

Verdict run(Turn& turn, const Nack& op) {
  auto found = find_held(turn, op);
  if (auto* verdict = std::get_if<Verdict>(&found)) return std::move(*verdict);
  const Holding& held = std::get<Holding>(found);
  if (held.pending == nullptr || held.pending->state != PendingState::kInFlight) {
    return used_up(turn, held);
  }
  if (op.last || held.pending->attempts >= held.consumer->settings.attempts_max) {
    return give_up(turn, held, op);
  }
  turn.emit(Returned{held.consumer->uid, op.receipt.sequence, turn.now() + op.delay, op.reason});
  return Done{};
}

Verdict run(Turn& turn, const Extend& op) {
  auto found = find_held(turn, op);
  if (auto* verdict = std::get_if<Verdict>(&found)) return std::move(*verdict);
  const Holding& held = std::get<Holding>(found);
  if (held.pending == nullptr || held.pending->state != PendingState::kInFlight) {
    return used_up(turn, held);
  }
  const Time until = turn.now() + op.lease;
  turn.emit(LeaseExtended{held.consumer->uid, op.receipt.sequence, until});
  return Renewed{until};
}

}  // namespace hapax::core
