// The part of StreamSource that knows claims.
#include <algorithm>
#include <utility>

#include "base/format.h"
#include "delivery/stream_settling.h"
#include "delivery/stream_source.h"

namespace hapax::delivery {

namespace {

using Kind = Settlement::Kind;

constexpr Duration kClaimPauseMin{100};
constexpr Duration kRefusedPause{1'000};  // the store has no room for a claim

}  // namespace

// Whoever decides needs the name of the claim.
std::string StreamSource::unknown_outcome(std::string_view key, std::string_view reason) const {
  return base::format("unknown outcome of {}/{}: {}", claims_->terms().scope, key, reason);
}

// Before anything else can fail: what became of an attempt is known only here.
void StreamSource::end_attempts(std::span<const Settlement> settled) {
  if (!claims_) return;
  for (const Settlement& settlement : settled) {
    claims_->end(settlement.number, outcome_of(settlement), settlement.reason);
  }
}

void StreamSource::settle_leftovers(Settling& settling) {
  for (const Receipt receipt : std::exchange(unwanted_, {})) settling.ack(receipt);
  for (const Overruled& each : std::exchange(overruled_, {})) {
    const Held& held = each.held;
    if (each.resolution) continue;  // The store did not answer: its lease ends.
    if (each.to == Overruled::To::kAck) {
      settling.ack(held.receipt);
      if (held.tries.failed > 0) settling.forget_tries(register_of(held.receipt.sequence));
    } else if (each.to == Overruled::To::kAgain) {
      settling.nack(held.receipt, each.after, each.reason);
    } else {
      give_up(settling, held, each.reason);
    }
  }
}

// Z14
void StreamSource::hear_claims(const TakeCall& call, Answer& answer, Hand& hand) {
  if (!claims_) return;
  for (const AttemptClaims::Refusal& refusal : claims_->hear(answer)) {
    const auto at = held_.find(refusal.number);
    if (at == held_.end()) continue;  // It is told as lost.
    overruled_.push_back(overrule(refusal, at->second, answer.time));
    release(refusal.number);
    hand.lost.push_back(refusal.number);
    hand.more = true;
  }
  for (const Beginning& each : call.beginning) {
    const auto at = held_.find(each.number);
    if (at != held_.end()) {
      at->second.key = each.record->id;
    } else {
      // Somebody else has it, and should not wait for this claim.
      claims_->end(each.number, Outcome::kReleased, {});
      hand.more = true;
    }
  }
}

void StreamSource::release_claims(const TakeCall& call) {
  if (!claims_) return;
  for (const Beginning& each : call.beginning) {
    claims_->end(each.number, Outcome::kReleased, {});
  }
}

StreamSource::Overruled StreamSource::overrule(const AttemptClaims::Refusal& refusal, Held held,
                                               Time now) {
  using To = Overruled::To;
  const Verdict& verdict = refusal.verdict;
  if (const auto* busy = std::get_if<InProgress>(&verdict)) {
    const Duration left = std::max(busy->lease_until - now, kClaimPauseMin);
    return {held, To::kAgain, left, "an attempt is under way, or its process died"};
  }
  if (const auto* unknown = std::get_if<UnknownOutcome>(&verdict)) {
    held.key = refusal.key;
    return doubt(*unknown, std::move(held), now);
  }
  if (std::holds_alternative<Conflict>(verdict)) {
    return {held, To::kDeadLetter, {}, "its key was delivered, or tried, with another payload"};
  }
  if (const auto* refused = std::get_if<Refused>(&verdict)) {
    return {held, To::kAgain, kRefusedPause, refused->error.text()};
  }
  if (std::holds_alternative<Claimed>(verdict)) {
    return {held, To::kDeadLetter, {}, "its one attempt was made before, and failed"};
  }
  return {held, To::kAck, {}, {}};  // Delivered before.
}

StreamSource::Overruled StreamSource::doubt(const UnknownOutcome& unknown, Held held, Time now) {
  using To = Overruled::To;
  using Told = OutcomeProbe::Told;
  const std::string parked = unknown_outcome(held.key, unknown.reason);
  switch (claims_->terms().in_doubt) {
    case AttemptTerms::InDoubt::kGiveUp:
    case AttemptTerms::InDoubt::kPark:
      return {std::move(held), To::kDeadLetter, {}, parked};
    case AttemptTerms::InDoubt::kSendAgain:
      return {std::move(held),
              To::kAgain,
              {},
              "the endpoint recognises a repetition",
              Resolution::kNotApplied};
    case AttemptTerms::InDoubt::kAsk:
      break;
  }
  const Doubts::View view = doubts_->look(held.key, unknown.since, now);
  if (view.told == Told::kDelivered) {
    return {std::move(held), To::kAck, {}, "the endpoint has it", Resolution::kCompleted};
  }
  if (view.told == Told::kNotArrived) {
    const std::uint32_t most = claims_->terms().attempts_max;
    const To to = most != 0 && held.tries.failed >= most ? To::kDeadLetter : To::kAgain;
    return {std::move(held), to, {}, "the endpoint does not have it", Resolution::kNotApplied};
  }
  if (now + view.look_again > unknown.since + settings_.give_up_after) {
    return {std::move(held), To::kDeadLetter, {}, parked};
  }
  return {std::move(held), To::kAgain, view.look_again, "the endpoint is asked for the outcome"};
}

// Whether somebody else has the record by now, and has decided and sent it, is known to its receipt
// only: a claim is resolved if the receipt still counts.
Status StreamSource::resolve_doubts() {
  for (Overruled& each : overruled_) {
    if (!each.resolution) continue;
    Settling settling(settings_);
    KeyBlocks::Kept kept;
    if (each.to == Overruled::To::kAck) {
      settling.ack(each.held.receipt);
    } else if (each.to == Overruled::To::kDeadLetter && blocks_.blocks(each.held.group)) {
      for (const Op& op : blocks_.hold(blocking(each.held, each.held.tries, each.reason),
                                       *stream_uid_, time_from_ms(log_now_ms()), kept)) {
        settling.say(op);
      }
    } else if (each.to == Overruled::To::kDeadLetter) {
      give_up(settling, each.held, each.reason);
    } else {
      settling.nack(each.held.receipt, Duration{0}, each.reason);
    }
    settling.say(Resolve{.scope = claims_->terms().scope,
                         .key = each.held.key,
                         .resolution = *each.resolution,
                         .actor = settings_.consumer,
                         .reason = each.reason});
    HAPAX_CHECK(store_.commit({.ops = settling.ops(), .mode = Mode::kAtomic}));
  }
  std::erase_if(overruled_, [](const Overruled& each) { return each.resolution.has_value(); });
  return Ok{};
}

// It comes back when the endpoint may be asked. The attempt counts, so that asking and sending come
// to an end.
void StreamSource::ask_later(Settling& settling, const Held& held, const Settlement& settlement) {
  retry(settling, held,
        {.after = doubts_->patience(), .reason = unknown_outcome(held.key, settlement.reason)});
}

// What is said of the claim of an attempt. An endpoint that recognises repetitions is sent the
// record again, so for its claim an attempt without an answer is one that failed; the last one is
// not.
Outcome StreamSource::outcome_of(const Settlement& settlement) const {
  const bool repeats = claims_->terms().in_doubt == AttemptTerms::InDoubt::kSendAgain;
  switch (settlement.kind) {
    case Kind::kDelivered:
      return Outcome::kCompleted;
    case Kind::kRetry:
    case Kind::kDeferred:
    case Kind::kUnknown:
      return settlement.may_have_arrived && !repeats ? Outcome::kUnknown : Outcome::kFailed;
    case Kind::kDead:
      return settlement.may_have_arrived ? Outcome::kUnknown : Outcome::kFailed;
    case Kind::kHeld:
    case Kind::kNotSent:
      break;
  }
  return Outcome::kReleased;
}

}  // namespace hapax::delivery
