// An outbox in memory with the rules that every source keeps, for tests of the engine. Rows become
// visible in the order in which they are committed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ports/clock.h"
#include "relay/pieces.h"
#include "relay/source.h"

namespace hapax::relay {

struct MemoryOutbox {
  struct Waiting {
    Outgoing record;
    std::int64_t due_ms = 0;
    std::uint32_t attempts = 0;
    bool taken = false;
  };
  struct Lane {
    std::string owner{};
    std::int64_t fence = 0;
    std::int64_t until_ms = 0;
    std::vector<Outgoing> rows{};
    std::size_t settled = 0;
    std::uint32_t attempts = 0;
    std::vector<Waiting> waiting{};
  };

  explicit MemoryOutbox(std::size_t count = 1) : lanes(count) {}

  void publish(std::size_t lane, const std::string& id, const std::string& key = {}) {
    lanes.at(lane).rows.push_back(
        {.place = ++places, .id = id, .type = "t", .key = key, .payload = id});
  }

  std::vector<Lane> lanes;
  std::vector<std::pair<std::string, std::string>> dead;  // id, reason
  std::map<std::string, std::int64_t> alive;              // relay, until
  std::int64_t places = 0;
};

class MemorySource final : public Source {
 public:
  MemorySource(MemoryOutbox& outbox, ports::Clock& clock, std::string owner)
      : outbox_(outbox), clock_(clock), owner_(std::move(owner)) {}

  int failures = 0;  // so many calls of next() that fail after having happened
  int leases = 0;

  Result<Leases> lease(std::span<const Lease> kept, Duration span) override {
    ++leases;
    const std::int64_t now = clock_.steady_ms();
    outbox_.alive[owner_] = now + span.count();
    const auto living = std::count_if(outbox_.alive.begin(), outbox_.alive.end(),
                                      [&](const auto& each) { return each.second > now; });
    const std::size_t count = outbox_.lanes.size();
    const std::size_t share =
        (count + static_cast<std::size_t>(living) - 1) / static_cast<std::size_t>(living);
    Leases told{.left = span, .share = static_cast<std::uint32_t>(share)};
    for (std::uint32_t i = 0; i < count; ++i) {
      auto& lane = outbox_.lanes[i];
      const bool keeps = std::find(kept.begin(), kept.end(), Lease{i, lane.fence}) != kept.end();
      const bool mine = lane.owner == owner_;
      const bool free = lane.until_ms <= now || (mine && !keeps);
      if (free && told.held.size() < share) {
        ++lane.fence;
        lane.owner = owner_;
        taken_.erase(i);
      } else if (!mine || free) {
        continue;
      }
      lane.until_ms = now + span.count();
      told.held.push_back({i, lane.fence});
    }
    return told;
  }

  Result<TakenBatches> next(std::span<const LaneTurn> turns, std::uint32_t attempts_max) override {
    TakenBatches told;
    for (const LaneTurn& turn : turns) {
      auto& lane = outbox_.lanes.at(turn.lease.lane);
      if (lane.fence != turn.lease.fence) {
        told.lost.push_back(turn.lease.lane);
        continue;
      }
      if (!turn.outcomes.empty()) settle(turn);
      if (turn.take == 0) continue;
      OutgoingBatch batch = take(turn.lease.lane, turn.take, attempts_max);
      if (!batch.records.empty()) told.batches.push_back(std::move(batch));
    }
    if (failures > 0 && failures-- > 0) return Error{Errc::kUnavailable, "the connection is gone"};
    return told;
  }

  Status release(std::span<const Lease> leases_given) override {
    for (const Lease& lease : leases_given) {
      auto& lane = outbox_.lanes.at(lease.lane);
      if (lane.fence == lease.fence) lane.until_ms = 0;
    }
    return Ok{};
  }
  Result<bool> clean() override { return false; }
  Result<OutboxReport> report() override { return OutboxReport{}; }
  Result<std::vector<DeadLetter>> dead_letters(std::uint32_t) override {
    return std::vector<DeadLetter>{};
  }
  Result<Redriven> redrive(std::span<const std::string>) override { return Redriven{}; }
  void wait(Duration) override {}
  void wake() override {}

 private:
  using Kind = SendOutcome::Kind;

  static bool waits(const MemoryOutbox::Lane& lane, const std::string& key) {
    return !key.empty() && std::any_of(lane.waiting.begin(), lane.waiting.end(),
                                       [&](const auto& each) { return each.record.key == key; });
  }

  OutgoingBatch take(std::uint32_t number, std::uint32_t most, std::uint32_t attempts_max) {
    auto& lane = outbox_.lanes.at(number);
    OutgoingBatch batch{.lane = number, .records = {}};
    for (auto& each : lane.waiting) {
      const bool first = std::none_of(lane.waiting.data(), &each, [&](const auto& before) {
        return !each.record.key.empty() && before.record.key == each.record.key;
      });
      if (!first || each.due_ms > clock_.steady_ms()) continue;
      const bool crashed = std::exchange(each.taken, true);
      each.record.attempt = ++each.attempts;
      each.record.blocked = false;
      if (crashed) batch.records.clear();
      batch.records.push_back(each.record);
      if (crashed) return remember(number, std::move(batch));
    }
    if (lane.settled == lane.rows.size()) return remember(number, std::move(batch));
    const std::uint32_t attempt = ++lane.attempts;
    most = piece_to_take(most, attempt - 1, attempts_max);
    for (std::size_t i = lane.settled; i < lane.rows.size() && most > 0; ++i, --most) {
      Outgoing record = lane.rows[i];
      record.attempt = attempt;
      record.blocked = waits(lane, record.key);
      batch.records.push_back(std::move(record));
    }
    return remember(number, std::move(batch));
  }
  OutgoingBatch remember(std::uint32_t number, OutgoingBatch batch) {
    taken_[number] = batch;
    return batch;
  }

  void settle(const LaneTurn& turn) {
    auto& lane = outbox_.lanes.at(turn.lease.lane);
    const OutgoingBatch batch = std::exchange(taken_[turn.lease.lane], {});
    lane.attempts = 0;
    for (std::size_t i = 0; i < batch.records.size(); ++i) {
      const Outgoing& record = batch.records[i];
      const SendOutcome& outcome = turn.outcomes.at(i);
      const auto found =
          std::find_if(lane.waiting.begin(), lane.waiting.end(),
                       [&](const auto& each) { return each.record.place == record.place; });
      if (found != lane.waiting.end()) {
        settle_waiting(lane, found, outcome);
        continue;
      }
      if (outcome.kind == Kind::kNotSent) return;
      ++lane.settled;
      if (outcome.kind == Kind::kDead) outbox_.dead.emplace_back(record.id, outcome.reason);
      const std::int64_t due = clock_.steady_ms() + outcome.after.count();
      if (outcome.kind == Kind::kRetry) lane.waiting.push_back({record, due, record.attempt});
      if (outcome.kind == Kind::kHeld) lane.waiting.push_back({record, 0, 0});
    }
  }
  void settle_waiting(MemoryOutbox::Lane& lane, std::vector<MemoryOutbox::Waiting>::iterator at,
                      const SendOutcome& outcome) {
    at->taken = false;
    if (outcome.kind == Kind::kNotSent) --at->attempts;
    if (outcome.kind == Kind::kRetry) at->due_ms = clock_.steady_ms() + outcome.after.count();
    if (outcome.kind == Kind::kDead) outbox_.dead.emplace_back(at->record.id, outcome.reason);
    if (outcome.kind == Kind::kAccepted || outcome.kind == Kind::kDead) lane.waiting.erase(at);
  }

  MemoryOutbox& outbox_;
  ports::Clock& clock_;
  const std::string owner_;
  std::map<std::uint32_t, OutgoingBatch> taken_;
};

}  // namespace hapax::relay
