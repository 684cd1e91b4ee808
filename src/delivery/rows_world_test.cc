// Rows of a database that become records of a stream, in a simulated world: connections break,
// answers of the database and of the store are lost, commits take their time, leases end, and
// processes stand still, stop, or die between any two calls.
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/format.h"
#include "delivery/engine.h"
#include "delivery/lane_stock_test.h"
#include "delivery/store_sink.h"
#include "delivery/stream_stock_test.h"
#include "relay/table_source.h"
#include "sim/clock.h"
#include "sim/random.h"

namespace hapax::delivery {
namespace {

struct IntakeRates {  // of a thousand
  std::uint32_t database_error = 15;
  std::uint32_t database_answer_lost = 15;
  std::uint32_t store_error = 30;
  std::uint32_t store_answer_lost = 30;
  std::uint32_t death = 10;   // of a process, in between
  std::uint32_t freeze = 10;  // for longer than a lease
  std::uint32_t stop = 5;
};

enum class IntakeBug : std::uint8_t {
  kNone,
  kSettlesFirst,  // rows are told as stored before they are
  kWithoutIds,    // nothing recognises a row that comes again
};

struct IntakePlan {
  IntakeRates rates{};
  int rows = 200;
  IntakeBug bug = IntakeBug::kNone;
  bool table = false;  // one that was there before: without lanes and leases
};

// A table of an application. Transactions take their time, so a row can be seen after later ones;
// those of one key come one after the other.
struct MemoryTable {
  struct TableRow {
    std::string id;
    std::string key;
    std::int64_t seen_from_ms = 0;
    bool taken_over = false;
    std::string error{};
    [[nodiscard]] bool is_done() const { return taken_over || !error.empty(); }
  };
  std::vector<TableRow> rows;

  void insert(const std::string& id, const std::string& key, std::int64_t seen_from_ms) {
    for (const TableRow& row : rows) {
      if (row.key == key && !key.empty()) seen_from_ms = std::max(seen_from_ms, row.seen_from_ms);
    }
    rows.push_back({.id = id, .key = key, .seen_from_ms = seen_from_ms});
  }
};

class MemoryTableRows final : public relay::TableRows {
 public:
  MemoryTableRows(const WorldTroubles& troubles, MemoryTable& table)
      : troubles_(troubles), table_(table) {}

  Result<std::vector<Outgoing>> read(std::uint32_t most,
                                     std::span<const std::string> without) override {
    if (troubles_.error()) return away();
    std::vector<Outgoing> all;
    for (const auto& row : table_.rows) {
      const bool seen = row.seen_from_ms <= troubles_.clock.steady_ms();
      const bool wanted = std::find(without.begin(), without.end(), row.id) == without.end();
      if (row.taken_over || !seen || !wanted || all.size() == most) continue;
      all.push_back({.id = row.id, .key = row.key, .payload = row.id});
    }
    return all;
  }
  Status mark(std::span<const relay::RowMarking> rows) override {
    if (troubles_.error()) return away();
    for (const relay::RowMarking& marking : rows) {
      const auto row = std::find_if(table_.rows.begin(), table_.rows.end(),
                                    [&](const auto& each) { return each.id == marking.id; });
      row->taken_over = row->taken_over || marking.taken_over;
      if (!marking.taken_over) row->error = marking.error;
    }
    if (troubles_.answer_lost()) return Error{Errc::kOutcomeUnknown, "the connection is gone"};
    return Ok{};
  }
  Result<relay::LaneReport> report() override { return relay::LaneReport{}; }
  bool wait(Duration) override { return true; }
  void stay_up() override {}
  void nudge() override {}
  void wake() override {}

 private:
  static Error away() { return {Errc::kUnavailable, "the database is away"}; }

  WorldTroubles troubles_;
  MemoryTable& table_;
};

bool is_too_large(int number) { return number % 37 == 5; }

class IntakeWorld {
 public:
  IntakeWorld(std::uint64_t seed, IntakePlan plan)
      : random_(seed),
        plan_(plan),
        store_(clock_),
        outbox_(1 + random_.below(3)),
        left_(plan.rows) {
    StreamSettings settings;
    settings.record_bytes_max = 10;
    const Op create = CreateStream{"w.rows", settings};
    ignore(store_.commit({.ops = {&create, 1}}), "it cannot fail");
    processes_.resize(1 + random_.below(3));
    for (std::size_t slot = 0; slot < processes_.size(); ++slot) spawn(slot);
    at(0, [this] { publish(); });
  }

  void run() {
    constexpr std::int64_t kTroubleMs = 600'000;
    constexpr std::int64_t kEndMs = 20'000'000;
    while (!events_.empty() && !(healing_ && all_settled())) {
      const auto first = events_.begin();
      if (first->first > kEndMs) return blame("nothing comes to an end");
      if (first->first > clock_.steady_ms()) clock_.advance(first->first - clock_.steady_ms());
      if (left_ == 0 && (all_settled() || clock_.steady_ms() > kTroubleMs)) healing_ = true;
      const auto act = std::move(first->second);
      events_.erase(first);
      act();
      check_settled();
    }
    check_end();
  }

  [[nodiscard]] const std::vector<std::string>& faults() const { return faults_; }
  [[nodiscard]] std::uint64_t troubles() const { return troubles_; }

 private:
  struct Process {
    Process(IntakeWorld& world, int its_number)
        : number(its_number),
          source(world.open(its_number)),
          sink({[&world, its_number](const Commit& commit, Store::Done done) {
                  world.submit(its_number, commit, std::move(done));
                },
                world.clock_},
               "w.rows"),
          early(sink),
          engine(*source, world.clock_, {.window = 100}) {
      EndpointPolicy policy;
      policy.concurrency = 2;
      policy.attempts_max = 1;
      const bool bug = world.plan_.bug == IntakeBug::kSettlesFirst;
      engine.add_endpoint(bug ? static_cast<Sink&>(early) : sink, policy);
    }
    // The planted bug: it answers before the store does.
    class EarlySink final : public Sink {
     public:
      explicit EarlySink(StoreSink& inner) : inner_(inner) {}
      [[nodiscard]] std::size_t batch_max() const override { return inner_.batch_max(); }
      void start(std::span<const Outgoing* const> records, std::int64_t not_after_ms,
                 Done done) override {
        inner_.start(records, not_after_ms, [](const std::vector<SendResult>&) {});
        done(std::vector<SendResult>(records.size(), SendResult{.answered = true}));
      }

     private:
      StoreSink& inner_;
    };
    const int number;
    std::unique_ptr<Source> source;
    StoreSink sink;
    EarlySink early;
    Engine engine;
  };

  std::unique_ptr<Source> open(int number) {
    const std::string name = base::format("workflow w#p{}", number);
    const WorldTroubles troubles{clock_, random_,
                                 [this] { return strikes(plan_.rates.database_error); },
                                 [this] { return strikes(plan_.rates.database_answer_lost); }};
    const auto open = [this, name, troubles]() -> Result<relay::OpenedOutbox> {
      if (troubles.error()) return Error{Errc::kUnavailable, "nobody listens"};
      if (plan_.table) {
        auto rows = std::make_unique<MemoryTableRows>(troubles, table_);
        return relay::OpenedOutbox{std::make_unique<relay::TableSource>(std::move(rows), clock_),
                                   "uid"};
      }
      return relay::OpenedOutbox{std::make_unique<WorldSource>(troubles, outbox_, name), "uid"};
    };
    const DatabaseOutboxSettings settings{.lanes = LaneSettings{.batch = 40}, .owner = name};
    const auto hooks = [](const relay::OpenedOutbox&) { return LaneHooks{}; };
    return std::make_unique<DatabaseOutbox>(open, clock_, settings, hooks);
  }

  // A commit is under way for a while, whatever becomes of the process; nobody hears the answer if
  // that has died.
  void submit(int number, const Commit& commit, Store::Done done) {
    auto mine = std::make_shared<std::vector<Op>>(commit.ops.begin(), commit.ops.end());
    if (plan_.bug == IntakeBug::kWithoutIds) {
      for (Op& op : *mine) std::get<Append>(op).id.reset();
    }
    const std::int64_t way = random_.chance(1, 30) ? draw(1'000, 20'000) : draw(0, 20);
    at(clock_.steady_ms() + way, [this, number, mine, done = std::move(done)] {
      if (!is_alive(number) && random_.chance(1, 2)) return;  // It died before it asked.
      if (strikes(plan_.rates.store_error)) {
        return answer(number, done, Error{Errc::kUnavailable, "the store is away"});
      }
      auto stored = store_.commit({.ops = *mine});
      if (strikes(plan_.rates.store_answer_lost)) {
        return answer(number, done, Error{Errc::kOutcomeUnknown, "the connection is gone"});
      }
      at(clock_.steady_ms() + draw(0, 20),
         [this, number, mine, done, stored] { answer(number, done, stored); });
    });
  }
  void answer(int number, const Store::Done& done, Result<Answer> told) {
    if (is_alive(number)) done(std::move(told));
  }
  [[nodiscard]] bool is_alive(int number) const {
    return std::any_of(processes_.begin(), processes_.end(),
                       [&](const auto& each) { return each && each->number == number; });
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
    const int number = static_cast<int>(key_of_.size());
    const std::string key = random_.chance(1, 4) ? "" : base::format("k{}", random_.below(8));
    const std::string id = is_too_large(number) ? base::format("a row of too many bytes {}", number)
                                                : base::format("r{}", number);
    const std::size_t place = key.empty() ? random_.below(99) : std::hash<std::string>{}(key);
    if (plan_.table) {
      table_.insert(id, key, clock_.steady_ms() + draw(0, random_.chance(1, 10) ? 30'000 : 50));
    } else {
      outbox_.publish(place % outbox_.lanes.size(), id, key);
    }
    key_of_.emplace(id, key);
    if (!key.empty()) by_key_[key].push_back(id);
    if (--left_ == 0) return;
    at(clock_.steady_ms() + draw(0, random_.chance(1, 40) ? 20'000 : 60), [this] { publish(); });
  }

  void spawn(std::size_t slot) {
    const int number = ++spawned_;
    processes_[slot].reset();
    processes_[slot] = std::make_unique<Process>(*this, number);
    at(clock_.steady_ms(), [this, slot, number] { wake(slot, number); });
  }

  void wake(std::size_t slot, int number) {
    Process& process = *processes_[slot];
    if (process.number != number) return;
    process.source->wait(Duration{0});
    const auto step = process.engine.step();
    if (strikes(plan_.rates.death)) return spawn(slot);
    if (strikes(plan_.rates.stop)) {
      process.engine.wind_down();
      ignore(process.engine.stop(), "what is not given back comes again when its lease ends");
      return spawn(slot);
    }
    std::int64_t rest = step ? std::min<std::int64_t>(step->idle_for.count(), draw(1, 100)) : 300;
    if (strikes(plan_.rates.freeze)) rest = draw(9'000, 30'000);
    at(clock_.steady_ms() + std::max<std::int64_t>(rest, 1),
       [this, slot, number] { wake(slot, number); });
  }

  [[nodiscard]] bool all_settled() const {
    const bool table = std::all_of(table_.rows.begin(), table_.rows.end(),
                                   [](const auto& row) { return row.is_done(); });
    return left_ == 0 && table &&
           std::all_of(outbox_.lanes.begin(), outbox_.lanes.end(), [](auto& lane) {
             return lane.settled == lane.rows.size() && lane.waiting.empty();
           });
  }

  [[nodiscard]] std::vector<Record> stored() {
    auto found = store_.read({.stream = "w.rows", .from = seen_.next(), .max = 1'000'000});
    return found ? std::move(found->records) : std::vector<Record>{};
  }

  // Z30, after every act of anybody: what the database calls settled is in the store, or a dead
  // letter.
  void check_settled() {
    for (Record& record : stored()) {
      seen_ = record.sequence;
      ++times_[record.payload];
      if (!record.group.empty()) order_[record.group].push_back(record.payload);
    }
    for (const auto& row : table_.rows) {
      if (row.taken_over && times_[row.id] == 0) blame("Z30: settled and not stored: " + row.id);
    }
    std::set<std::string> elsewhere;
    for (const auto& [id, reason] : outbox_.dead) elsewhere.insert(id);
    for (auto& lane : outbox_.lanes) {
      for (const auto& each : lane.waiting) elsewhere.insert(each.record.id);
      for (std::size_t i = 0; i < lane.settled; ++i) {
        const std::string& id = lane.rows[i].id;
        if (times_[id] == 0 && !elsewhere.contains(id)) blame("Z30: settled and not stored: " + id);
      }
    }
  }

  void check_end() {
    std::map<std::string, int> dead;
    for (const auto& [id, reason] : outbox_.dead) ++dead[id];
    for (const auto& row : table_.rows) dead[row.id] += row.error.empty() ? 0 : 1;
    for (const auto& [id, key] : key_of_) {
      const int large = id.starts_with('a') ? 1 : 0;
      if (times_[id] != 1 - large) blame(base::format("{} is stored {} times", id, times_[id]));
      if (dead[id] != large) blame(base::format("{} is {} dead letters", id, dead[id]));
    }
    for (auto& [key, published] : by_key_) {
      std::erase_if(published, [](const std::string& id) { return id.starts_with('a'); });
      if (published != order_[key]) blame("out of order: " + key);
    }
  }

  sim::Random random_;
  const IntakePlan plan_;
  sim::SimClock clock_;
  RuleStore store_;
  relay::MemoryOutbox outbox_;
  MemoryTable table_;
  std::multimap<std::int64_t, std::function<void()>> events_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::map<std::string, std::string> key_of_;  // of each row
  std::map<std::string, std::vector<std::string>> by_key_;
  std::map<std::string, std::vector<std::string>> order_;  // as they were stored
  std::map<std::string, int> times_;                       // that each is stored
  Sequence seen_{};
  std::vector<std::string> faults_;
  int left_;
  int spawned_ = 0;
  std::uint64_t troubles_ = 0;
  bool healing_ = false;
};

// HAPAX_SEEDS=N tries more; HAPAX_SEED=S only that one.
std::uint64_t intake_number_in(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::vector<std::string> intake_faults_of(const IntakePlan& plan, std::uint64_t seeds) {
  const std::uint64_t only = intake_number_in("HAPAX_SEED", 0);
  std::vector<std::string> all;
  std::uint64_t troubles = 0;
  for (std::uint64_t seed = 1; seed <= intake_number_in("HAPAX_SEEDS", seeds) && all.empty();
       ++seed) {
    if (only != 0 && seed != only) continue;
    IntakeWorld world(seed, plan);
    world.run();
    troubles += world.troubles();
    for (const std::string& fault : world.faults()) {
      all.push_back(base::format("HAPAX_SEED={}: {}", seed, fault));
    }
  }
  EXPECT_GT(troubles, seeds) << "otherwise next to nothing was tried";
  return all;
}

TEST(RowsInTheWorld, AreStoredOnceInOrderAndSettledAfterThat) {
  EXPECT_THAT(intake_faults_of({}, 40), testing::IsEmpty());
}

// The checkers can see: what is wrong on purpose is found.
TEST(RowsInTheWorld, SettledBeforeTheyAreDurableAreFound) {
  EXPECT_THAT(intake_faults_of({.bug = IntakeBug::kSettlesFirst}, 5),
              testing::Contains(testing::HasSubstr("Z30")));
}

// Y20: of a table without lanes and leases, also if several take its rows at once.
TEST(RowsInTheWorld, OfATableThatWasThereBeforeAreStoredOnceAndInOrder) {
  EXPECT_THAT(intake_faults_of({.table = true}, 40), testing::IsEmpty());
}

TEST(RowsInTheWorld, OfATableWithoutIdsAreFound) {
  EXPECT_THAT(intake_faults_of({.bug = IntakeBug::kWithoutIds, .table = true}, 10),
              testing::Contains(testing::HasSubstr("is stored 2 times")));
}

TEST(RowsInTheWorld, OfATableSettledBeforeTheyAreDurableAreFound) {
  EXPECT_THAT(intake_faults_of({.bug = IntakeBug::kSettlesFirst, .table = true}, 5),
              testing::Contains(testing::HasSubstr("Z30")));
}

TEST(RowsInTheWorld, WithoutIdsAreFound) {
  EXPECT_THAT(intake_faults_of({.bug = IntakeBug::kWithoutIds}, 40),
              testing::Contains(testing::HasSubstr("is stored 2 times")));
}

}  // namespace
}  // namespace hapax::delivery
