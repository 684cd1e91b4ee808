// Keys that wait for a person, in the simulated world: processes die between any two calls of their
// store, and a person decides about what blocks whenever they come by.
#include <algorithm>
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "delivery/stream_stock_test.h"
#include "delivery/world_test.h"

namespace hapax::delivery {
namespace {

using testing::Contains;
using testing::IsEmpty;
using testing::StartsWith;

WorldPlan plan_with_person(WorldPromise promise = WorldPromise::kArrives) {
  WorldPlan plan{.promise = promise, .decides = true};
  plan.rates.bad_records = 60;
  plan.rates.death_in_call = 2;
  plan.policy.concurrency = 8;
  plan.policy.failure_cost = FailureCost::kOnceOthersPass;
  plan.policy.attempts_max = 3;
  plan.policy.retry_after = [](std::uint32_t attempt) { return Duration{500 * attempt}; };
  return plan;
}

// HAPAX_SEEDS=N tries more; HAPAX_SEED=S only that one.
std::vector<std::string> faults_with(const MakeStock& stock, const WorldPlan& plan,
                                     std::uint64_t seeds) {
  const char* only = std::getenv("HAPAX_SEED");
  const char* more = std::getenv("HAPAX_SEEDS");
  if (more != nullptr) seeds = std::strtoull(more, nullptr, 10);
  std::vector<std::string> all;
  for (std::uint64_t seed = 1; seed <= seeds && all.empty(); ++seed) {
    if (only != nullptr && seed != std::strtoull(only, nullptr, 10)) continue;
    World world(seed, plan, stock);
    world.run();
    for (const std::string& fault : world.witness().faults) {
      all.push_back(fault + base::format(" (HAPAX_SEED={})", seed));
    }
  }
  return all;
}

// Z19
TEST(BlockedKeysInTheWorld, NothingOvertakesARecordThatWaitsForAPerson) {
  EXPECT_THAT(faults_with(make_blocking_stock(Duration::max()), plan_with_person(), 12), IsEmpty());
}

TEST(BlockedKeysInTheWorld, AKeyThatWaitsForSomeTimeGoesOnByItself) {
  WorldPlan plan = plan_with_person();
  plan.decides = false;
  EXPECT_THAT(faults_with(make_blocking_stock(Duration{70'000}), plan, 12), IsEmpty());
}

TEST(BlockedKeysInTheWorld, SoDoesItWhereEveryAttemptIsAClaim) {
  using InDoubt = AttemptTerms::InDoubt;
  for (const auto& [in_doubt, promise] : {std::pair(InDoubt::kPark, WorldPromise::kOnce),
                                          std::pair(InDoubt::kSendAgain, WorldPromise::kArrives)}) {
    WorldPlan plan = plan_with_person(promise);
    plan.engine.announces = true;
    plan.policy.on_unknown =
        promise == WorldPromise::kArrives ? OnUnknown::kRetry : OnUnknown::kPark;
    const auto stock = make_blocking_stock(Duration::max(), attempts_of_world(in_doubt));
    EXPECT_THAT(faults_with(stock, plan, 8), IsEmpty());
  }
}

// The checkers can see: what is wrong on purpose is found.
TEST(BlockedKeysInTheWorld, FindsASourceThatParks) {
  EXPECT_THAT(faults_with(make_blocking_stock(std::nullopt), plan_with_person(), 12),
              Contains(StartsWith("Z19")));
}

}  // namespace
}  // namespace hapax::delivery
