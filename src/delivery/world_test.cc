#include "delivery/world_test.h"

#include <cstdlib>

#include <gtest/gtest.h>

#include "delivery/lane_stock_test.h"
#include "delivery/stream_stock_test.h"

namespace hapax::delivery {

std::size_t WorldSink::batch_max() const { return world_.plan_.batch_max; }

void WorldSink::start(std::span<const Outgoing* const> records, std::int64_t not_after_ms,
                      Done done) {
  std::vector<std::string> ids;
  for (const Outgoing* record : records) ids.push_back(record->id);
  world_.send(world_.alive(process_), process_, std::move(ids), not_after_ms, std::move(done));
}

World::World(std::uint64_t seed, WorldPlan plan, const MakeStock& make_stock)
    : random_(seed),
      plan_(std::move(plan)),
      stock_(make_stock(
          {clock_, random_, trouble(plan_.rates.source_error),
           trouble(plan_.rates.source_answer_lost),
           plan_.rates.death_in_call == 0 ? [] { return false; }
                                          : trouble(plan_.rates.death_in_call),
           [this](const std::string& id, OutcomeProbe::Done done) { ask(id, std::move(done)); }})),
      left_(plan_.records) {
  processes_.resize(1 + random_.below(3));
  for (std::size_t slot = 0; slot < processes_.size(); ++slot) spawn(slot);
  at(0, [this] { publish(); });
  if (plan_.rates.outages != 0) fall_out();
  if (plan_.decides) person();
}

// Comes by every now and then, and for as long as anything blocks.
void World::person() {
  at(clock_.steady_ms() + static_cast<std::int64_t>(random_.between(5'000, 90'000)), [this] {
    stock_->decide(healing_);
    person();
  });
}

void World::fall_out() {
  const auto good = static_cast<std::int64_t>(random_.between(0, 240'000));
  const auto bad = static_cast<std::int64_t>(random_.between(10, 60'000));
  at(clock_.steady_ms() + good, [this, bad] {
    if (healing_) return;
    ++troubles_;
    outage_until_ms_ = clock_.steady_ms() + bad;
    fall_out();
  });
}

void World::publish() {
  const std::string id = base::format("r{}", ids_.size());
  Published record;
  if (!random_.chance(1, 4)) record.key = base::format("k{}", random_.below(12));
  record.bad = strikes(plan_.rates.bad_records);
  record.failing = strikes(plan_.rates.failing_records);
  record.place = static_cast<int>(by_key_[record.key].size());
  by_key_[record.key].push_back(id);
  stock_->publish(id, record.key);
  ids_.emplace(id, std::move(record));
  if (--left_ == 0) return;
  const std::int64_t rest =
      random_.chance(1, 40) ? 20'000 : static_cast<std::int64_t>(random_.below(60));
  at(clock_.steady_ms() + rest, [this] { publish(); });
}

void World::spawn(std::size_t slot) {
  auto process = std::make_unique<Process>();
  process->number = ++spawned_;
  process->source = stock_->open(base::format("p{}", spawned_));
  process->sink = std::make_unique<WorldSink>(*this, process->number);
  process->engine = std::make_unique<Engine>(*process->source, clock_, plan_.engine);
  process->engine->add_endpoint(*process->sink, plan_.policy);
  processes_[slot] = std::move(process);
  at(clock_.steady_ms(), [this, slot, number = spawned_] {
    if (alive(number) != nullptr) wake(slot);
  });
}

World::Process* World::alive(int number) {
  for (const auto& process : processes_) {
    if (process && process->number == number) return process.get();
  }
  return nullptr;
}

// One step of a process, and what may befall it.
void World::wake(std::size_t slot) {
  Process& process = *processes_[slot];
  process.source->wait(Duration{0});
  const auto step = process.engine->step();
  Duration rest{300};
  if (step) rest = std::max(step->idle_for, Duration{random_.chance(1, 3) ? 1 : 0});
  // A driver is woken by answers and by new records; here it looks every so often.
  const std::uint64_t rest_max = process.engine->held() == 0 ? 1'000 : 100;
  rest = std::min(rest, Duration{static_cast<std::int64_t>(random_.between(1, rest_max))});
  if (strikes(plan_.rates.freeze)) {
    ++troubles_;
    rest = Duration{static_cast<std::int64_t>(random_.between(1'000, 40'000))};
  }
  at(clock_.steady_ms() + rest.count(), [this, slot, number = process.number] {
    if (alive(number) != nullptr) wake(slot);
  });
  strike(slot);
}

void World::strike(std::size_t slot) {
  const bool died = stock_->died(base::format("p{}", processes_[slot]->number));
  const bool kill = strikes(plan_.rates.kill) || died;
  // Somebody starts a process again that sends nothing any more.
  const bool told_gone =
      told_gone_.contains(processes_[slot]->number) && (healing_ || random_.chance(1, 20));
  const bool stop = !kill && (told_gone || strikes(plan_.rates.stop));
  if (!kill && !stop) return;
  ++troubles_;
  if (stop) {
    processes_[slot]->engine->wind_down();
    if (const Status stopped = processes_[slot]->engine->stop(); !stopped) ++troubles_;
  }
  spawn(slot);
}

// Between start() and the bytes leaving, time passes: a connection is made, the process stands
// still.
bool World::send(Process* process, int number, std::vector<std::string> ids,
                 std::int64_t not_after_ms, Sink::Done done) {
  for (const std::string& id : ids) {
    const std::string& key = ids_.at(id).key;
    if (!key.empty() && process->keys_under_way.contains(key)) {
      witness_.blame(base::format("Z7: key {} has two starts under way", key));
    }
  }
  if (told_gone_.contains(number)) witness_.blame("Z18: sent to an endpoint that is gone");
  for (const std::string& id : ids) ++ids_.at(id).begun;
  for (const std::string& id : ids) process->keys_under_way.insert(ids_.at(id).key);
  const std::int64_t delay = random_.chance(1, 50)
                                 ? static_cast<std::int64_t>(random_.below(20'000))
                                 : static_cast<std::int64_t>(random_.below(5));
  auto finish = [this, number, ids, done = std::move(done)](std::vector<SendResult> results) {
    Process* owner = alive(number);
    if (owner == nullptr) return;  // Nobody hears it.
    for (const std::string& id : ids) {
      owner->keys_under_way.erase(owner->keys_under_way.find(ids_.at(id).key));
    }
    done(std::move(results));
  };
  at(clock_.steady_ms() + delay, [this, number, ids, not_after_ms, finish = std::move(finish)] {
    leave(number, ids, not_after_ms, finish);
  });
  return true;
}

void World::leave(int number, const std::vector<std::string>& ids, std::int64_t not_after_ms,
                  Sink::Done done) {
  if (alive(number) == nullptr) return;  // It died before one byte left.
  if (clock_.steady_ms() >= not_after_ms) {
    done(std::vector<SendResult>(ids.size(), {.outcome = Outcome::kNotSent}));
    return;
  }
  if (strikes(plan_.rates.unready)) {
    ++troubles_;
    const Duration after{static_cast<std::int64_t>(random_.between(100, 10'000))};
    done(std::vector<SendResult>(ids.size(), {.outcome = Outcome::kNotSent, .after = after}));
    return;
  }
  for (const std::string& id : ids) {
    if (!stock_->leased(id)) {
      witness_.blame(base::format("Z1: {} left when its lease was over", id));
    }
    check_blocked(id);
    const int left = ++ids_.at(id).left;
    if (left > 1 && plan_.promise == WorldPromise::kAtMostOnce) {
      witness_.blame(base::format("Z14: {} left a second time", id));
    }
  }
  // The bytes are on their way, whatever becomes of the process.
  const bool hangs = strikes(plan_.rates.hangs);
  const auto way =
      static_cast<std::int64_t>(hangs ? random_.between(5'000, 30'000) : random_.below(20));
  at(clock_.steady_ms() + way, [this, number, ids, done = std::move(done)] {
    if (!strikes(plan_.rates.gone)) return done(judge(ids));
    ++troubles_;
    told_gone_.insert(number);
    done(std::vector<SendResult>(ids.size(), {.outcome = Outcome::kGone, .reason = "410"}));
  });
}

// In order; nothing of a key behind what was not delivered.
std::vector<SendResult> World::judge(const std::vector<std::string>& ids) {
  std::vector<SendResult> results;
  std::set<std::string> stopped;
  for (const std::string& id : ids) {
    const std::string& key = ids_.at(id).key;
    const bool behind = !key.empty() && stopped.contains(key);
    results.push_back(behind ? SendResult{.outcome = Outcome::kNotSent} : judge_one(id));
    if (results.back().outcome != Outcome::kDelivered) stopped.insert(key);
  }
  return results;
}

SendResult World::judge_one(const std::string& id) {
  const Published& record = ids_.at(id);
  if (clock_.steady_ms() < outage_until_ms_)
    return {.outcome = Outcome::kTryLater, .reason = "away"};
  if (strikes(plan_.rates.refused_connect)) {
    ++troubles_;
    return {.outcome = Outcome::kTryLater, .reason = "refused"};
  }
  if (record.bad) return {.outcome = Outcome::kRejected, .answered = true, .reason = "422"};
  if (record.failing && !healing_)
    return {.outcome = Outcome::kTryLater, .answered = true, .reason = "500"};
  arrive(id);
  if (!strikes(plan_.rates.lost_answer)) return {};
  ++troubles_;
  return {.outcome = Outcome::kUnknown, .reason = "reset"};
}

// Y1: a record arrives only after every earlier one of its key did, or was given up.
void World::arrive(const std::string& id) {
  witness_.arrived.push_back(id);
  Published& record = ids_.at(id);
  const bool again = std::exchange(record.arrived, true);
  if (again && plan_.promise != WorldPromise::kArrives) {
    witness_.blame(base::format("Z14: {} arrived a second time", id));
  }
  if (again || record.key.empty()) return;
  const std::set<std::string> dead = given_up();
  const auto& line = by_key_.at(record.key);
  for (int i = 0; i < record.place; ++i) {
    const std::string& earlier = line[static_cast<std::size_t>(i)];
    if (ids_.at(earlier).arrived || dead.contains(earlier)) continue;
    witness_.blame(base::format("Y1: {} arrived before {} of key {}", id, earlier, record.key));
  }
}

// Z19: no later record of a key is sent while an earlier one blocks it, nor what blocks it.
void World::check_blocked(const std::string& id) {
  const Published& record = ids_.at(id);
  const std::set<std::string> blocking = stock_->blocking();
  if (blocking.empty() || record.key.empty()) return;
  const auto& line = by_key_.at(record.key);
  for (int i = 0; i <= record.place; ++i) {
    const std::string& earlier = line[static_cast<std::size_t>(i)];
    if (!blocking.contains(earlier)) continue;
    witness_.blame(base::format("Z19: {} left while {} blocks key {}", id, earlier, record.key));
  }
}

// It says the truth, and what it said may be old when it is heard.
void World::ask(const std::string& id, OutcomeProbe::Done done) {
  using Told = OutcomeProbe::Told;
  at(clock_.steady_ms() + static_cast<std::int64_t>(random_.below(100)),
     [this, id, done = std::move(done)] {
       const bool nothing = strikes(plan_.rates.lost_answer);
       const Told truth = ids_.at(id).arrived ? Told::kDelivered : Told::kNotArrived;
       const Told told = nothing ? Told::kNothing : truth;
       at(clock_.steady_ms() + static_cast<std::int64_t>(random_.below(5'000)),
          [told, done] { done(told); });
     });
}

std::set<std::string> World::given_up() {
  std::set<std::string> all;
  for (const auto& [id, reason] : stock_->dead()) all.insert(id);
  all.merge(stock_->dropped());
  return all;
}

void World::run() {
  constexpr std::int64_t kTroubleMs = 1'200'000;
  constexpr std::int64_t kEndMs = 40'000'000;
  std::uint64_t guard = 0;
  while (!events_.empty() && !(healing_ && all_done())) {
    const auto first = events_.begin();
    if (first->first > kEndMs || ++guard > 4'000'000) {
      witness_.blame("nothing comes to an end");
      break;
    }
    if (first->first > clock_.steady_ms()) clock_.advance(first->first - clock_.steady_ms());
    if (left_ == 0 && (all_done() || clock_.steady_ms() > kTroubleMs)) healing_ = true;
    const auto act = std::move(first->second);
    events_.erase(first);
    act();
  }
  check_end();
}

// Z21: no attempt is told twice, and without trouble every one is told.
void World::check_log() {
  const std::map<std::string, int>* const logged = stock_->logged();
  if (logged == nullptr) return;
  if (!stock_->log_fault().empty()) witness_.blame("Z21: " + stock_->log_fault());
  for (const auto& [id, record] : ids_) {
    const auto at = logged->find(id);
    const int told = at == logged->end() ? 0 : at->second;
    // What began and was not sent is no attempt.
    const bool wrong = troubles_ == 0 ? told != record.left : told > record.begun;
    if (!wrong) continue;
    witness_.blame(base::format("Z21: of {}, {} attempts began, {} left and {} are logged", id,
                                record.begun, record.left, told));
  }
}

void World::check_end() {
  check_log();
  const std::map<std::string, std::string> dead = stock_->dead();
  const std::map<std::string, ClaimState> claims = stock_->claims();
  const std::set<std::string> over = given_up();
  for (const auto& [id, record] : ids_) {
    const bool sick = record.bad || record.failing;
    if (!record.arrived && !over.contains(id)) witness_.blame("lost: " + id);
    const bool parked = plan_.promise == WorldPromise::kOnce && dead.contains(id) &&
                        dead.at(id).find("unknown outcome") != std::string::npos;
    const bool one_attempt = plan_.promise == WorldPromise::kAtMostOnce;
    if (dead.contains(id) && !sick && !parked && !one_attempt) {
      witness_.blame("innocent and dead: " + id + ": " + dead.at(id));
    }
    const bool waits = plan_.decides && !record.key.empty() && dead.contains(id);
    if (waits && !dead.at(id).starts_with("parked")) {
      witness_.blame("Z19: nobody has decided about " + id + ": " + dead.at(id));
    }
    if (record.bad && record.arrived) witness_.blame("arrived although it never passes: " + id);
    if (plan_.promise != WorldPromise::kArrives) check_claim(id, record, over.contains(id), claims);
  }
}

// Nothing is told as delivered that did not arrive, and nothing that arrived is told as failed.
void World::check_claim(const std::string& id, const Published& record, bool dead,
                        const std::map<std::string, ClaimState>& claims) {
  const auto at = claims.find(id);
  if (at == claims.end()) return witness_.blame("Z13: no claim: " + id);
  const ClaimState state = at->second;
  if (state == ClaimState::kProcessing) witness_.blame("Z13: never settled: " + id);
  const ClaimState wrong = record.arrived ? ClaimState::kFailed : ClaimState::kCompleted;
  if (state == wrong) {
    witness_.blame(base::format("Z13: the claim of {} is wrong ({})", id,
                                record.arrived ? "it arrived" : "it did not arrive"));
  }
  if (state != ClaimState::kCompleted && !dead) witness_.blame("Z13: told nowhere: " + id);
}

namespace {

EndpointPolicy patient_world() {
  EndpointPolicy policy;
  policy.concurrency = 8;
  policy.failure_cost = FailureCost::kOnceOthersPass;
  policy.retry_after = [](std::uint32_t attempt) { return Duration{500 * attempt}; };
  return policy;
}

// HAPAX_SEEDS=N tries more; HAPAX_SEED=S only that one.
std::uint64_t number_in(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

void try_seeds(const MakeStock& make_stock, const WorldPlan& plan, std::uint64_t seeds) {
  const std::uint64_t only = number_in("HAPAX_SEED", 0);
  const std::uint64_t count = number_in("HAPAX_SEEDS", seeds);
  for (std::uint64_t seed = 1; seed <= count; ++seed) {
    if (only != 0 && seed != only) continue;
    World world(seed, plan, make_stock);
    world.run();
    for (const std::string& fault : world.witness().faults) {
      ADD_FAILURE() << "HAPAX_SEED=" << seed << ": " << fault;
      if (testing::Test::HasFailure()) break;
    }
    if (testing::Test::HasFailure()) return;
  }
}

struct StockKind {
  std::string name;
  MakeStock make;
  std::uint64_t part =
      1;  // of the seeds this one of so many is tried: the rules of a store cost time
};

class DeliveryWorld : public testing::TestWithParam<StockKind> {};

INSTANTIATE_TEST_SUITE_P(From, DeliveryWorld,
                         testing::Values(StockKind{"Outbox", make_lane_stock},
                                         StockKind{"Database", make_database_stock, 2},
                                         StockKind{"Stream", make_stream_stock, 5}),
                         [](const auto& kind) { return kind.param.name; });

TEST_P(DeliveryWorld, LosesNothingAndKeepsOrder) {
  try_seeds(GetParam().make, {.policy = patient_world()}, 60 / GetParam().part);
}

TEST_P(DeliveryWorld, LosesNothingWhenManyGoInOneStart) {
  WorldPlan plan{.policy = patient_world(), .batch_max = 20};
  plan.policy.concurrency = 2;
  try_seeds(GetParam().make, plan, 40 / GetParam().part);
}

WorldRates gone_or_unready() {
  return {.lost_answer = 0,
          .refused_connect = 0,
          .outages = 0,
          .bad_records = 0,
          .failing_records = 0,
          .gone = 20,
          .unready = 50};
}

// Z18: whoever was told sends nothing more, and what waits is not lost and not blamed.
TEST_P(DeliveryWorld, KeepsWhatCannotBeSent) {
  WorldPlan plan{.policy = patient_world()};
  // Every attempt that counts is one too many: nothing but that which costs none goes wrong.
  plan.policy.failure_cost = FailureCost::kAttempt;
  plan.policy.attempts_max = 1;
  plan.rates = gone_or_unready();
  try_seeds(GetParam().make, plan, 40 / GetParam().part);
}

TEST_P(DeliveryWorld, WithoutFaultsEverythingArrivesOnce) {
  for (std::uint64_t seed = 1; seed <= 20 / GetParam().part; ++seed) {
    World world(seed, {.rates = WorldRates::none(), .policy = patient_world()}, GetParam().make);
    world.run();
    EXPECT_TRUE(world.witness().faults.empty()) << world.witness().faults.front();
    EXPECT_EQ(world.witness().arrived.size(), world.published()) << "HAPAX_SEED=" << seed;
  }
}

// Whether a checker objects to one of so many seeds.
bool is_found(const StockKind& stock, const WorldPlan& plan, std::string_view about) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    World world(seed, plan, stock.make);
    world.run();
    const auto& faults = world.witness().faults;
    if (std::any_of(faults.begin(), faults.end(),
                    [&](const std::string& fault) { return fault.starts_with(about); })) {
      return true;
    }
  }
  return false;
}

// The checkers can see: what is wrong on purpose is found.
TEST_P(DeliveryWorld, FindsAnEngineThatSendsWithoutALease) {
  WorldPlan plan{.policy = patient_world()};
  plan.engine.margin = Duration{-30'000};
  plan.rates.freeze = 20;
  EXPECT_TRUE(is_found(GetParam(), plan, "Z1"));
}

TEST_P(DeliveryWorld, FindsAnEngineThatBlamesRecordsForAnOutage) {
  WorldPlan plan{.policy = patient_world()};
  plan.policy.failure_cost = FailureCost::kAttempt;
  plan.policy.attempts_max = 3;
  EXPECT_TRUE(is_found(GetParam(), plan, "innocent"));
}

// Of a stream the store keeps the order itself.
TEST(DeliveryWorldOfOutboxes, FindsAnEngineThatLetsLaterRecordsPass) {
  WorldPlan plan{.policy = patient_world()};
  plan.policy.on_failure = KeyOrder::kPark;
  EXPECT_TRUE(is_found({"Outbox", make_lane_stock}, plan, "Y1"));
}

// Y1: the order is kept by the groups that the store knows.
TEST(DeliveryWorldOfStreams, FindsAStreamWhoseRecordsHaveNoGroup) {
  const StockKind stock{"Stream", make_stream_stock_without_groups, 5};
  EXPECT_TRUE(is_found(stock, {.policy = patient_world()}, "Y1"));
}

// Z21
TEST(DeliveryWorldOfStreams, FindsAnEngineThatTellsNothingOfItsAttempts) {
  const StockKind stock{"Stream", make_stream_stock};
  WorldPlan plan{.rates = WorldRates::none(), .policy = patient_world()};
  plan.engine.tells_attempts = false;
  EXPECT_TRUE(is_found(stock, plan, "Z21"));
}

// --- attempts that are claims

using InDoubt = AttemptTerms::InDoubt;

WorldPlan plan_of(WorldPromise promise) {
  WorldPlan plan{.promise = promise, .policy = patient_world()};
  plan.engine.announces = true;
  const bool repeats = promise == WorldPromise::kArrives;
  plan.policy.on_unknown = repeats ? OnUnknown::kRetry : OnUnknown::kPark;
  return plan;
}

MakeStock claiming(InDoubt in_doubt) {
  return [in_doubt](const WorldTroubles& troubles) {
    return make_claiming_stock(troubles, attempts_of_world(in_doubt));
  };
}

class WorldProbe final : public OutcomeProbe {
 public:
  explicit WorldProbe(const WorldTroubles& troubles) : ask_(troubles.ask) {}
  void ask(const std::string& key, Done done) override { ask_(key, std::move(done)); }

 private:
  const std::function<void(const std::string&, Done)> ask_;
};

MakeStock asking(Duration after) {
  return [after](const WorldTroubles& troubles) {
    AttemptTerms terms = attempts_of_world(InDoubt::kAsk);
    terms.probe = std::make_shared<WorldProbe>(troubles);
    terms.ask_after = after;
    return make_claiming_stock(troubles, std::move(terms));
  };
}

TEST(DeliveryWorldOfClaims, NothingArrivesTwiceWhereSomebodyDecides) {
  try_seeds(claiming(InDoubt::kPark), plan_of(WorldPromise::kOnce), 12);
}

TEST(DeliveryWorldOfClaims, NothingLeavesTwiceWithOneAttempt) {
  try_seeds(claiming(InDoubt::kGiveUp), plan_of(WorldPromise::kAtMostOnce), 12);
}

TEST(DeliveryWorldOfClaims, NothingIsLostWhereRepetitionsAreRecognised) {
  try_seeds(claiming(InDoubt::kSendAgain), plan_of(WorldPromise::kArrives), 12);
}

// Z18: also where every attempt is a claim.
TEST(DeliveryWorldOfClaims, KeepsWhatCannotBeSent) {
  for (const auto& [in_doubt, promise] : {std::pair(InDoubt::kPark, WorldPromise::kOnce),
                                          std::pair(InDoubt::kGiveUp, WorldPromise::kAtMostOnce),
                                          std::pair(InDoubt::kSendAgain, WorldPromise::kArrives)}) {
    WorldPlan plan = plan_of(promise);
    plan.rates = gone_or_unready();
    try_seeds(claiming(in_doubt), plan, 8);
  }
}

// Requests of the dead may be on their way for half a minute.
TEST(DeliveryWorldOfClaims, NothingArrivesTwiceWhereTheEndpointTells) {
  try_seeds(asking(Duration{40'000}), plan_of(WorldPromise::kOnce), 12);
}

TEST(DeliveryWorldOfClaims, FindsASourceThatAsksTooEarly) {
  const StockKind stock{"Stream", asking(Duration{0})};
  EXPECT_TRUE(is_found(stock, plan_of(WorldPromise::kOnce), "Z14"));
}

TEST(DeliveryWorldOfClaims, WithoutFaultsEverythingArrivesOnce) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    WorldPlan plan = plan_of(WorldPromise::kOnce);
    plan.rates = WorldRates::none();
    World world(seed, plan, claiming(InDoubt::kPark));
    world.run();
    EXPECT_TRUE(world.witness().faults.empty()) << world.witness().faults.front();
    EXPECT_EQ(world.witness().arrived.size(), world.published()) << "HAPAX_SEED=" << seed;
  }
}

TEST(DeliveryWorldOfClaims, FindsASourceThatClaimsNothing) {
  const StockKind stock{"Stream", make_stream_stock};
  EXPECT_TRUE(is_found(stock, plan_of(WorldPromise::kOnce), "Z14"));
  EXPECT_TRUE(is_found(stock, plan_of(WorldPromise::kAtMostOnce), "Z14"));
}

TEST(DeliveryWorldOfClaims, FindsASourceThatRepeatsInDoubt) {
  const StockKind stock{"Stream", claiming(InDoubt::kSendAgain)};
  EXPECT_TRUE(is_found(stock, plan_of(WorldPromise::kOnce), "Z14"));
}

TEST(DeliveryWorldOfClaims, FindsASourceThatMakesASecondAttempt) {
  const StockKind stock{"Stream", claiming(InDoubt::kPark)};
  EXPECT_TRUE(is_found(stock, plan_of(WorldPromise::kAtMostOnce), "Z14"));
}

}  // namespace
}  // namespace hapax::delivery
