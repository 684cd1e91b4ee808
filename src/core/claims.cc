#include "core/claims.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <utility>

#include "base/format.h"
#include "base/mutant.h"
#include "core/show_text.h"
#include "core/tenants.h"
#include "core/turn.h"

namespace hapax::core {

namespace {

using base::Mutant;
using base::mutant;

// What an operation comes to: an answer, and the fact that makes it true unless nothing changes.
struct Ruling {
  Verdict verdict;
  std::optional<Fact> fact;
};

// --- words for people ------------------------------------------------------------------------

std::string subject_of(std::string_view scope, std::string_view key) {
  std::string subject(scope);
  subject += '/';
  return subject.append(key);
}

std::string_view word_for(ClaimState state) {
  constexpr std::array<std::string_view, 4> kWords = {"in progress", "completed", "failed",
                                                      "of unknown outcome"};
  return kWords.at(static_cast<std::size_t>(state));
}

std::string standing_of(const State& state, base::Hash128 key, Time now) {
  const std::optional<ClaimStatus> status = claim_status(state, key, now);
  if (!status) return "is not known";
  std::string text = "is ";
  text += word_for(status->state);
  return base::format("{} with fence {}", text, status->fence.value);
}

template <class Op>
Refused refused(Errc code, const Op& op, const std::string& what) {
  return Refused{
      Error{code, "claim '" + printable(local_name(subject_of(op.scope, op.key))) + "' " + what}};
}

// --- the rules -------------------------------------------------------------------------------

Window longer(Window one, Window other) {  // Window::forever() has the highest raw value.
  return Window::from_raw(std::max(one.raw(), other.raw()));
}

std::optional<Refused> no_room(const State& state, Tenant& tenant, const Claim& op) {
  std::optional<Error> full = check_memory(state, tenant, 0);
  if (!full) return std::nullopt;
  return refused(full->code, op, "was not opened: " + full->detail);
}

Ruling open_claim(const State& state, const Claim& op, const ClaimHashes& hashes, Time now,
                  const OpenClaim* before) {
  const std::uint32_t attempt = before == nullptr ? 1 : before->attempts + 1;
  const ClaimOpened opened{.hash = hashes.key,
                           .scope = op.scope,
                           .key = op.key,
                           .fingerprint = hashes.content,
                           .owner = op.owner,
                           .fence = state.next_fence,  // K2
                           .lease_until = now + op.lease,
                           .attempt = attempt,
                           .retention = op.retention,
                           .tombstone = longer(op.tombstone, op.retention),
                           .on_lapse = op.on_lapse};
  return {Claimed{opened.fence, attempt, opened.lease_until, former_of(before)}, opened};
}

// The safer of the two words counts: that of the claim whose lease ran out, or that of the next
// one.
bool lapse_is_unknown(const OpenClaim& open, const Claim& op, Time now) {
  if (mutant(Mutant::kLapseTakenOver)) return false;
  const bool said = open.on_lapse == OnLapse::kUnknown || op.on_lapse == OnLapse::kUnknown;
  return said && open.lapsed_at(now) && !mutant(Mutant::kUncertainSticks);
}

Ruling decide_claim(State& state, const Claim& op, const ClaimHashes& hashes, Time now) {
  if (const std::optional<SettledEntry> done = find_settled(state, hashes.key, now)) {
    if (done->fingerprint != hashes.content) {
      return {Conflict{done->fingerprint, hashes.content, done->settled_at()}, {}};
    }
    return {DuplicateClaim{{}, done->fence(), done->settled_at(), done->expires_at()}, {}};
  }
  const OpenClaim* open = find_open_claim(state, hashes.key, now);
  if (open == nullptr) {
    // Only new keys take room. What is open can always be taken over and settled.
    Tenant& tenant = state.tenants.of(op.scope);
    if (std::optional<Refused> full = no_room(state, tenant, op)) return {*std::move(full), {}};
    return open_claim(state, op, hashes, now, nullptr);
  }

  // K4: checked before "in progress", so that a caller with other content never waits for a result
  // that is not its own. A failed claim did not happen: its key is free for other content.
  if (open->state != ClaimState::kFailed && open->fingerprint != hashes.content) {
    return {Conflict{open->fingerprint, hashes.content, open->since_at(now)}, {}};
  }
  // K5: it may have happened, so doing it again is not this caller's decision.
  if (open->state == ClaimState::kUnknown) {
    return {UnknownOutcome{std::string(open->owner()), std::string(open->reason()), open->since},
            {}};
  }
  // K6: the same, found out now.
  if (lapse_is_unknown(*open, op, now)) {
    return {UnknownOutcome{std::string(open->owner()), lapse_reason(*open), open->lease_until},
            ClaimLapsed{hashes.key}};
  }
  // K1: also for the owner itself: two of its threads must not both win. It has Renew.
  const bool lease_over = open->lease_until <= now && !mutant(Mutant::kUncertainSticks);
  if (open->state == ClaimState::kProcessing && !lease_over) {
    return {InProgress{std::string(open->owner()), open->lease_until, open->attempts}, {}};
  }
  return open_claim(state, op, hashes, now, open);
}

// The fence a late worker is told: the newest one known for the key, 0 = none.
Fenced fenced(const State& state, base::Hash128 key, Fence received, Time now) {
  if (const OpenClaim* open = find_open_claim(state, key, now)) {
    return {open->fence.value, received.value};
  }
  if (const SettledEntry* entry = state.settled.find(key, now)) {
    return {entry->fence_number, received.value};
  }
  return {0, received.value};
}

Ruling decide_renew(const State& state, const Renew& op, base::Hash128 key, Time now) {
  const OpenClaim* open = find_open_claim(state, key, now);
  if (open == nullptr || open->fence != op.fence) return {fenced(state, key, op.fence, now), {}};
  if (open->state_at(now) != ClaimState::kProcessing) {
    return {refused(Errc::kPreconditionFailed, op,
                    standing_of(state, key, now) + "; only a claim in progress can be renewed"),
            {}};
  }
  // The lease may be over: while nobody took over, the holder of an unguarded claim goes on.
  const Time lease_until = now + op.lease;
  return {Renewed{lease_until}, ClaimRenewed{key, lease_until}};
}

Ruling decide_settle(const State& state, const Settle& op, base::Hash128 key, Time now) {
  const OpenClaim* open = find_open_claim(state, key, now);
  if (open == nullptr) {
    // The same settle again, because its answer was lost. K3: the first result stays.
    const std::optional<SettledEntry> done = find_settled(state, key, now);
    const bool repeated = done && done->fence() == op.fence && op.outcome == Outcome::kCompleted;
    if (repeated) return {Done{}, {}};
    return {fenced(state, key, op.fence, now), {}};
  }
  if (open->fence != op.fence) return {fenced(state, key, op.fence, now), {}};

  // The holder of the current fence knows best what became of its work, even after its lease ended
  // or after it said something else: nobody has built on that yet.
  switch (op.outcome) {
    case Outcome::kCompleted:
      return {Done{}, ClaimSettled{key, op.fence, op.outcome, {}, op.result, open->owner()}};
    case Outcome::kFailed:
      if (open->state == ClaimState::kFailed) return {Done{}, {}};
      return {Done{}, ClaimSettled{key, op.fence, op.outcome, op.reason, {}, {}}};
    case Outcome::kUnknown:
      if (open->state_at(now) == ClaimState::kUnknown) return {Done{}, {}};
      return {Done{}, ClaimSettled{key, op.fence, op.outcome, op.reason, {}, {}}};
    case Outcome::kReleased:
      break;
  }
  // K5: releasing would let the next claim do again what may have happened.
  if (open->state_at(now) == ClaimState::kUnknown) {
    return {refused(Errc::kPreconditionFailed, op,
                    standing_of(state, key, now) +
                        " and cannot be released by its holder; settle it as completed or failed,"
                        " or resolve it"),
            {}};
  }
  return {Done{}, ClaimForgotten{key, op.fence}};
}

// Only of a result that would be stored: a repeat and who is fenced hear just that.
template <class Op>
std::optional<Refused> no_storage(Turn& turn, const Op& op, const Ruling& ruling) {
  const auto* settled = ruling.fact ? std::get_if<ClaimSettled>(&*ruling.fact) : nullptr;
  if (settled == nullptr) return std::nullopt;
  const std::uint64_t bytes = settled->result.headers.size() + settled->result.body.size();
  Tenant& tenant = turn.state().tenants.of(op.scope);
  free_storage(turn, tenant, bytes);
  std::optional<Error> full = check_storage(tenant, bytes);
  if (!full) return std::nullopt;
  return refused(full->code, op, "was left as it is: " + full->detail);
}

// Acts of a person are audited: who, and why.
template <class Op>
std::optional<Refused> unsigned_act(const Op& op) {
  if (!op.actor.empty() && !op.reason.empty()) return std::nullopt;
  std::string_view missing = op.actor.empty() ? "an actor" : "a reason";
  if (op.actor.empty() && op.reason.empty()) missing = "an actor and a reason";
  return refused(Errc::kInvalidArgument, op,
                 "was left as it is: the act is audited and needs " + std::string(missing));
}

Ruling decide_resolve(const State& state, const Resolve& op, base::Hash128 key, Time now) {
  if (std::optional<Refused> refusal = unsigned_act(op)) return {*std::move(refusal), {}};
  const OpenClaim* open = find_open_claim(state, key, now);
  if (open == nullptr || open->state_at(now) != ClaimState::kUnknown) {
    return {refused(Errc::kPreconditionFailed, op,
                    standing_of(state, key, now) + "; only an unknown outcome can be resolved"),
            {}};
  }
  switch (op.resolution) {
    case Resolution::kCompleted:
      return {Done{},
              ClaimSettled{key, open->fence, Outcome::kCompleted, {}, op.result, open->owner()}};
    case Resolution::kNotApplied:
      return {Done{}, ClaimSettled{key, open->fence, Outcome::kFailed, op.reason, {}, {}}};
    case Resolution::kRelease:
      break;
  }
  return {Done{}, ClaimForgotten{key, open->fence}};
}

std::string_view act_of(Resolution resolution) {
  constexpr std::array<std::string_view, 3> kActs = {"resolve-completed", "resolve-not-applied",
                                                     "release"};
  return kActs.at(static_cast<std::size_t>(resolution));
}

Ruling decide_forget(const State& state, const Forget& op, base::Hash128 key, Time now) {
  if (std::optional<Refused> refusal = unsigned_act(op)) return {*std::move(refusal), {}};
  const bool known = find_open_claim(state, key, now) != nullptr || find_settled(state, key, now);
  if (!known) return {refused(Errc::kNotFound, op, "is not known"), {}};
  // A fence of its own, so that it counts as newer than what it removes.
  return {Done{}, ClaimForgotten{key, state.next_fence}};
}

Verdict conclude(Turn& turn, Ruling ruling) {
  if (ruling.fact) turn.emit(*ruling.fact);
  if (std::holds_alternative<Fenced>(ruling.verdict)) turn.count_fenced();
  return std::move(ruling.verdict);
}

template <class Op>
Verdict conclude_audited(Turn& turn, const Ruling& ruling, std::string_view act, const Op& op) {
  if (ruling.fact) {
    turn.emit(*ruling.fact);
    if (auto full = audit(turn, act, subject_of(op.scope, op.key), op.actor, op.reason)) {
      return Refused{*std::move(full)};
    }
  }
  return ruling.verdict;
}

}  // namespace

Verdict run(Turn& turn, const Claim& op, const ClaimHashes& hashes) {
  Verdict verdict = conclude(turn, decide_claim(turn.state(), op, hashes, turn.now()));
  if (std::holds_alternative<DuplicateClaim>(verdict)) {
    const SettledEntry* const done = turn.state().settled.find(hashes.key, turn.now());
    if (done->result_until() > turn.now()) turn.tell_result(done->where.length);
  }
  return verdict;
}

Verdict run(Turn& turn, const Renew& op, const ClaimHashes& hashes) {
  return conclude(turn, decide_renew(turn.state(), op, hashes.key, turn.now()));
}

Verdict run(Turn& turn, const Settle& op, const ClaimHashes& hashes) {
  Ruling ruling = decide_settle(turn.state(), op, hashes.key, turn.now());
  if (auto full = no_storage(turn, op, ruling)) return *std::move(full);
  return conclude(turn, std::move(ruling));
}

Verdict run(Turn& turn, const Resolve& op, const ClaimHashes& hashes) {
  const Ruling ruling = decide_resolve(turn.state(), op, hashes.key, turn.now());
  if (auto full = no_storage(turn, op, ruling)) return *std::move(full);
  return conclude_audited(turn, ruling, act_of(op.resolution), op);
}

Verdict run(Turn& turn, const Forget& op, const ClaimHashes& hashes) {
  const Ruling ruling = decide_forget(turn.state(), op, hashes.key, turn.now());
  return conclude_audited(turn, ruling, "forget", op);
}

void note_lapse(Turn& turn, const Claim& op, base::Hash128 key) {
  const OpenClaim* open = find_open_claim(turn.state(), key, turn.now());
  if (open != nullptr && lapse_is_unknown(*open, op, turn.now())) turn.emit(ClaimLapsed{key});
}

Former former_of(const OpenClaim* open) {
  if (open == nullptr) return Former::kNone;
  // Once lapsed, lapsed: that a later owner failed says nothing about the one before it.
  const bool lapsed = open->state == ClaimState::kProcessing || open->former == Former::kLapsed;
  return lapsed ? Former::kLapsed : Former::kFailed;
}

std::string lapse_reason(const OpenClaim& open) {
  return base::format(
      "the lease of owner {} ran out at {} ms (log time) before the owner settled; it may have "
      "done the work",
      shown(open.owner()), to_ms(open.lease_until));
}

std::uint64_t claims_unknown(const State& state, Time now) {
  const auto& guarded = state.guarded_claims;
  const auto behind = guarded.upper_bound({now, Fence{~std::uint64_t{0}}});
  return state.claims_unknown + static_cast<std::uint64_t>(std::distance(guarded.begin(), behind));
}

const OpenClaim* find_open_claim(const State& state, base::Hash128 key, Time now) {
  const auto* found = state.open_claims.find(key);
  if (found == nullptr || (*found)->forgotten_at() <= now) return nullptr;
  return found->get();
}

std::optional<SettledEntry> find_settled(const State& state, base::Hash128 key, Time now) {
  const SettledEntry* entry = state.settled.find(key, now);
  if (entry == nullptr || entry->forgotten != 0) return std::nullopt;
  return *entry;
}

std::optional<ClaimStatus> claim_status(const State& state, base::Hash128 key, Time now) {
  if (const std::optional<SettledEntry> done = find_settled(state, key, now)) {
    return ClaimStatus{.state = ClaimState::kCompleted,
                       .fence = done->fence(),
                       .attempts = done->attempts,
                       .fingerprint = done->fingerprint,
                       .since = done->settled_at(),
                       .until = done->expires_at()};
  }
  const OpenClaim* open = find_open_claim(state, key, now);
  if (open == nullptr) return std::nullopt;
  const ClaimState standing = open->state_at(now);
  const bool processing = standing == ClaimState::kProcessing;
  const bool lapsed = standing == ClaimState::kUnknown && open->is_guarded();
  const std::string reason = lapsed ? lapse_reason(*open) : std::string(open->reason());
  return ClaimStatus{.state = standing,
                     .fence = open->fence,
                     .attempts = open->attempts,
                     .fingerprint = open->fingerprint,
                     .owner = std::string(standing == ClaimState::kFailed ? "" : open->owner()),
                     .reason = processing ? "" : reason,
                     .since = open->since_at(now),
                     .until = processing ? open->lease_until : open->forgotten_at()};
}

}  // namespace hapax::core
