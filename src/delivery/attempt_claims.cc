#include "delivery/attempt_claims.h"

#include <algorithm>
#include <utility>

#include "relay/headers.h"

namespace hapax::delivery {

void AttemptClaims::end(HandoutNumber number, Outcome outcome, std::string_view reason) {
  const auto at = open_.find(number);
  if (at == open_.end()) return;
  // Beyond that the store has not answered for long, and what it was to be told lapses.
  if (ended_.size() >= kEndedMax) ended_.pop_front();
  Open& open = at->second;
  ended_.push_back(
      outcome == Outcome::kReleased
          ? unsent(std::move(open.key), open.fence, open.attempt)
          : Ended{std::move(open.key), open.fence, outcome, relay::stored_reason(reason)});
  open_.erase(at);
}

AttemptClaims::Ended AttemptClaims::unsent(std::string key, Fence fence, std::uint32_t attempt) {
  if (attempt <= 1) return {std::move(key), fence};
  return {std::move(key), fence, Outcome::kFailed, "it was not sent"};
}

// What was opened and lapsed meanwhile is unknown to everybody else.
Status AttemptClaims::find_unheard(Store& store) {
  while (!unheard_.empty()) {
    const auto& [key, before] = unheard_.back();
    HAPAX_TRY(const auto found, store.find_claim(terms_.scope, key));
    const bool open =
        found && (found->state == ClaimState::kProcessing || found->state == ClaimState::kUnknown);
    if (open && found->owner == owner_ && found->fence > before) {
      ended_.push_back(unsent(key, found->fence, found->attempts));
    }
    unheard_.pop_back();
  }
  return Ok{};
}

Op AttemptClaims::claim_of(const Beginning& beginning, Duration lease) const {
  const bool repeats = terms_.in_doubt == AttemptTerms::InDoubt::kSendAgain;
  return Claim{.scope = terms_.scope,
               .key = beginning.record->id,
               .content = beginning.record->payload,
               .owner = owner_,
               .lease = lease,
               .retention = terms_.kept,
               .tombstone = terms_.kept,
               .on_lapse = repeats ? OnLapse::kTakeOver : OnLapse::kUnknown};
}

void AttemptClaims::speak(std::span<const Beginning> beginning, bool renews, Duration lease,
                          const AddOp& add) {
  for (std::size_t i = 0; i < ended_.size(); ++i) {
    const Ended& ended = ended_[i];
    const bool completed = ended.outcome == Outcome::kCompleted;
    const std::size_t place = add(Settle{.scope = terms_.scope,
                                         .key = ended.key,
                                         .fence = ended.fence,
                                         .outcome = ended.outcome,
                                         .reason = completed ? std::string_view() : ended.reason});
    if (i == 0) told_at_ = place;
  }
  if (renews) {
    for (const auto& [number, open] : open_) {
      add(Renew{terms_.scope, open.key, open.fence, lease});
    }
  }
  begun_.clear();
  for (const Beginning& each : beginning) {
    begun_.push_back(
        {add(claim_of(each, lease)), each.number, each.record->id, each.record->replay > 0});
  }
}

std::vector<AttemptClaims::Refusal> AttemptClaims::hear(Answer& answer) {
  // One that was not taken is told again: its claim may have lapsed, and then it cannot be released
  // any more; or there is no room now.
  std::deque<Ended> again;
  for (std::size_t i = 0; i < ended_.size(); ++i) {
    if (!std::holds_alternative<Refused>(answer.verdicts[told_at_ + i])) continue;
    if (ended_[i].outcome == Outcome::kReleased) {
      if (never_sent_.size() >= kEndedMax) never_sent_.clear();
      never_sent_.insert(ended_[i].key);
      ended_[i].outcome = Outcome::kFailed;
      ended_[i].reason = "it was not sent";
    }
    again.push_back(std::move(ended_[i]));
  }
  ended_ = std::move(again);
  std::vector<Refusal> refusals;
  for (Begun& each : std::exchange(begun_, {})) {
    Verdict& verdict = answer.verdicts[each.place];
    if (const auto* claimed = std::get_if<Claimed>(&verdict)) {
      newest_ = std::max(newest_, claimed->fence);
      open_.insert_or_assign(each.number, Open{each.key, claimed->fence, claimed->attempt});
      // What a person replays may have another attempt, if it is certain that the last one came to
      // nothing. What was never sent has not had one.
      const bool never_sent = never_sent_.erase(each.key) > 0 && claimed->attempt == 2;
      const bool may_repeat = (each.replayed || never_sent) && claimed->former == Former::kFailed;
      if (!terms_.one_attempt() || claimed->attempt == 1 || may_repeat) continue;
      end(each.number, Outcome::kFailed, "there was one attempt, and no more is made");
    }
    refusals.push_back({each.number, std::move(each.key), std::move(verdict)});
  }
  return refusals;
}

void AttemptClaims::hear_nothing(Errc why) {
  for (Begun& each : std::exchange(begun_, {})) {
    if (why == Errc::kOutcomeUnknown) unheard_.push_back({std::move(each.key), newest_});
  }
}

}  // namespace hapax::delivery
