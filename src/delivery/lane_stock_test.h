// An outbox in memory that is divided into lanes, behind a connection that breaks.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "delivery/database_outbox.h"
#include "delivery/lane_source.h"
#include "delivery/world_test.h"
#include "relay/memory_source_test.h"

namespace hapax::delivery {

class WorldSource final : public relay::Source {
 public:
  WorldSource(const WorldTroubles& troubles, relay::MemoryOutbox& outbox, std::string owner)
      : troubles_(troubles), inner_(outbox, troubles.clock, std::move(owner)) {}

  Result<relay::Leases> lease(std::span<const relay::Lease> kept, Duration span) override {
    if (troubles_.error()) return away();
    return inner_.lease(kept, span);
  }
  Result<relay::TakenBatches> next(std::span<const relay::LaneTurn> turns) override {
    if (troubles_.error()) return away();
    auto told = inner_.next(turns);
    if (troubles_.answer_lost()) return Error{Errc::kOutcomeUnknown, "the connection is gone"};
    return told;
  }
  Status release(std::span<const relay::Lease> leases) override { return inner_.release(leases); }
  Result<bool> clean() override { return false; }
  Result<relay::OutboxReport> report() override {
    if (troubles_.error()) return away();
    return inner_.report();
  }
  Result<std::vector<relay::TracedEvent>> trace(const std::string&) override {
    return std::vector<relay::TracedEvent>{};
  }
  Result<std::vector<relay::DeadLetter>> dead_letters(std::uint32_t) override {
    return std::vector<relay::DeadLetter>{};
  }
  Result<relay::Redriven> redrive(std::span<const std::string>) override {
    return relay::Redriven{};
  }
  bool wait(Duration) override { return true; }
  void nudge() override {}
  void wake() override {}

 private:
  static Error away() { return {Errc::kUnavailable, "the database is away"}; }

  WorldTroubles troubles_;
  relay::MemorySource inner_;
};

class LaneStock final : public Stock {
 public:
  enum class Opens : std::uint8_t { kAtOnce, kWhenItIsThere };

  LaneStock(const WorldTroubles& troubles, Opens opens)
      : troubles_(troubles), opens_(opens), outbox_(1 + troubles.random.below(4)) {}

  void publish(const std::string& id, const std::string& key) override {
    const std::size_t place =
        key.empty() ? troubles_.random.below(99) : std::hash<std::string>{}(key);
    const auto lane = static_cast<std::uint32_t>(place % outbox_.lanes.size());
    lane_of_.emplace(id, lane);
    outbox_.publish(lane, id, key);
  }
  std::unique_ptr<Source> open(const std::string& owner) override {
    if (opens_ == Opens::kAtOnce) return std::make_unique<Opened>(troubles_, outbox_, owner);
    const std::string name = "workflow w#" + owner;
    const auto open = [this, name]() -> Result<relay::OpenedOutbox> {
      if (troubles_.error()) return Error{Errc::kUnavailable, "nobody listens"};
      return relay::OpenedOutbox{std::make_unique<WorldSource>(troubles_, outbox_, name), "uid"};
    };
    const DatabaseOutboxSettings settings{.lanes = LaneSettings{.batch = 40}, .owner = name};
    const auto hooks = [](const relay::OpenedOutbox&) { return LaneHooks{}; };
    return std::make_unique<DatabaseOutbox>(open, troubles_.clock, settings, hooks);
  }
  bool leased(const std::string& id) override {
    return outbox_.lanes.at(lane_of_.at(id)).until_ms > troubles_.clock.steady_ms();
  }
  std::map<std::string, std::string> dead() override {
    return {outbox_.dead.begin(), outbox_.dead.end()};
  }
  bool all_done() override {
    return std::all_of(outbox_.lanes.begin(), outbox_.lanes.end(), [](const auto& lane) {
      return lane.settled == lane.rows.size() && lane.waiting.empty();
    });
  }

 private:
  // A connection, and the lanes over it.
  class Opened final : public Source {
   public:
    Opened(const WorldTroubles& troubles, relay::MemoryOutbox& outbox, std::string owner)
        : connection_(troubles, outbox, std::move(owner)),
          lanes_(connection_, troubles.clock, LaneSettings{.batch = 40}) {}
    Result<Hand> take(const TakeCall& call) override { return lanes_.take(call); }
    Status give_back(std::span<const Settlement> settled) override {
      return lanes_.give_back(settled);
    }
    void wait(Duration most) override { lanes_.wait(most); }
    void nudge() override { lanes_.nudge(); }

   private:
    WorldSource connection_;
    LaneSource lanes_;
  };

  WorldTroubles troubles_;
  const Opens opens_;
  relay::MemoryOutbox outbox_;
  std::map<std::string, std::uint32_t> lane_of_;
};

inline std::unique_ptr<Stock> make_lane_stock(const WorldTroubles& troubles) {
  return std::make_unique<LaneStock>(troubles, LaneStock::Opens::kAtOnce);
}
inline std::unique_ptr<Stock> make_database_stock(const WorldTroubles& troubles) {
  return std::make_unique<LaneStock>(troubles, LaneStock::Opens::kWhenItIsThere);
}

}  // namespace hapax::delivery
