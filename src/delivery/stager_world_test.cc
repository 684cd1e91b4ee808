// Stagers in a simulated world: their store breaks, answers are lost, they stand still, stop, or
// die between any two calls of the store, and transforms take their time or do not run.
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/format.h"
#include "delivery/blocked_keys.h"
#include "delivery/stager.h"
#include "delivery/stream_stock_test.h"
#include "sim/clock.h"
#include "sim/random.h"

namespace hapax::delivery {
namespace {

struct StagerRates {  // of a thousand
  std::uint32_t store_error = 20;
  std::uint32_t answer_lost = 20;
  std::uint32_t death_in_call = 15;  // the call has done what it was asked for
  std::uint32_t freeze = 5;          // for longer than a lease
  std::uint32_t stop = 5;
  std::uint32_t no_transform = 30;
  static StagerRates none() { return {0, 0, 0, 0, 0, 0}; }
};

struct StagerPlan {
  StagerRates rates{};
  int records = 150;
  int processes = 3;
  std::optional<Duration> hold{};  // of a key whose record was given up
  bool split_commits = false;      // a planted bug
  bool without_groups = false;     // another one: the source does not say them
};

// What one record becomes, by its number.
int outputs_of(int number) {
  if (number % 5 == 0) return 0;
  return number % 7 == 3 ? 3 : 1;
}
bool is_bad(int number) { return number % 11 == 4; }

int number_of(std::string_view id) { return std::stoi(std::string(id.substr(1))); }

// A stager that stores first, without ids, and acknowledges then.
class SplittingStore final : public Store {
 public:
  explicit SplittingStore(WorldStore& inner) : inner_(inner) {}

  Result<Answer> commit(const Commit& whole) override {
    std::vector<Op> appends;
    std::vector<Op> others;
    for (const Op& op : whole.ops) {
      if (const auto* append = std::get_if<Append>(&op)) {
        appends.push_back(*append);
        std::get<Append>(appends.back()).id.reset();
      } else {
        others.push_back(op);
      }
    }
    if (appends.empty()) return inner_.commit(whole);
    HAPAX_TRY(Answer first, inner_.commit({.ops = appends}));
    if (others.empty()) return first;
    HAPAX_TRY(Answer then, inner_.commit({.ops = others}));
    first.committed = then.committed;
    first.verdicts.insert(first.verdicts.end(), then.verdicts.begin(), then.verdicts.end());
    return first;
  }
  void submit(const Commit& one, Done done) override { done(commit(one)); }
  Result<Records> read(const ReadRange& range) override { return inner_.read(range); }
  Result<std::optional<IdStatus>> find_id(std::string_view stream, std::string_view id,
                                          std::optional<std::string_view> group) override {
    return inner_.find_id(stream, id, group);
  }
  Result<std::optional<ClaimStatus>> find_claim(std::string_view scope,
                                                std::string_view key) override {
    return inner_.find_claim(scope, key);
  }
  Result<std::optional<RegisterValue>> find_register(std::string_view name) override {
    return inner_.find_register(name);
  }
  Result<RegisterPage> scan_registers(const RegisterScan& scan) override {
    return inner_.scan_registers(scan);
  }
  Result<std::optional<Position>> find_position(std::string_view source) override {
    return inner_.find_position(source);
  }
  Result<std::optional<ProducerStatus>> find_producer(std::string_view stream,
                                                      std::string_view name) override {
    return inner_.find_producer(stream, name);
  }
  Result<StreamStats> describe(std::string_view name) override { return inner_.describe(name); }
  Result<std::vector<std::string>> streams() override { return inner_.streams(); }
  Result<Statistics> statistics() override { return inner_.statistics(); }

 private:
  WorldStore& inner_;
};

class StagerWorld {
 public:
  StagerWorld(std::uint64_t seed, StagerPlan plan)
      : random_(seed), plan_(plan), store_(clock_), left_(plan.records) {
    for (const char* name : {"orders", "copies"}) {
      const Op create = CreateStream{name, {}};
      ignore(store_.commit({.ops = {&create, 1}}), "it cannot fail");
    }
    processes_.resize(static_cast<std::size_t>(plan_.processes));
    for (std::size_t slot = 0; slot < processes_.size(); ++slot) spawn(slot);
    at(0, [this] { publish(); });
  }

  void run() {
    constexpr std::int64_t kTroubleMs = 600'000;
    constexpr std::int64_t kEndMs = 20'000'000;
    while (!events_.empty() && !(healing_ && all_done())) {
      const auto first = events_.begin();
      if (first->first > kEndMs) return blame("nothing comes to an end");
      if (first->first > clock_.steady_ms()) clock_.advance(first->first - clock_.steady_ms());
      if (left_ == 0 && (all_done() || clock_.steady_ms() > kTroubleMs)) healing_ = true;
      const auto act = std::move(first->second);
      events_.erase(first);
      act();
    }
    check_end();
  }

  [[nodiscard]] const std::vector<std::string>& faults() const { return faults_; }
  [[nodiscard]] std::uint64_t troubles() const { return troubles_; }
  [[nodiscard]] std::size_t most_blocked() const { return most_blocked_; }
  // Whether records that have no group were stored in the order in which they were published.
  [[nodiscard]] bool in_order_without_groups() {
    int last = -1;
    for (const Record& record : all_of("copies")) {
      if (!record.group.empty()) continue;
      if (number_of(record.id) < last) return false;
      last = number_of(record.id);
    }
    return true;
  }

 private:
  struct Process;
  class Transform final : public Transforming {
   public:
    explicit Transform(StagerWorld& world) : world_(world) {}
    Status start(const std::string& payload, Time, Done done) override {
      if (world_.strikes(world_.plan_.rates.no_transform)) {
        return Error{Errc::kUnavailable, "too much waits"};
      }
      auto answer = [&world = world_, number = number_of(payload), done = std::move(done)] {
        if (world.strikes(world.plan_.rates.no_transform)) {
          return done(Error{Errc::kUnavailable, "no worker can be started"});
        }
        if (is_bad(number)) return done(ReshapeOutcome(NotReshaped{"it is bad"}));
        std::vector<Reshaped> outputs;
        for (int i = 0; i < outputs_of(number); ++i) {
          outputs.push_back({.payload = base::format("{}", i)});
        }
        done(ReshapeOutcome(std::move(outputs)));
      };
      if (world_.random_.chance(1, 4)) {
        answer();
      } else {
        const auto most = world_.random_.chance(1, 30) ? 15'000U : 50U;
        world_.at(world_.clock_.steady_ms() + world_.draw(1, most), std::move(answer));
      }
      return Ok{};
    }

   private:
    StagerWorld& world_;
  };
  struct Process {
    Process(StagerWorld& world, int its_number)
        : number(its_number),
          seen({world.clock_, world.random_,
                [&world, this] { return dead || world.strikes(world.plan_.rates.store_error); },
                [&world, this] {
                  dead = dead || world.strikes(world.plan_.rates.death_in_call);
                  return dead || world.strikes(world.plan_.rates.answer_lost);
                }},
               world.store_),
          splitting(seen),
          transform(world),
          stager(world.plan_.split_commits ? static_cast<Store&>(splitting) : seen, world.clock_,
                 settings(its_number, world.plan_), world.compose(), &transform) {}
    static StagerSettings settings(int number, const StagerPlan& plan) {
      StagerSettings settings;
      settings.blocked = "erp.blocked";
      settings.hold = plan.hold;
      settings.source = "orders";
      settings.consumer = "erp";
      settings.dead_letters = "erp.dead";
      settings.owner = base::format("p{}", number);
      settings.outbox = OwnStream{"erp.outbox", {}};
      settings.delivered_kept = std::chrono::days{300};
      settings.held_max = 20;
      settings.under_way_max = 8;
      return settings;
    }
    const int number;
    bool dead = false;
    WorldStore seen;
    SplittingStore splitting;
    Transform transform;
    Stager stager;
  };

  // Two endpoints and a stream; what is stored says which record and which output it is of.
  Stager::Compose compose() {
    return [this](const Record& record, std::uint64_t,
                  const std::vector<Reshaped>& outputs) -> Result<std::vector<StagedRecord>> {
      std::vector<StagedRecord> all;
      for (const Reshaped& output : outputs) {
        for (const char* to : {"a", "b", ""}) {
          StagedRecord staged;
          staged.stream = *to == '\0' ? "copies" : "erp.outbox";
          staged.id = record.id + '/' + output.payload + '/' + to;
          if (!record.group.empty()) {
            staged.group = std::string(to) + '/' + record.group;
          }
          staged.payload = staged.id;
          all.push_back(std::move(staged));
        }
      }
      return all;
    };
  }

  void blame(std::string text) { faults_.push_back(std::move(text)); }
  [[nodiscard]] bool strikes(std::uint32_t of_thousand) {
    const bool struck = !healing_ && random_.chance(of_thousand, 1000);
    troubles_ += struck ? 1 : 0;
    return struck;
  }
  [[nodiscard]] std::int64_t draw(std::uint64_t low, std::uint64_t high) {
    return static_cast<std::int64_t>(random_.between(low, high));
  }
  void at(std::int64_t ms, std::function<void()> act) { events_.emplace(ms, std::move(act)); }

  void publish() {
    const int number = published_++;
    const std::string id = base::format("r{}", number);
    const std::string key = base::format("k{}", random_.below(8));
    Append append{.stream = "orders", .payload = id, .id = id};
    if (!random_.chance(1, 4)) {
      if (!plan_.without_groups) append.group = key;
      group_of_[number] = key;
    }
    const Op op = append;
    ignore(store_.commit({.ops = {&op, 1}}), "it cannot fail");
    if (--left_ == 0) return;
    at(clock_.steady_ms() + draw(0, random_.chance(1, 40) ? 20'000 : 60), [this] { publish(); });
  }

  void spawn(std::size_t slot) {
    const int number = ++spawned_;
    processes_[slot] = std::make_unique<Process>(*this, number);
    at(clock_.steady_ms(), [this, slot, number] { wake(slot, number); });
  }

  void wake(std::size_t slot, int number) {
    Process& process = *processes_[slot];
    if (process.number != number) return;
    process.stager.wait(Duration{0});
    const auto step = process.stager.step();
    check_blocked();
    if (process.dead) return spawn(slot);
    if (strikes(plan_.rates.stop)) {
      ignore(process.stager.stop(), "what is not given back comes again when its lease ends");
      return spawn(slot);
    }
    std::int64_t rest = step ? std::min<std::int64_t>(step->count(), draw(1, 100)) : 300;
    if (strikes(plan_.rates.freeze)) rest = draw(9'000, 30'000);
    at(clock_.steady_ms() + std::max<std::int64_t>(rest, 1),
       [this, slot, number] { wake(slot, number); });
  }

  [[nodiscard]] bool all_done() {
    if (left_ != 0) return false;
    core::Stream& stream = *store_.rules.state.find_stream("orders");
    const core::Consumer* consumer = store_.rules.state.find_consumer(stream, "erp");
    return consumer != nullptr && consumer->floor() == stream.last;
  }

  [[nodiscard]] std::vector<Record> all_of(const char* stream) {
    auto found = store_.read({.stream = stream, .max = 1'000'000});
    return found ? std::move(found->records) : std::vector<Record>{};
  }

  void check_end() {
    std::map<std::string, int> stored;
    std::map<std::string, int> last_of_group;
    for (const char* stream : {"erp.outbox", "copies"}) {
      last_of_group.clear();
      for (const Record& record : all_of(stream)) {
        ++stored[record.payload];
        check_order(record, last_of_group);
      }
    }
    for (int number = 0; number < published_; ++number) {
      for (int i = 0; i < (is_bad(number) ? 0 : outputs_of(number)); ++i) {
        for (const char* to : {"a", "b", ""}) {
          const std::string id = base::format("r{}/{}/{}", number, i, to);
          const int times = stored[id];
          if (times == 0) blame("lost: " + id);
          if (times > 1) blame("doubled: " + id);
          stored.erase(id);
        }
      }
    }
    for (const auto& [id, times] : stored) {
      if (times > 0) blame("made up: " + id);
    }
    check_dead();
  }

  // G2
  void check_order(const Record& record, std::map<std::string, int>& last_of_group) {
    const int number = number_of(record.payload);
    const auto group = group_of_.find(number);
    if (group == group_of_.end()) return;
    const std::string to = record.payload.substr(record.payload.rfind('/'));
    const int place = number * 10 + record.payload[record.payload.find('/') + 1] - '0';
    int& last = last_of_group[group->second + to];
    if (place <= last) blame(base::format("G2: {} of {}", record.payload, group->second));
    last = place;
    if (record.group.empty()) blame("without its group: " + record.payload);
  }

  // Z19: nothing is stored of what comes after a record that blocks its key.
  void check_blocked() {
    if (!plan_.hold) return;
    const auto blocked = list_blocked(store_, {"orders", "erp", "erp.blocked"}, 1'000).value();
    if (blocked.empty()) return;
    most_blocked_ = std::max(most_blocked_, blocked.size());
    const auto fresh = store_.read({.stream = "copies", .from = looked_at_.next(), .max = 10'000});
    for (const Record& record : fresh.value().records) {
      newest_of_group_[record.group] = number_of(record.payload);
      looked_at_ = record.sequence;
    }
    for (const BlockedRecord& each : blocked) {
      const int number = number_of(store_.record("orders", each.receipt.sequence).id);
      const auto newest = newest_of_group_.find("/" + each.key);
      if (newest == newest_of_group_.end() || newest->second <= number) continue;
      blame(
          base::format("Z19: r{} is stored while r{} blocks {}", newest->second, number, each.key));
    }
  }

  // G3
  void check_dead() {
    std::map<int, int> dead;
    for (const Record& record : all_of("erp.dead")) {
      ++dead[number_of(record.id)];
      if (record.payload != record.id) blame("a dead letter is not as it was: " + record.id);
    }
    for (int number = 0; number < published_; ++number) {
      const int times = dead[number];
      if (times != (is_bad(number) ? 1 : 0)) {
        blame(base::format("r{} is {} dead letters", number, times));
      }
    }
  }

  sim::Random random_;
  const StagerPlan plan_;
  sim::SimClock clock_;
  RuleStore store_;
  std::multimap<std::int64_t, std::function<void()>> events_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::map<int, std::string> group_of_;
  std::vector<std::string> faults_;
  int published_ = 0;
  int left_;
  int spawned_ = 0;
  std::uint64_t troubles_ = 0;
  std::size_t most_blocked_ = 0;                // keys at once
  Sequence looked_at_{};                        // of the copies
  std::map<std::string, int> newest_of_group_;  // of these
  bool healing_ = false;
};

// HAPAX_SEEDS=N tries more; HAPAX_SEED=S only that one.
std::uint64_t number_in(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::vector<std::string> faults_of(const StagerPlan& plan, std::uint64_t seeds) {
  const std::uint64_t only = number_in("HAPAX_SEED", 0);
  std::vector<std::string> all;
  for (std::uint64_t seed = 1; seed <= number_in("HAPAX_SEEDS", seeds) && all.empty(); ++seed) {
    if (only != 0 && seed != only) continue;
    StagerWorld world(seed, plan);
    world.run();
    for (const std::string& fault : world.faults()) {
      all.push_back(base::format("HAPAX_SEED={}: {}", seed, fault));
    }
  }
  return all;
}

TEST(StagerInTheWorld, StoresEachOutputOnceAndKeepsOrder) {
  EXPECT_THAT(faults_of({}, 25), testing::IsEmpty());
}

TEST(StagerInTheWorld, ALoneOneKeepsTheOrderOfRecordsWithoutAGroup) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    StagerWorld world(seed, {.rates = StagerRates::none(), .processes = 1});
    world.run();
    EXPECT_THAT(world.faults(), testing::IsEmpty());
    EXPECT_EQ(world.troubles(), 0U);
    EXPECT_TRUE(world.in_order_without_groups()) << "HAPAX_SEED=" << seed;
  }
}

TEST(StagerInTheWorld, NothingOvertakesARecordThatBlocksItsKey) {
  const StagerPlan plan{.hold = Duration{70'000}};
  EXPECT_THAT(faults_of(plan, 8), testing::IsEmpty());
  StagerWorld world(1, plan);
  world.run();
  EXPECT_GT(world.most_blocked(), 1U) << "otherwise nothing was tried";
}

// The checkers can see: what is wrong on purpose is found.
TEST(StagerInTheWorld, FindsOneThatStoresAndAcknowledgesInTwoCommits) {
  EXPECT_THAT(faults_of({.split_commits = true}, 25),
              testing::Contains(testing::HasSubstr("doubled")));
}

TEST(StagerInTheWorld, FindsASourceWithoutGroups) {
  EXPECT_THAT(faults_of({.without_groups = true}, 25), testing::Contains(testing::HasSubstr("G2")));
}

}  // namespace
}  // namespace hapax::delivery
