#include <algorithm>
#include <bit>
#include <limits>
#include <string>
#include <utility>

#include "base/assert.h"
#include "core/claims.h"
#include "core/state.h"
#include "core/text_bytes.h"

namespace hapax::core {

namespace {

// --- open claims -----------------------------------------------------------------------------

std::uint64_t memory_of(const OpenClaim& claim) {
  constexpr std::uint64_t kNodes = 160;  // of the map and of the set by end, with their overhead
  return kNodes + sizeof(OpenClaim) + claim.words.bytes();
}

// What is derived from an open claim. Every change of a claim is unlink, change, link.
void link(State& state, base::Hash128 key, const OpenClaim& claim) {
  auto& ends = state.open_claims_end;
  const std::size_t before = ends.size();
  ends.emplace_hint(ends.end(), std::pair{claim.forgotten_at(), claim.fence}, key);
  HAPAX_ASSERT(ends.size() == before + 1, "a fence belongs to one open claim");
  state.claims_unknown += claim.state == ClaimState::kUnknown ? 1 : 0;
  if (claim.is_guarded()) state.guarded_claims.emplace(claim.lease_until, claim.fence);
  state.grow(state.tenants.of(claim.scope()), memory_of(claim));
}

void unlink(State& state, const OpenClaim& claim) {
  const std::size_t erased = state.open_claims_end.erase({claim.forgotten_at(), claim.fence});
  HAPAX_ASSERT(erased == 1, "every open claim is listed by its end");
  state.claims_unknown -= claim.state == ClaimState::kUnknown ? 1 : 0;
  if (claim.is_guarded()) state.guarded_claims.erase({claim.lease_until, claim.fence});
  state.shrink(state.tenants.of(claim.scope()), memory_of(claim));
}

using ClaimPtr = std::shared_ptr<const OpenClaim>;

const ClaimPtr& claim_at(const State& state, base::Hash128 key) {
  const ClaimPtr* found = state.open_claims.find(key);
  HAPAX_ASSERT(found != nullptr, "a fact about an open claim finds it");
  return *found;
}

ClaimPtr take_claim(State& state, base::Hash128 key) {
  ClaimPtr claim = state.open_claims.take(key);
  unlink(state, *claim);
  return claim;
}

void put_claim(State& state, base::Hash128 key, ClaimPtr claim) {
  link(state, key, *claim);
  state.open_claims.set(key, std::move(claim));
}

// R3: a snapshot may hold it, so it is replaced, never changed. Answers what was there.
ClaimPtr replace_claim(State& state, base::Hash128 key, ClaimPtr claim) {
  ClaimPtr before = take_claim(state, key);
  put_claim(state, key, std::move(claim));
  return before;
}

void insert_claim(State& state, base::Hash128 key, OpenClaim&& claim, Undo* undo) {
  add_open_claim(state, key, std::move(claim));
  record(undo, [key](State& undone) { take_claim(undone, key); });
}

void erase_claim(State& state, base::Hash128 key, Undo* undo) {
  ClaimPtr claim = take_claim(state, key);
  record(undo, [key, claim = std::move(claim)](State& undone) mutable {
    put_claim(undone, key, std::move(claim));
  });
}

void change_claim(State& state, base::Hash128 key, OpenClaim changed, Undo* undo) {
  ClaimPtr before =
      replace_claim(state, key, std::make_shared<const OpenClaim>(std::move(changed)));
  record(undo, [key, before = std::move(before)](State& undone) mutable {
    replace_claim(undone, key, std::move(before));
  });
}

void advance_fence(State& state, Fence used, Undo* undo) {
  if (used < state.next_fence) return;
  record(undo, [before = state.next_fence](State& undone) { undone.next_fence = before; });
  state.next_fence = used.next();
}

// --- settled claims and their bytes ----------------------------------------------------------

struct ResultBytes {
  Time slice_end;
  std::uint32_t segment;
  std::uint32_t length;
};

ResultBytes bytes_of(const SettledEntry& entry) {
  return {result_slice_end(entry), entry.where.segment, entry.where.length};
}

void count(State& state, ResultBytes bytes) {
  add_live(state, bytes.segment, bytes.length);
  state.results_end[bytes.slice_end][bytes.segment] += bytes.length;
}

void uncount(State& state, ResultBytes bytes) {
  drop_live(state, bytes.segment, bytes.length);
  const auto slice = state.results_end.find(bytes.slice_end);
  HAPAX_ASSERT(slice != state.results_end.end(), "a counted result lies in a slice");
  const auto counted = slice->second.find(bytes.segment);
  HAPAX_ASSERT(counted != slice->second.end(), "a slice knows the segments of its results");
  HAPAX_ASSERT(counted->second >= bytes.length, "a slice holds the bytes of all its results");
  counted->second -= bytes.length;
  if (counted->second == 0) slice->second.erase(counted);
  if (slice->second.empty()) state.results_end.erase(slice);
}

void count_result(State& state, const SettledEntry& entry, Undo* undo) {
  const ResultBytes bytes = bytes_of(entry);
  count(state, bytes);
  record(undo, [bytes](State& undone) { uncount(undone, bytes); });
}

void uncount_result(State& state, const SettledEntry& entry, Undo* undo) {
  const ResultBytes bytes = bytes_of(entry);
  uncount(state, bytes);
  record(undo, [bytes](State& undone) { count(undone, bytes); });
}

// From its slice's end on collect_claims() may have dropped the bytes already.
bool is_counted(const SettledEntry& entry, Time now) {
  return entry.where.length > 0 && now < result_slice_end(entry);
}

// Who is counted as the owner of a settled entry; only a claim that was completed is.
constexpr std::uint32_t kNobody = OwnerCounts::kNobody;
constexpr std::uint32_t kClaims = 1;

void add_entry(State& state, const SettledEntry& entry, Time now, Undo* undo,
               std::uint32_t owner = kNobody) {
  const Added added = state.settled.add(entry, owner, now);
  record(undo, [added](State& undone) { undone.settled.undo(added); });
}

void complete(State& state, const ClaimSettled& fact, base::Where at, Time now, Undo* undo) {
  const OpenClaim& claim = *claim_at(state, fact.hash);
  Tenant& tenant = state.tenants.of(claim.scope());
  constexpr std::uint32_t kAttemptsMax = std::numeric_limits<std::uint16_t>::max();
  const SettledEntry entry{
      .key = fact.hash,
      .fingerprint = claim.fingerprint,
      .fence_number = fact.fence.value,
      .settled_ms = to_ms(now),
      .retention_seconds = claim.retention.raw(),
      .tombstone_seconds = claim.tombstone.raw(),
      .where = at,
      .attempts = static_cast<std::uint16_t>(std::min(claim.attempts, kAttemptsMax))};
  erase_claim(state, fact.hash, undo);
  add_entry(state, entry, now, undo, kClaims);
  count_result(state, entry, undo);
  charge_settled(state, tenant, entry, now, undo);
}

}  // namespace

void charge_settled(State& state, Tenant& tenant, const SettledEntry& entry, Time now, Undo* undo) {
  const auto charge = [&](Time end, Load load) {
    Load& sum = state.tenants.add(tenant, end, now, load);
    record(undo,
           [owner = &tenant, from = &sum, load](State&) { Tenants::take(*owner, *from, load); });
  };
  charge(entry.expires_at(), {.memory = kSettledBytes});
  if (entry.where.length > 0) charge(entry.result_until(), {.storage = entry.where.length});
}

std::uint64_t claims_settled(const State& state) { return state.settled.count_of(kClaims); }

Time result_slice_end(const SettledEntry& entry) {
  if (Window::from_raw(entry.retention_seconds).is_forever()) return Time::max();
  // Powers of two, so that results of different retentions share slices.
  const std::uint32_t slice_seconds = std::max(1U, std::bit_floor(entry.retention_seconds / 16));
  const std::int64_t slice_ms = std::int64_t{slice_seconds} * 1000;
  const std::int64_t end_ms = to_ms(entry.result_until());
  return time_from_ms((end_ms + slice_ms - 1) / slice_ms * slice_ms);
}

bool is_live_result(const State& state, base::Hash128 key, base::Where at, Time now) {
  const std::optional<SettledEntry> entry = find_settled(state, key, now);
  return entry && entry->where == at && is_counted(*entry, now);
}

void add_open_claim(State& state, base::Hash128 key, OpenClaim&& claim) {
  HAPAX_ASSERT(!state.open_claims.contains(key), "a key has one open claim");
  put_claim(state, key, std::make_shared<const OpenClaim>(std::move(claim)));
}

void apply_claim(State& state, const ClaimOpened& fact, base::Where, Time now, Undo* undo) {
  // K2: also what makes the fence of an earlier claim of this key an old one.
  HAPAX_ASSERT(fact.fence >= state.next_fence, "a new claim has a higher fence than all before");
  // Taken over, failed, or past its end and not collected yet.
  const Former former = former_of(find_open_claim(state, fact.hash, now));
  if (state.open_claims.contains(fact.hash)) erase_claim(state, fact.hash, undo);
  insert_claim(state, fact.hash,
               OpenClaim{.state = ClaimState::kProcessing,
                         .on_lapse = fact.on_lapse,
                         .former = former,
                         .attempts = fact.attempt,
                         .words = Words<4>({fact.scope, fact.key, fact.owner, {}}),
                         .fingerprint = fact.fingerprint,
                         .fence = fact.fence,
                         .since = now,
                         .lease_until = fact.lease_until,
                         .retention = fact.retention,
                         .tombstone = fact.tombstone},
               undo);
  advance_fence(state, fact.fence, undo);
}

void apply_claim(State& state, const ClaimRenewed& fact, base::Where, Time, Undo* undo) {
  OpenClaim renewed = *claim_at(state, fact.hash);
  renewed.lease_until = fact.lease_until;
  change_claim(state, fact.hash, std::move(renewed), undo);
}

void apply_claim(State& state, const ClaimSettled& fact, base::Where at, Time now, Undo* undo) {
  const base::Hash128 key = fact.hash;
  // K1: nobody else can have settled it.
  HAPAX_ASSERT(claim_at(state, key)->fence == fact.fence, "a claim is settled with its own fence");
  HAPAX_ASSERT(fact.outcome != Outcome::kReleased, "a release is a ClaimForgotten");
  if (fact.outcome == Outcome::kCompleted) return complete(state, fact, at, now, undo);

  OpenClaim settled = *claim_at(state, key);
  settled.state = fact.outcome == Outcome::kFailed ? ClaimState::kFailed : ClaimState::kUnknown;
  settled.since = now;
  settled.words = Words<4>({settled.scope(), settled.key(), settled.owner(), fact.reason});
  change_claim(state, key, std::move(settled), undo);
}

void apply_claim(State& state, const ClaimLapsed& fact, base::Where, Time now, Undo* undo) {
  OpenClaim lapsed = *claim_at(state, fact.hash);
  HAPAX_ASSERT(lapsed.lapsed_at(now), "only a lease that ran out lapses");
  lapsed.words = Words<4>({lapsed.scope(), lapsed.key(), lapsed.owner(), lapse_reason(lapsed)});
  lapsed.state = ClaimState::kUnknown;
  lapsed.since = lapsed.lease_until;
  change_claim(state, fact.hash, std::move(lapsed), undo);
}

void apply_claim(State& state, const ClaimForgotten& fact, base::Where, Time now, Undo* undo) {
  if (state.open_claims.contains(fact.hash)) erase_claim(state, fact.hash, undo);
  if (const std::optional<SettledEntry> done = find_settled(state, fact.hash, now)) {
    // Counted from now on it outlives the entry it hides, which may still be in a snapshot.
    add_entry(state,
              SettledEntry{.key = done->key,
                           .fingerprint = done->fingerprint,
                           .fence_number = fact.fence.value,
                           .settled_ms = to_ms(now),
                           .retention_seconds = 0,
                           .tombstone_seconds = done->tombstone_seconds,
                           .where = {},
                           .attempts = done->attempts,
                           .forgotten = 1},
              now, undo);
    if (is_counted(*done, now)) uncount_result(state, *done, undo);
  }
  advance_fence(state, fact.fence, undo);
}

void apply_claim(State& state, const CommitAnswered& fact, base::Where at, Time now, Undo* undo) {
  const SettledEntry entry{.key = fact.hash,
                           .fingerprint = fact.fingerprint,
                           .fence_number = fact.fence.value,
                           .settled_ms = to_ms(now),
                           .retention_seconds = fact.window.raw(),
                           .tombstone_seconds = fact.window.raw(),
                           .where = at,
                           .attempts = 1};
  add_entry(state, entry, now, undo);
  count_result(state, entry, undo);
  advance_fence(state, fact.fence, undo);
}

void apply_claim(State& state, const ResultMoved& fact, base::Where at, Time now, Undo* undo) {
  const std::optional<SettledEntry> before = find_settled(state, fact.hash, now);
  if (!before || !is_counted(*before, now)) return;  // Its time ran out while it was copied.
  const auto length = static_cast<std::uint32_t>(fact.frame.size());
  const auto trailer = static_cast<std::uint32_t>(kFactTrailer);
  HAPAX_ASSERT(at.length >= length + trailer, "the copy lies at the end of its fact");
  SettledEntry moved = *before;
  moved.where = {at.segment, at.offset + at.length - trailer - length, length};
  HAPAX_ASSERT(moved.newer_than(*before), "a result moves to a later segment");
  add_entry(state, moved, now, undo);
  uncount_result(state, *before, undo);
  count_result(state, moved, undo);
}

// Same fence, later segment: it counts as newer than the entry whose bytes are gone.
void apply_claim(State& state, const ResultLost& fact, base::Where at, Time now, Undo* undo) {
  const std::optional<SettledEntry> before = find_settled(state, fact.hash, now);
  if (!before || !is_counted(*before, now)) return;
  SettledEntry lost = *before;
  lost.retention_seconds = 0;
  lost.where = {at.segment, at.offset, 0};
  add_entry(state, lost, now, undo);
  uncount_result(state, *before, undo);
  ++state.results_lost;
  record(undo, [](State& s) { --s.results_lost; });
}

std::size_t collect_claims(State& state, Time now, std::size_t work_max) {
  std::size_t work = 0;
  for (; work < work_max && !state.open_claims_end.empty(); ++work) {
    const auto [end, key] = *state.open_claims_end.begin();
    if (end.first > now) break;
    take_claim(state, key);
  }
  for (; work < work_max && !state.results_end.empty(); ++work) {
    const auto slice = state.results_end.begin();
    if (slice->first > now) break;
    const auto segment = slice->second.begin();
    drop_live(state, segment->first, segment->second);
    slice->second.erase(segment);
    if (slice->second.empty()) state.results_end.erase(slice);
  }
  return work;
}

}  // namespace hapax::core
