// Processes that deliver from one outbox to one receiver, in a simulated world: answers are lost,
// requests hang, leases end, processes stand still or die between any two calls. One thread, one
// clock, everything drawn from one seed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "delivery/engine.h"
#include "delivery/lane_source.h"
#include "relay/memory_source_test.h"
#include "sim/clock.h"
#include "sim/random.h"

namespace hapax::delivery {

struct WorldRates {                // of a thousand
  std::uint32_t lost_answer = 30;  // the receiver has it, and its sender never hears of it
  std::uint32_t refused_connect = 30;
  std::uint32_t hangs = 10;
  std::uint32_t source_error = 10;
  std::uint32_t source_answer_lost = 10;
  std::uint32_t kill = 1;              // of a process, per step
  std::uint32_t freeze = 2;            // the same, for seconds
  std::uint32_t stop = 1;              // in order
  std::uint32_t outages = 1;           // 0 = none
  std::uint32_t bad_records = 20;      // always rejected
  std::uint32_t failing_records = 10;  // the receiver always fails over them

  static WorldRates none() { return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}; }
};

struct WorldPlan {
  WorldRates rates{};
  EngineSettings engine{};
  EndpointPolicy policy{};
  std::size_t batch_max = 1;
  int records = 150;
};

// What arrived, and whether anything happened that must not happen.
struct Witness {
  std::vector<std::string> arrived;  // ids, in order
  std::vector<std::string> faults;

  void blame(std::string text) { faults.push_back(std::move(text)); }
};

class World;

// The network and the receiver, as one process sees them.
class WorldSink final : public Sink {
 public:
  WorldSink(World& world, int process) : world_(world), process_(process) {}
  [[nodiscard]] std::size_t batch_max() const override;
  void start(std::span<const Outgoing* const> records, std::int64_t not_after_ms,
             Done done) override;

 private:
  World& world_;
  const int process_;
};

// An outbox in memory behind a connection that breaks.
class WorldSource final : public relay::Source {
 public:
  WorldSource(World& world, std::string owner);
  Result<relay::Leases> lease(std::span<const relay::Lease> kept, Duration span) override;
  Result<relay::TakenBatches> next(std::span<const relay::LaneTurn> turns) override;
  Status release(std::span<const relay::Lease> leases) override;
  Result<bool> clean() override { return false; }
  Result<relay::OutboxReport> report() override { return relay::OutboxReport{}; }
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
  World& world_;
  relay::MemorySource inner_;
};

class World {
 public:
  World(std::uint64_t seed, WorldPlan plan);
  void run();
  [[nodiscard]] const Witness& witness() const { return witness_; }
  [[nodiscard]] const relay::MemoryOutbox& outbox() const { return outbox_; }
  [[nodiscard]] std::size_t published() const { return ids_.size(); }
  [[nodiscard]] std::uint64_t troubles() const { return troubles_; }

 private:
  friend class WorldSink;
  friend class WorldSource;
  using Outcome = SendResult::Outcome;

  struct Process {
    int number = 0;
    std::unique_ptr<WorldSource> outbox;
    std::unique_ptr<LaneSource> source;
    std::unique_ptr<WorldSink> sink;
    std::unique_ptr<Engine> engine;
    std::int64_t wake_ms = 0;
    std::multiset<std::string> keys_under_way{};
    std::string owner;
  };
  struct Published {
    std::string key;
    std::uint32_t lane = 0;
    int place = 0;  // among those of its key
    bool arrived = false;
    bool bad = false;
    bool failing = false;
  };

  [[nodiscard]] bool strikes(std::uint32_t of_thousand) {
    return !healing_ && random_.chance(of_thousand, 1000);
  }
  void at(std::int64_t ms, std::function<void()> act) { events_.emplace(ms, std::move(act)); }
  void publish();
  void fall_out();
  void spawn(std::size_t slot);
  void wake(std::size_t slot);
  void strike(std::size_t slot);
  bool send(Process* process, int number, std::vector<std::string> ids, std::int64_t not_after_ms,
            Sink::Done done);
  void leave(int number, const std::vector<std::string>& ids, std::int64_t not_after_ms,
             Sink::Done done);
  [[nodiscard]] std::vector<SendResult> judge(const std::vector<std::string>& ids);
  [[nodiscard]] SendResult judge_one(const std::string& id);
  void arrive(const std::string& id);
  [[nodiscard]] Process* alive(int number);
  [[nodiscard]] bool all_done() const;
  void check_end();

  sim::Random random_;
  WorldPlan plan_;
  sim::SimClock clock_;
  relay::MemoryOutbox outbox_;
  Witness witness_;
  std::multimap<std::int64_t, std::function<void()>> events_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::map<std::string, Published> ids_;
  std::map<std::string, std::vector<std::string>> by_key_;
  std::set<std::string> dead_seen_;
  std::int64_t outage_until_ms_ = 0;
  int spawned_ = 0;
  int left_ = 0;  // to publish
  std::uint64_t troubles_ = 0;
  bool healing_ = false;
};

}  // namespace hapax::delivery
