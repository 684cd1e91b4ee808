// An outbox in memory with the rules that every source keeps, for tests of the engine. Rows become
// visible in the order in which they are committed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ports/clock.h"
#include "relay/pieces.h"
#include "relay/source.h"

namespace hapax::relay {

struct MemoryOutbox {
  enum class TakenAs : std::uint8_t { kNot, kAmongOthers, kAlone };
  struct Waiting {
    Outgoing record;
    std::int64_t due_ms = 0;
    std::uint32_t attempts = 0;
    std::int64_t tried_ms = 0;  // when the first attempt was
    TakenAs taken = TakenAs::kNot;
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
  bool fail_leases = false;

  Result<Leases> lease(std::span<const Lease> kept, Duration span) override {
    ++leases;
    if (fail_leases) return Error{Errc::kUnavailable, "the database is away"};
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
        if (mine) forgive(lane);
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

  Result<TakenBatches> next(std::span<const LaneTurn> turns) override {
    TakenBatches told;
    for (const LaneTurn& turn : turns) {
      auto& lane = outbox_.lanes.at(turn.lease.lane);
      if (lane.fence != turn.lease.fence) {
        told.lost.push_back(turn.lease.lane);
        continue;
      }
      if (!turn.outcomes.empty()) settle(turn);
      if (turn.take == 0) continue;
      const std::optional<std::uint32_t> suspicion = suspicion_of(lane);
      if (suspicion && !turn.alone) {
        told.suspects.push_back({turn.lease.lane, *suspicion});
        continue;
      }
      OutgoingBatch batch = turn.alone ? take_alone(turn.lease.lane) : take(turn);
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
  Result<OutboxReport> report() override {
    OutboxReport report;
    for (std::uint32_t i = 0; i < outbox_.lanes.size(); ++i) {
      const auto& lane = outbox_.lanes[i];
      report.lanes.push_back(
          {.lane = i,
           .owner = lane.owner,
           .lease_left = Duration{std::max<std::int64_t>(lane.until_ms - clock_.steady_ms(), 0)},
           .waiting = lane.rows.size() - lane.settled,
           .retries = lane.waiting.size()});
    }
    return report;
  }
  Result<std::vector<TracedEvent>> trace(const std::string&) override {
    return std::vector<TracedEvent>{};
  }
  Result<std::vector<DeadLetter>> dead_letters(std::uint32_t) override {
    return std::vector<DeadLetter>{};
  }
  Result<Redriven> redrive(std::span<const std::string>) override { return Redriven{}; }
  bool wait(Duration) override { return true; }
  void nudge() override {}
  void wake() override {}

 private:
  using Kind = SendOutcome::Kind;
  using TakenAs = MemoryOutbox::TakenAs;

  // Y5: who takes its own lane again did not die over what it had taken.
  static void forgive(MemoryOutbox::Lane& lane) {
    lane.attempts = 0;
    for (auto& each : lane.waiting) {
      if (std::exchange(each.taken, TakenAs::kNot) != TakenAs::kNot) --each.attempts;
    }
  }

  static bool waits(const MemoryOutbox::Lane& lane, const std::string& key) {
    return !key.empty() && std::any_of(lane.waiting.begin(), lane.waiting.end(),
                                       [&](const auto& each) { return each.record.key == key; });
  }

  bool is_due(const MemoryOutbox::Lane& lane, const MemoryOutbox::Waiting& each) {
    const bool first = std::none_of(lane.waiting.data(), &each, [&](const auto& before) {
      return !each.record.key.empty() && before.record.key == each.record.key;
    });
    return first && each.due_ms <= clock_.steady_ms();
  }
  // Y5: to be taken among others, and never be settled, was no attempt of its own.
  Outgoing take_waiting(MemoryOutbox::Waiting& each, TakenAs as) {
    if (each.taken == TakenAs::kAmongOthers) --each.attempts;
    each.taken = as;
    each.record.attempt = ++each.attempts;
    if (each.attempts == 1) each.tried_ms = clock_.steady_ms();
    each.record.tried_for = Duration{clock_.steady_ms() - each.tried_ms};
    each.record.blocked = false;
    return each.record;
  }

  MemoryOutbox::Waiting* suspect_in(MemoryOutbox::Lane& lane) {
    for (auto& each : lane.waiting) {
      if (each.taken != TakenAs::kNot && is_due(lane, each)) return &each;
    }
    return nullptr;
  }
  std::optional<std::uint32_t> suspicion_of(MemoryOutbox::Lane& lane) {
    if (const MemoryOutbox::Waiting* suspect = suspect_in(lane)) return suspect->attempts;
    return is_suspect(lane.attempts) ? std::optional{lane.attempts} : std::nullopt;
  }

  OutgoingBatch take_alone(std::uint32_t number) {
    auto& lane = outbox_.lanes.at(number);
    OutgoingBatch batch{.lane = number, .records = {}};
    if (MemoryOutbox::Waiting* suspect = suspect_in(lane)) {
      batch.records.push_back(take_waiting(*suspect, TakenAs::kAlone));
    } else {
      add_rows(lane, 1, batch);
      if (batch.records.empty()) lane.attempts = 0;
    }
    return remember(number, std::move(batch));
  }
  OutgoingBatch take(const LaneTurn& turn) {
    auto& lane = outbox_.lanes.at(turn.lease.lane);
    OutgoingBatch batch{.lane = turn.lease.lane, .records = {}};
    for (auto& each : lane.waiting) {
      if (is_due(lane, each)) batch.records.push_back(take_waiting(each, TakenAs::kAmongOthers));
    }
    add_rows(lane, turn.take, batch);
    return remember(turn.lease.lane, std::move(batch));
  }
  static void add_rows(MemoryOutbox::Lane& lane, std::uint32_t most, OutgoingBatch& batch) {
    if (lane.settled == lane.rows.size()) return;
    const std::uint32_t unsettled = lane.attempts++;
    const std::size_t piece =
        std::min<std::size_t>(piece_to_take(most, unsettled), lane.rows.size() - lane.settled);
    for (std::size_t i = lane.settled; i < lane.settled + piece; ++i) {
      Outgoing record = lane.rows[i];
      record.attempt = attempt_of(unsettled);
      record.blocked = waits(lane, record.key);
      batch.records.push_back(std::move(record));
    }
  }
  OutgoingBatch remember(std::uint32_t number, OutgoingBatch batch) {
    taken_[number] = batch;
    return batch;
  }

  void settle(const LaneTurn& turn) {
    auto& lane = outbox_.lanes.at(turn.lease.lane);
    const OutgoingBatch batch = std::exchange(taken_[turn.lease.lane], {});
    const std::uint32_t unsettled = unsettled_after(lane.attempts);
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
      lane.attempts = unsettled;
      if (outcome.kind == Kind::kNotSent) return;
      ++lane.settled;
      if (outcome.kind == Kind::kDead) outbox_.dead.emplace_back(record.id, outcome.reason);
      const std::int64_t due = clock_.steady_ms() + outcome.after.count();
      if (outcome.kind == Kind::kRetry) {
        lane.waiting.push_back({record, due, record.attempt, clock_.steady_ms()});
      }
      if (outcome.kind == Kind::kHeld) lane.waiting.push_back({record, due, 0});
    }
  }
  void settle_waiting(MemoryOutbox::Lane& lane, std::vector<MemoryOutbox::Waiting>::iterator at,
                      const SendOutcome& outcome) {
    at->taken = TakenAs::kNot;
    if (outcome.kind == Kind::kNotSent || outcome.kind == Kind::kHeld) --at->attempts;
    if (outcome.kind == Kind::kHeld && outcome.after > Duration{0}) {
      at->due_ms = clock_.steady_ms() + outcome.after.count();
    }
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
