#include "relay/relay.h"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>

#include "base/assert.h"
#include "base/format.h"

namespace hapax::relay {

namespace {

using Kind = SendOutcome::Kind;
using Ending = SinkDelivery::Ending;

Duration doubled(Duration last, Duration first, Duration most) {
  return last == Duration{0} ? first : std::min(last * 2, most);
}

// Records of one name are sent one behind the other.
std::string name_of(const Outgoing& record) {
  return record.key.empty() ? "id " + record.id : "key " + record.key;
}

// Every record of a batch that nobody managed to settle before was taken so often because whoever
// sent it did not live to say what became of it. It is blamed only if it was alone.
bool is_poison(const OutgoingBatch& batch, std::uint32_t attempts_max) {
  return batch.records.size() == 1 && batch.records.front().attempt > attempts_max;
}

}  // namespace

Result<Round> Relay::round() {
  // Y5: an error may have lost what was sent but not settled; it is taken again, under the same
  // ids.
  auto done = run_round();
  if (!done.has_value()) forget();
  return done;
}

Result<Round> Relay::run_round() {
  HAPAX_CHECK(keep_leases());
  std::vector<Sending> sendings;
  HAPAX_CHECK(take(sendings));
  HAPAX_CHECK(give_back_surplus());
  Round round;
  for (const Sending& sending : sendings) round.taken += sending.batch.records.size();
  HAPAX_CHECK(send_all(sendings));
  round.paused = paused();
  round.reason = round.paused ? pause_reason_ : std::string();
  const bool unsettled = std::any_of(lanes_.begin(), lanes_.end(),
                                     [](const Lane& lane) { return !lane.outcomes.empty(); });
  if (!unsettled && !more_) {
    std::int64_t until = renew_at_ms_;
    if (round.paused) until = std::min(until, lone_.empty() ? paused_until_ms_ : look_at_ms_);
    round.idle_for = Duration{std::max<std::int64_t>(until - clock_.steady_ms(), 0)};
  }
  return round;
}

Status Relay::keep_leases() {
  // Y2: the answer's time counts from before the question, so the lease is over here before it is
  // over there.
  const std::int64_t asked_ms = clock_.steady_ms();
  if (asked_ms < renew_at_ms_) return Ok{};
  std::vector<Lease> kept;
  for (const Lane& lane : lanes_) kept.push_back(lane.lease);
  HAPAX_TRY(const Leases told, source_.lease(kept, settings_.lease));
  share_ = told.share;
  leased_at_ms_ = asked_ms;
  leases_end_ms_ = asked_ms + told.left.count();
  renew_at_ms_ = asked_ms + told.left.count() / 3;

  for (const Lease& lease : kept) {
    if (std::find(told.held.begin(), told.held.end(), lease) == told.held.end()) lose(lease.lane);
  }
  for (const Lease& lease : told.held) {
    if (find(lease.lane) != nullptr) continue;
    lanes_.push_back({lease, {}, {}});
    more_ = true;
  }
  return Ok{};
}

Status Relay::take(std::vector<Sending>& sendings) {
  more_ = false;
  std::vector<LaneTurn> turns;
  const bool looks = !lone_.empty() && clock_.steady_ms() >= look_at_ms_;
  const bool rest = (paused() && !looks) || !may_send();
  if (looks) look_at_ms_ = clock_.steady_ms() + settings_.look_every.count();
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = lanes_[i];
    const bool wanted = !rest && i < share_;
    if (!wanted && lane.outcomes.empty()) continue;
    turns.push_back({lane.lease, std::move(lane.outcomes), wanted ? settings_.batch : 0});
    lane.outcomes.clear();
  }
  if (turns.empty()) return Ok{};
  HAPAX_TRY(TakenBatches taken, source_.next(turns, settings_.attempts_max));
  // Y3: what was sent under a lost lease is not settled: its new holder decides, and sends it again
  // under the same id.
  for (const std::uint32_t lane : taken.lost) lose(lane);
  more_ = taken.more;
  for (OutgoingBatch& batch : taken.batches) {
    Sending sending{find(batch.lane)->lease, std::move(batch), {}};
    sending.outcomes.resize(sending.batch.records.size());
    sendings.push_back(std::move(sending));
  }
  return Ok{};
}

Status Relay::give_back_surplus() {
  if (lanes_.size() <= share_) return Ok{};
  std::vector<Lease> surplus;
  for (std::size_t i = share_; i < lanes_.size(); ++i) surplus.push_back(lanes_[i].lease);
  lanes_.resize(share_);
  return source_.release(surplus);
}

Status Relay::send_all(std::vector<Sending>& sendings) {
  if (!sendings.empty()) {
    std::rotate(sendings.begin(),
                sendings.begin() + static_cast<std::ptrdiff_t>(first_++ % sendings.size()),
                sendings.end());
  }
  for (Sending& sending : sendings) {
    if (is_poison(sending.batch, settings_.attempts_max)) {
      refuse({&sending, 0},
             "taken that often and never settled: whoever sent it did not survive it");
    }
    bury_flawed(sending);
  }
  cut_off_ = false;
  for (bool more = true; more;) {
    HAPAX_CHECK(keep_leases());
    HAPAX_TRY(more, send(sendable(sendings)));
  }
  for (Sending& sending : sendings) {
    if (holds(sending.lease)) find(sending.lease.lane)->outcomes = std::move(sending.outcomes);
  }
  return Ok{};
}

Result<bool> Relay::send(const std::vector<Place>& chunk) {
  if (chunk.empty()) return false;
  const SinkDelivery delivery = deliver(chunk);
  apply(chunk, delivery);
  if (delivery.ending == Ending::kAll || delivery.ending == Ending::kRefused) return true;
  if (delivery.ending == Ending::kOutOfTime) {
    // Y4: a lease that ends is no failure. The record which was not answered is the first under a
    // fresh one, and if even that is too short, the sink is away for it. Once in a round, so that
    // what was accepted is settled soon.
    const bool sent = !delivery.reason.empty();
    if (sent && !std::exchange(cut_off_, true)) return true;
    if (!sent || delivery.accepted > 0) return false;
  }
  HAPAX_CHECK(keep_leases());  // To wait for the answer took its time, and others are asked now.
  // Y4: a sink that takes others is available, and the failure is the record's own. Without this
  // one record that makes the receiver fail would hold up all the others for ever.
  const Place& failed = chunk[delivery.accepted];
  if (!holds(failed.sending->lease)) return false;
  const std::vector<Place> others = others_than(chunk, delivery.accepted);
  const bool alone = delivery.ending == Ending::kFailed && others.empty();
  if (takes_one_of(others, delivery.ending) || is_to_blame(failed.record(), alone)) {
    refuse(failed, delivery.reason);
    return true;
  }
  pause(delivery, failed.record(), alone);
  return false;
}

std::vector<Relay::Place> Relay::sendable(std::vector<Sending>& sendings) {
  std::vector<Place> chunk;
  for (Sending& sending : sendings) {
    if (holds(sending.lease)) add_sendable(sending, chunk);
  }
  return chunk;
}

void Relay::add_sendable(Sending& sending, std::vector<Place>& chunk) const {
  // Y1: behind a record that waits, the others of its key wait too.
  std::unordered_set<std::string_view> waiting;
  const auto& records = sending.batch.records;
  for (std::size_t i = 0; i < records.size(); ++i) {
    SendOutcome& outcome = sending.outcomes[i];
    const std::string& key = records[i].key;
    if (outcome.kind == Kind::kNotSent) {
      const bool held = records[i].blocked || (!key.empty() && waiting.contains(key));
      if (held) outcome.kind = Kind::kHeld;
      if (!held && !is_paused(records[i])) chunk.push_back({&sending, i});
    }
    const bool waits = outcome.kind == Kind::kRetry || outcome.kind == Kind::kHeld;
    if (waits && !key.empty()) waiting.insert(key);
  }
}

SinkDelivery Relay::deliver(const std::vector<Place>& chunk) {
  // Y2: a batch never outlives its lease.
  const Permit permit(clock_, leases_end_ms_ - settings_.margin.count());
  if (!permit.good()) return {.ending = Ending::kOutOfTime};
  std::vector<const Outgoing*> records;
  records.reserve(chunk.size());
  for (const Place& place : chunk) records.push_back(&place.record());
  SinkDelivery delivery = sink_.deliver(records, permit);
  HAPAX_ASSERT(delivery.ending == Ending::kAll ? delivery.accepted == chunk.size()
                                               : delivery.accepted < chunk.size(),
               "a sink says of each record what became of it");
  return delivery;
}

void Relay::apply(const std::vector<Place>& chunk, const SinkDelivery& delivery) {
  for (std::size_t i = 0; i < delivery.accepted; ++i) chunk[i].outcome().kind = Kind::kAccepted;
  counts_.accepted += delivery.accepted;
  if (delivery.accepted != 0 || delivery.ending == Ending::kRefused) end_pause();
  if (delivery.ending == Ending::kRefused) refuse(chunk[delivery.accepted], delivery.reason);
}

void Relay::refuse(const Place& place, std::string_view reason) {
  const Outgoing& record = place.record();
  SendOutcome& outcome = place.outcome();
  if (record.attempt >= settings_.attempts_max) return bury(place, reason);
  outcome.reason = reason;
  outcome.kind = Kind::kRetry;
  outcome.after = retry_after(record.attempt);
  ++counts_.retried;
}

void Relay::bury(const Place& place, std::string_view reason) {
  set_dead(place, reason);
  ++counts_.dead;
  say(base::format("record {} is a dead letter after {} attempts: {}", place.record().id,
                   place.record().attempt, place.outcome().reason));
}

void Relay::set_dead(const Place& place, std::string_view reason) {
  place.outcome().kind = Kind::kDead;
  place.outcome().reason = reason;
}

// Behind a record that waits for its sink they do not count, and are taken and buried again
// with the next batch; they are told once.
void Relay::bury_flawed(Sending& sending) {
  std::vector<std::int64_t>& told = find(sending.lease.lane)->flawed;
  const std::vector<std::int64_t> before = std::exchange(told, {});
  for (std::size_t i = 0; i < sending.batch.records.size(); ++i) {
    const Place place{&sending, i};
    const Outgoing& record = place.record();
    if (record.flaw.empty()) continue;
    told.push_back(record.place);
    const bool known = std::find(before.begin(), before.end(), record.place) != before.end();
    known ? set_dead(place, record.flaw) : bury(place, record.flaw);
  }
}

std::vector<Relay::Place> Relay::others_than(const std::vector<Place>& chunk, std::size_t failed) {
  std::unordered_set<std::string> names{name_of(chunk[failed].record())};
  std::vector<Place> others;
  for (std::size_t i = failed + 1; i < chunk.size(); ++i) {
    if (!holds(chunk[i].sending->lease)) continue;
    if (names.insert(name_of(chunk[i].record())).second) others.push_back(chunk[i]);
  }
  std::stable_sort(others.begin(), others.end(), [](const Place& a, const Place& b) {
    return a.record().attempt < b.record().attempt;
  });
  return others;
}

// Several, if the sink answers, for more than one record may make it fail; and not always the same.
bool Relay::takes_one_of(const std::vector<Place>& others, Ending ending) {
  constexpr std::size_t kTries = 4;
  const std::size_t tries = std::min(others.size(), ending == Ending::kFailed ? kTries : 1);
  for (std::size_t i = 0; i < tries; ++i) {
    const std::vector<Place> one{others[(counts_.pauses + i) % others.size()]};
    const SinkDelivery delivery = deliver(one);
    apply(one, delivery);
    if (delivery.ending == Ending::kAll || delivery.ending == Ending::kRefused) return true;
    if (delivery.ending == Ending::kOutOfTime) return false;
  }
  return false;
}

bool Relay::is_to_blame(const Outgoing& record, bool alone) {
  if (suspect_.id != record.id) suspect_ = {record.id, signs_, 0};
  const bool others_passed = std::exchange(suspect_.signs, signs_) < signs_;
  if (alone) ++suspect_.lone_failures;
  return others_passed || suspect_.lone_failures > settings_.lone_failures_max;
}

// Y4: as long as one record alone fails, of a sink that answers, only its key waits.
void Relay::pause(const SinkDelivery& delivery, const Outgoing& record, bool alone) {
  const std::string name = name_of(record);
  const bool only_one = alone && (pause_ == Duration{0} || lone_ == name);
  const Duration most = delivery.ending == Ending::kFailed && !only_one
                            ? settings_.failing_pause_max
                            : settings_.pause_max;
  lone_ = only_one ? name : "";
  pause_ = doubled(pause_, settings_.pause_first, most);
  paused_until_ms_ = clock_.steady_ms() + pause_.count();
  look_at_ms_ = clock_.steady_ms() + std::min(settings_.look_every, pause_).count();
  pause_reason_ = delivery.reason;
  if (counts_.pauses++ == 0 || pause_ == settings_.pause_first) {
    say((only_one ? "record " + record.id + " fails alone, its key waits: "
                  : "the sink is unavailable, pausing: ") +
        pause_reason_);
  }
}

void Relay::end_pause() {
  ++signs_;
  pause_ = Duration{0};
  paused_until_ms_ = 0;
  lone_.clear();
}

bool Relay::is_paused(const Outgoing& record) const {
  return paused() && (lone_.empty() || lone_ == name_of(record));
}

Status Relay::stop() {
  std::vector<LaneTurn> turns;
  std::vector<Lease> leases;
  for (Lane& lane : lanes_) {
    leases.push_back(lane.lease);
    if (!lane.outcomes.empty()) turns.push_back({lane.lease, std::move(lane.outcomes), 0});
  }
  forget();
  if (leases.empty()) return Ok{};
  if (!turns.empty()) {
    HAPAX_TRY(const TakenBatches taken, source_.next(turns, settings_.attempts_max));
    counts_.lanes_lost += taken.lost.size();
  }
  return source_.release(leases);
}

bool Relay::may_send() const {
  return clock_.steady_ms() < leases_end_ms_ - settings_.margin.count();
}

Relay::Lane* Relay::find(std::uint32_t lane) {
  const auto found = std::find_if(lanes_.begin(), lanes_.end(),
                                  [&](const Lane& each) { return each.lease.lane == lane; });
  return found == lanes_.end() ? nullptr : &*found;
}

bool Relay::holds(const Lease& lease) {
  const Lane* lane = find(lease.lane);
  return lane != nullptr && lane->lease == lease;
}

void Relay::lose(std::uint32_t lane) {
  std::erase_if(lanes_, [&](const Lane& each) { return each.lease.lane == lane; });
  ++counts_.lanes_lost;
  // It may be free, or nobody else's: after a failover a lane is lost that this relay still holds.
  renew_at_ms_ = std::min(renew_at_ms_, leased_at_ms_ + settings_.lease_again.count());
  say(base::format("lane {} is no longer held", lane));
}

void Relay::forget() {
  lanes_.clear();
  leases_end_ms_ = 0;
  renew_at_ms_ = 0;
}

Duration Relay::retry_after(std::uint32_t attempt) const {
  Duration after = settings_.retry_first;
  for (std::uint32_t i = 1; i < attempt && after < settings_.retry_max; ++i) after *= 2;
  return std::min(after, settings_.retry_max);
}

}  // namespace hapax::relay
