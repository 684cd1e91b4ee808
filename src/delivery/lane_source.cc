#include "delivery/lane_source.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/format.h"
#include "relay/headers.h"

namespace hapax::delivery {

namespace {

using Kind = Settlement::Kind;
using LaneKind = relay::SendOutcome::Kind;

// The number of a hand-out is the number of its batch and its place in it.
constexpr unsigned kPlaceBits = 20;

HandoutNumber number_of(std::uint64_t batch, std::size_t place) {
  return (batch << kPlaceBits) | place;
}

constexpr std::string_view kPoison =
    "taken that often and never settled: whoever sent it did not survive it";

LaneKind lane_kind(Kind kind) {
  switch (kind) {
    case Kind::kDelivered:
      return LaneKind::kAccepted;
    case Kind::kRetry:
      return LaneKind::kRetry;
    case Kind::kDead:
      return LaneKind::kDead;
    // It may have arrived; it is sent again under its id. No attempt of it counts.
    case Kind::kUnknown:
    case Kind::kHeld:
    case Kind::kDeferred:
      return LaneKind::kHeld;
    case Kind::kNotSent:
      break;
  }
  return LaneKind::kNotSent;
}

}  // namespace

Result<Hand> LaneSource::take(const TakeCall& call) {
  HAPAX_ASSERT(call.beginning.empty(), "a lane notes nothing before a record is sent");
  auto hand = settle_and_take(call);
  if (!hand) forget();
  return hand;
}

Result<Hand> LaneSource::settle_and_take(const TakeCall& call) {
  Hand hand;
  for (const Settlement& settlement : call.settled) note(settlement);
  HAPAX_CHECK(keep_leases(call.lease, hand));
  HAPAX_CHECK(exchange(call.room, hand));
  HAPAX_CHECK(give_back_surplus());
  const std::int64_t now = clock_.steady_ms();
  hand.lease_left = Duration{std::max<std::int64_t>(lease_end_ms_ - now, 0)};
  hand.next_due = Duration{std::max<std::int64_t>(renew_at_ms_ - now, 0)};
  return hand;
}

void LaneSource::note(const Settlement& settlement) {
  const auto at = lane_of_batch_.find(settlement.number >> kPlaceBits);
  if (at == lane_of_batch_.end()) return;  // It was lost meanwhile.
  Lane& lane = *find(at->second);
  const std::size_t place = settlement.number & ((std::uint64_t{1} << kPlaceBits) - 1);
  HAPAX_ASSERT(!lane.settled[place], "a record is settled once");
  const std::int64_t now = clock_.steady_ms();
  lane.settled[place] = true;
  lane.outcomes[place] =
      settlement.kind == Kind::kRetry
          ? retry(settlement, Duration{now - lane.tried_ms[place]})
          : relay::SendOutcome{lane_kind(settlement.kind), settlement.after, settlement.reason};
  lane.due_ms[place] = now + settlement.after.count();
  --lane.unsettled;
}

relay::SendOutcome LaneSource::retry(const Settlement& settlement, Duration tried_for) const {
  const bool over = settings_.give_up_after != Duration{0} &&
                    tried_for + settlement.after > settings_.give_up_after;
  if (!over) return {LaneKind::kRetry, settlement.after, settlement.reason};
  const std::string reason =
      base::format("given up after {} ms: {}", tried_for.count(), settlement.reason);
  if (log_) log_("a record is a dead letter: " + reason);
  return {LaneKind::kDead, Duration{0}, reason};
}

Status LaneSource::keep_leases(Duration lease, Hand& hand) {
  const std::int64_t asked_ms = clock_.steady_ms();
  if (asked_ms < renew_at_ms_) return Ok{};
  std::vector<relay::Lease> kept;
  for (const Lane& lane : lanes_) kept.push_back(lane.lease);
  HAPAX_TRY(const relay::Leases told, outbox_.lease(kept, lease));
  share_ = told.share;
  leased_at_ms_ = asked_ms;
  // Y2: the lease is over here before it is over there.
  lease_end_ms_ = asked_ms + told.left.count();
  renew_at_ms_ = asked_ms + told.left.count() / 3;
  for (const relay::Lease& each : kept) {
    if (std::find(told.held.begin(), told.held.end(), each) == told.held.end()) {
      lose(each.lane, hand);
    }
  }
  for (const relay::Lease& each : told.held) {
    if (find(each.lane) != nullptr) continue;
    lanes_.push_back({.lease = each});
    news_ = true;
  }
  return Ok{};
}

Status LaneSource::exchange(std::uint32_t room, Hand& hand) {
  if (alone_ && !is_out()) alone_ = false;
  const std::optional<std::uint32_t> alone = room == 0 ? std::nullopt : next_suspect();
  // While a suspect waits for its turn nothing more is taken, or its turn would never come.
  const bool rest = alone_ || (!alone && !suspects_.empty());
  const std::vector<relay::LaneTurn> turns = turns_of(rest ? 0 : room, alone);
  if (turns.empty()) return Ok{};
  HAPAX_TRY(relay::TakenBatches taken, outbox_.next(turns));
  for (const std::uint32_t lane : taken.lost) lose(lane, hand);
  if (!rest && room > 0) suspects_ = std::move(taken.suspects);
  hand.more = taken.more || alone || (!suspects_.empty() && !is_out());
  if (taken.batches.empty() && !hand.more && !rest && room > 0 && asked_all_) news_ = false;
  alone_ = alone_ || (alone && !taken.batches.empty());
  for (relay::OutgoingBatch& batch : taken.batches) {
    hand_out(*find(batch.lane), std::move(batch), alone.has_value(), hand);
  }
  return Ok{};
}

std::vector<relay::LaneTurn> LaneSource::turns_of(std::uint32_t room,
                                                  const std::optional<std::uint32_t>& alone) {
  std::vector<relay::LaneTurn> turns;
  const auto is_chosen = [&](const Lane& lane, std::size_t at) {
    if (at >= share_ || lane.unsettled != 0) return false;
    return alone ? lane.lease.lane == *alone : news_ || !lane.outcomes.empty();
  };
  // The room is divided: a lane that turns out to be empty leaves room to the others.
  std::uint32_t chosen = 0;
  for (std::size_t at = 0; at < lanes_.size(); ++at) chosen += is_chosen(lanes_[at], at) ? 1U : 0U;
  const std::uint32_t each =
      chosen == 0 ? 0 : std::min(std::max(room / chosen, 1U), settings_.batch);
  std::uint32_t left = room;
  asked_all_ = chosen <= room;
  ++first_;
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    const std::size_t at = (first_ + i) % lanes_.size();
    Lane& lane = lanes_[at];
    if (lane.unsettled != 0) continue;
    const bool wanted = left > 0 && is_chosen(lane, at);
    if (!wanted && lane.outcomes.empty()) continue;
    const std::uint32_t most = wanted ? std::min(left, each) : 0;
    left -= most;
    hold_gaps(lane);
    shorten_waits(lane);
    turns.push_back({.lease = lane.lease,
                     .outcomes = std::move(lane.outcomes),
                     .take = most,
                     .alone = wanted && alone});
    lane.outcomes.clear();
    lane_of_batch_.erase(std::exchange(lane.batch, 0));
  }
  return turns;
}

// A record waits from when it failed on, not from when all others of its batch were answered.
void LaneSource::shorten_waits(Lane& lane) const {
  const std::int64_t now = clock_.steady_ms();
  for (std::size_t i = 0; i < lane.outcomes.size(); ++i) {
    Duration& after = lane.outcomes[i].after;
    if (after > Duration{0}) after = Duration{std::max<std::int64_t>(lane.due_ms[i] - now, 1)};
  }
}

// After each turn of the others one of these. What was taken least often is innocent most likely,
// so it comes first and does not wait for as long as another ends relays.
std::optional<std::uint32_t> LaneSource::next_suspect() {
  if (alone_ || is_out()) return {};
  std::vector<relay::SuspectLane> named = std::exchange(suspects_, {});
  std::erase_if(named, [&](const auto& each) { return find(each.lane) == nullptr; });
  const auto least = std::min_element(named.begin(), named.end(), [](const auto& a, const auto& b) {
    return a.attempts < b.attempts;
  });
  return least == named.end() ? std::nullopt : std::optional{least->lane};
}

bool LaneSource::is_out() const {
  return std::any_of(lanes_.begin(), lanes_.end(),
                     [](const Lane& lane) { return lane.unsettled != 0; });
}

void LaneSource::hand_out(Lane& lane, relay::OutgoingBatch batch, bool alone, Hand& hand) {
  lane.batch = ++batches_;
  lane_of_batch_.emplace(lane.batch, lane.lease.lane);
  lane.unsettled = batch.records.size();
  lane.outcomes.assign(batch.records.size(), {});
  lane.settled.assign(batch.records.size(), false);
  lane.due_ms.assign(batch.records.size(), 0);
  lane.tried_ms.clear();
  // Y5: whoever took the record alone did not live to say what became of it, that often.
  Outgoing& front = batch.records.front();
  if (alone && front.attempt > settings_.attempts_max) front.flaw = kPoison;
  const std::int64_t now = clock_.steady_ms();
  for (std::size_t i = 0; i < batch.records.size(); ++i) {
    Outgoing& record = batch.records[i];
    lane.tried_ms.push_back(now - record.tried_for.count());
    if (hooks_.wanted && !hooks_.wanted(record)) {
      pass_over(lane, i);
      continue;
    }
    relay::take_replay_header(record);
    if (hooks_.dress) hooks_.dress(record);
    hand.records.push_back({number_of(lane.batch, i), std::move(record), 0});
  }
  if (lane.unsettled == 0) hand.more = true;  // There is something to settle.
}

// Behind a record of its key that waits it is passed over all the same: nothing is sent.
void LaneSource::pass_over(Lane& lane, std::size_t place) {
  ++passed_over_;
  lane.settled[place] = true;
  lane.outcomes[place] = {.kind = LaneKind::kAccepted};
  --lane.unsettled;
}

Status LaneSource::give_back_surplus() {
  std::vector<relay::Lease> surplus;
  // A lane whose batch is out stays until that is settled.
  for (std::size_t i = lanes_.size(); i > share_; --i) {
    Lane& lane = lanes_[i - 1];
    if (lane.batch != 0) continue;
    surplus.push_back(lane.lease);
    lanes_.erase(lanes_.begin() + static_cast<std::ptrdiff_t>(i - 1));
  }
  return surplus.empty() ? Status(Ok{}) : outbox_.release(surplus);
}

void LaneSource::close(Lane& lane) {
  for (std::size_t i = 0; i < lane.settled.size(); ++i) {
    if (!lane.settled[i]) lane.outcomes[i].kind = LaneKind::kNotSent;
  }
  lane.unsettled = 0;
  hold_gaps(lane);
}

// A record in the middle that was not sent would make its lane go back to it, and records behind it
// that were delivered would be sent again. So it waits on its own; its attempts stay.
void LaneSource::hold_gaps(Lane& lane) {
  const auto is_sent = [](const auto& outcome) { return outcome.kind != LaneKind::kNotSent; };
  const auto last = std::find_if(lane.outcomes.rbegin(), lane.outcomes.rend(), is_sent);
  for (auto outcome = lane.outcomes.begin(); outcome != last.base(); ++outcome) {
    if (!is_sent(*outcome)) outcome->kind = LaneKind::kHeld;
  }
}

Status LaneSource::give_back(std::span<const Settlement> settled) {
  for (const Settlement& settlement : settled) note(settlement);
  std::vector<relay::LaneTurn> turns;
  std::vector<relay::Lease> leases;
  for (Lane& lane : lanes_) {
    leases.push_back(lane.lease);
    if (lane.outcomes.empty()) continue;
    close(lane);
    shorten_waits(lane);
    turns.push_back({lane.lease, std::move(lane.outcomes), 0});
  }
  forget();
  if (leases.empty()) return Ok{};
  if (!turns.empty()) {
    HAPAX_TRY(const relay::TakenBatches taken, outbox_.next(turns));
    lanes_lost_ += taken.lost.size();
  }
  return outbox_.release(leases);
}

void LaneSource::lose(std::uint32_t number, Hand& hand) {
  const Lane* lane = find(number);
  if (lane == nullptr) return;
  for (std::size_t i = 0; lane->batch != 0 && i < lane->settled.size(); ++i) {
    if (!lane->settled[i]) hand.lost.push_back(number_of(lane->batch, i));
  }
  lane_of_batch_.erase(lane->batch);
  std::erase_if(lanes_, [&](const Lane& each) { return each.lease.lane == number; });
  ++lanes_lost_;
  // It may be free, or nobody else's: after a failover a lane is lost that this relay still holds.
  renew_at_ms_ = std::min(renew_at_ms_, leased_at_ms_ + settings_.lease_again.count());
  if (log_) log_(base::format("lane {} is no longer held", number));
}

void LaneSource::forget() {
  lanes_.clear();
  lane_of_batch_.clear();
  suspects_.clear();
  alone_ = false;
  lease_end_ms_ = 0;
  renew_at_ms_ = 0;
}

LaneSource::Lane* LaneSource::find(std::uint32_t lane) {
  const auto found = std::find_if(lanes_.begin(), lanes_.end(),
                                  [&](const Lane& each) { return each.lease.lane == lane; });
  return found == lanes_.end() ? nullptr : &*found;
}

}  // namespace hapax::delivery
