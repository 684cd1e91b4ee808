// Processes that deliver from one stock of records to one receiver, in a simulated world: answers
// are lost, requests hang, leases end, processes stand still or die between any two calls. One
// thread, one clock, everything drawn from one seed.
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

#include <hapax/store.h>

#include "base/format.h"
#include "delivery/engine.h"
#include "delivery/outcome_probe.h"
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
  std::uint32_t gone = 0;              // the receiver tells a process that it is gone
  std::uint32_t unready = 0;           // nothing can be sent for a while: a key is missing
  std::uint32_t death_in_call = 0;     // of a process, right after any call of its store

  static WorldRates none() { return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}; }
};

// What must be true of every record in the end.
enum class WorldPromise : std::uint8_t {
  kArrives,     // or it is a dead letter, and only records that never pass are
  kOnce,        // it arrives once at most; what is not known to have arrived is a dead letter
  kAtMostOnce,  // it leaves once at most; what is not known to have arrived is a dead letter
};

struct WorldPlan {
  WorldRates rates{};
  WorldPromise promise = WorldPromise::kArrives;
  EngineSettings engine{.tells_attempts = true};
  EndpointPolicy policy{};
  std::size_t batch_max = 1;
  int records = 150;
  bool decides = false;  // a person decides about keys that are blocked
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

// Where the records are: an outbox, or a stream. What a process sees of it may fail.
class Stock {
 public:
  Stock() = default;
  Stock(const Stock&) = delete;
  Stock& operator=(const Stock&) = delete;
  virtual ~Stock() = default;

  virtual void publish(const std::string& id, const std::string& key) = 0;
  // As a new process that is called so sees it.
  [[nodiscard]] virtual std::unique_ptr<Source> open(const std::string& owner) = 0;
  // Whether somebody may send it: its lease is not over.
  [[nodiscard]] virtual bool leased(const std::string& id) = 0;
  [[nodiscard]] virtual std::map<std::string, std::string> dead() = 0;  // ids and reasons
  [[nodiscard]] virtual bool all_done() = 0;
  // How often an attempt of each id is in the log; null: none is kept.
  [[nodiscard]] virtual const std::map<std::string, int>* logged() { return nullptr; }
  [[nodiscard]] virtual std::string log_fault() { return {}; }
  // What a record of blocks its key, and what a person took out of the way.
  [[nodiscard]] virtual std::set<std::string> blocking() { return {}; }
  [[nodiscard]] virtual std::set<std::string> dropped() { return {}; }
  // A person decides about all that block, in the end so that they go on.
  virtual void decide(bool /*in_the_end*/) {}
  // The process of that name died between two calls.
  [[nodiscard]] virtual bool died(const std::string& /*owner*/) { return false; }
  // Of ids whose attempts are claims.
  [[nodiscard]] virtual std::map<std::string, ClaimState> claims() { return {}; }
};

// What a stock needs of its world.
struct WorldTroubles {
  ports::Clock& clock;
  sim::Random& random;
  std::function<bool()> error;        // the next call fails, and has done nothing
  std::function<bool()> answer_lost;  // it fails, and has done what it was asked for
  std::function<bool()> death{};      // so does every further one: its process is dead
  // Asks the receiver whether it has the record.
  std::function<void(const std::string& id, OutcomeProbe::Done done)> ask{};
};
using MakeStock = std::function<std::unique_ptr<Stock>(const WorldTroubles&)>;

class World {
 public:
  World(std::uint64_t seed, WorldPlan plan, const MakeStock& make_stock);
  void run();
  [[nodiscard]] const Witness& witness() const { return witness_; }
  [[nodiscard]] std::size_t published() const { return ids_.size(); }
  [[nodiscard]] std::uint64_t troubles() const { return troubles_; }

 private:
  friend class WorldSink;
  using Outcome = SendResult::Outcome;

  struct Process {
    int number = 0;
    std::unique_ptr<Source> source;
    std::unique_ptr<WorldSink> sink;
    std::unique_ptr<Engine> engine;
    std::int64_t wake_ms = 0;
    std::multiset<std::string> keys_under_way{};
  };
  struct Published {
    std::string key;
    int place = 0;  // among those of its key
    int begun = 0;  // attempts
    int left = 0;   // requests
    bool arrived = false;
    bool bad = false;
    bool failing = false;
  };

  [[nodiscard]] bool strikes(std::uint32_t of_thousand) {
    return !healing_ && random_.chance(of_thousand, 1000);
  }
  [[nodiscard]] std::function<bool()> trouble(std::uint32_t of_thousand) {
    return [this, of_thousand] {
      const bool struck = strikes(of_thousand);
      troubles_ += struck ? 1 : 0;
      return struck;
    };
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
  void ask(const std::string& id, OutcomeProbe::Done done);
  [[nodiscard]] Process* alive(int number);
  [[nodiscard]] bool all_done() const { return left_ == 0 && stock_->all_done(); }
  void person();
  void check_blocked(const std::string& id);
  void check_end();
  void check_log();
  void check_claim(const std::string& id, const Published& record, bool dead,
                   const std::map<std::string, ClaimState>& claims);
  [[nodiscard]] std::set<std::string> given_up();

  sim::Random random_;
  WorldPlan plan_;
  sim::SimClock clock_;
  std::unique_ptr<Stock> stock_;
  Witness witness_;
  std::multimap<std::int64_t, std::function<void()>> events_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::map<std::string, Published> ids_;
  std::map<std::string, std::vector<std::string>> by_key_;
  std::set<int> told_gone_;  // processes that were told by the receiver that it is gone
  std::int64_t outage_until_ms_ = 0;
  int spawned_ = 0;
  int left_ = 0;  // to publish
  std::uint64_t troubles_ = 0;
  bool healing_ = false;
};

}  // namespace hapax::delivery
