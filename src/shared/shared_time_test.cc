// Log time of several processes over one log: docs/internals/time.md.
#include <chrono>
#include <memory>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "shared/process_test.h"

namespace hapax::shared {
namespace {

using std::chrono::milliseconds;

class SharedTimeTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kNoSnapshot = std::uint64_t{1} << 30;
  static constexpr std::int64_t kMinute = 60'000;
  static constexpr std::int64_t kHour = 60 * kMinute;
  static constexpr milliseconds kPatience{10'000};

  // Another process, whose wall clock, that of the database, is ahead.
  std::unique_ptr<Process> start(std::int64_t ahead_ms, milliseconds keep_every = milliseconds{5},
                                 milliseconds answer_within = milliseconds{2'000}) {
    return std::make_unique<Process>(place_, kNoSnapshot, ahead_ms, kPatience, keep_every,
                                     answer_within);
  }
  // The database does not notice when the keeper is gone: nobody else becomes it.
  void keep_its_lock() {
    const std::lock_guard lock(place_.mutex);
    ++place_.server;
  }
  static std::string claim(Process& process, std::string_view owner) {
    return word(process.one(
        Claim{.scope = "c", .key = "k", .owner = owner, .lease = std::chrono::seconds{30}}));
  }
  static bool there(Process& process, std::string_view name) {
    return process.store->find_register(name)->has_value();
  }
  // One process stands still for 50 s. Meanwhile another one writes so many batches, a lease and a
  // register of 30 s among them. The first process reads the news in parts of three.
  std::unique_ptr<Process> stood_still_for(std::size_t batches) {
    auto still = start(0, kNeverKeeps, milliseconds{50});
    EXPECT_TRUE(still->commit({CreateStream{"s", {}}}).ok());
    still->log.rows_at_once(4);
    still->clock.pass(50'000);
    const std::size_t enough = place_.batches() + batches;
    other_ = start(50'000, kNeverKeeps, milliseconds{50});
    const Claim lease{.scope = "c", .key = "k", .owner = "b", .lease = std::chrono::seconds{30}};
    const Expiry soon{Expiry::Kind::kAfter, {}, std::chrono::seconds{30}};
    const Set set{.name = "r", .value = "v", .mode = SetMode::kAlways, .expiry = soon};
    EXPECT_TRUE(other_->commit({lease, set}).ok());
    for (int i = 0; place_.batches() < enough; ++i) other_->append(std::to_string(i));
    EXPECT_EQ(place_.batches(), enough);
    return still;
  }

  MemoryPlace place_;
  std::unique_ptr<Process> other_;
};

// W7: one process's start moves nobody's time.
TEST_F(SharedTimeTest, AStartWithTheClockAheadTakesNoClaimOver) {
  auto a = start(0);
  EXPECT_EQ(claim(*a, "a"), "fresh");
  for (const std::int64_t ahead : {kMinute, 61 * kMinute}) {
    auto b = start(ahead);
    EXPECT_EQ(claim(*b, "b"), "in_progress") << ahead;
    EXPECT_EQ(word(b->one(Set{.name = "r", .value = "v", .mode = SetMode::kAlways})), "done");
    EXPECT_EQ(claim(*a, "b"), "in_progress") << ahead;
    EXPECT_GE(b->store->statistics()->clock_lag, Duration{ahead - kMinute / 2});
    EXPECT_FALSE(b->store->statistics()->clock_jump_pending);
  }
}

TEST_F(SharedTimeTest, AStartWithTheClockAheadForgetsNoId) {
  auto a = start(0);
  ASSERT_TRUE(a->commit({CreateStream{"s", {.window = Window{std::chrono::hours{1}}}}}).ok());
  EXPECT_EQ(word(a->append("1")), "fresh");
  auto b = start(61 * kMinute);
  EXPECT_EQ(word(b->append("1")), "duplicate");
  EXPECT_EQ(word(b->append("2")), "fresh");
  a.reset();
  b.reset();
  auto c = start(61 * kMinute);
  EXPECT_EQ(word(c->append("1")), "duplicate") << "all of them were stopped";
}

// W8: nothing was written for a while, so the log does not say how late it is. Somebody knows.
TEST_F(SharedTimeTest, WhoStartsAsksTheKeeperForTheTime) {
  auto keeper = start(0);
  ASSERT_TRUE(keeper->commit({CreateStream{"s", {}}}).ok());
  keeper->clock.pass(50'000);
  auto b = start(50'000, kNeverKeeps);
  EXPECT_EQ(claim(*b, "b"), "fresh");
  EXPECT_EQ(claim(*keeper, "a"), "in_progress") << "its lease has only begun";
  EXPECT_LE(b->store->statistics()->clock_lag, Duration{10'000});
}

// W8: also if the one that could tell has never been the keeper, and nobody is.
TEST_F(SharedTimeTest, WhoStartsIsAnsweredByAnybody) {
  auto keeper = start(0);
  ASSERT_TRUE(keeper->commit({CreateStream{"s", {}}}).ok());
  auto other = start(0);
  keep_its_lock();
  keeper.reset();
  other->clock.pass(50'000);
  auto b = start(50'000);
  EXPECT_EQ(claim(*b, "b"), "fresh");
  EXPECT_EQ(claim(*other, "a"), "in_progress");
  EXPECT_LE(b->store->statistics()->clock_lag, Duration{10'000});
}

// W8: who becomes the keeper as it starts is ready at once, though it may not be alone: the keeper
// has died, and those that live have not noticed it yet.
TEST_F(SharedTimeTest, ALeaseOfANewKeeperIsNotOverForThoseWhoWereThere) {
  auto keeper = start(0);
  ASSERT_TRUE(keeper->commit({CreateStream{"s", {}}}).ok());
  auto other = start(0, kNeverKeeps);
  keeper.reset();
  other->clock.pass(50'000);
  auto b = start(50'000, kNeverKeeps);
  EXPECT_EQ(claim(*b, "b"), "fresh");
  EXPECT_EQ(claim(*other, "a"), "in_progress") << "its lease has only begun";
}

// W8: one that stood still while others started answers too late. It goes back to their time.
TEST_F(SharedTimeTest, ALeaseIsNotOverForOneThatStoodStill) {
  auto still = start(0, kNeverKeeps);
  ASSERT_TRUE(still->commit({CreateStream{"s", {}}}).ok());
  still->clock.pass(50'000);
  auto b = start(50'000);
  EXPECT_EQ(claim(*b, "b"), "fresh");
  EXPECT_EQ(claim(*still, "a"), "in_progress") << "its lease has only begun";
  EXPECT_EQ(claim(*still, "b"), "in_progress");
}

// W8: … also if the last part of the news is full, so that nobody can tell that nothing follows.
TEST_F(SharedTimeTest, ALeaseIsNotOverBehindOneFullPartOfTheNews) {
  auto still = stood_still_for(3);
  EXPECT_EQ(claim(*still, "a"), "in_progress") << "its lease has only begun";
}

TEST_F(SharedTimeTest, ALeaseIsNotOverBehindTwoFullPartsOfTheNews) {
  auto still = stood_still_for(6);
  EXPECT_EQ(claim(*still, "a"), "in_progress") << "its lease has only begun";
}

TEST_F(SharedTimeTest, ARegisterIsNotGoneBehindAFullPartOfTheNews) {
  auto still = stood_still_for(3);
  EXPECT_TRUE(there(*still, "r")) << "its time has only begun";
}

// W8: … also if it becomes the keeper before it has followed anything, and reads all from scratch.
TEST_F(SharedTimeTest, ALeaseIsNotOverForOneThatStoodStillAndBecomesTheKeeper) {
  auto keeper = start(0);
  ASSERT_TRUE(keeper->commit({CreateStream{"s", {}}}).ok());
  auto still = start(0, milliseconds{5}, milliseconds{0});
  still->clock.freeze(host::HostClock().wall_ms());
  // When the second look is answered, what was due after the first one is done.
  for (int looks = 0; looks < 2; ++looks) EXPECT_FALSE(there(*still, "r"));
  keeper.reset();
  auto b = std::make_unique<Process>(place_, 8'192, 50'000, kPatience);
  EXPECT_EQ(claim(*b, "b"), "fresh");
  for (int i = 0; newest_snapshot(place_).empty(); ++i, std::this_thread::yield()) {
    b->append(std::to_string(i), std::string(500, 'x'));
  }
  b.reset();
  still->clock.pass(50'000);
  const auto kept = [&] {
    const std::lock_guard lock(place_.mutex);
    return place_.locks.contains(kKeeperName);
  };
  while (!kept()) std::this_thread::yield();
  EXPECT_EQ(claim(*still, "a"), "in_progress") << "its lease has only begun";
}

// W8: … but not after a pause of a few seconds, which W1 makes up at once: nobody is asked.
TEST_F(SharedTimeTest, AShortPauseCostsNoQuestion) {
  auto still = start(0, kNeverKeeps, milliseconds{0});
  auto b = start(0, kNeverKeeps);
  const std::int64_t now_ms = host::HostClock().wall_ms();
  for (Process* one : {still.get(), b.get()}) one->clock.freeze(now_ms);
  ASSERT_TRUE(b->commit({CreateStream{"s", {}}}).ok());
  for (Process* one : {still.get(), b.get()}) one->clock.pass(3'000);
  const std::size_t before = place_.batches();
  EXPECT_EQ(word(still->append("1")), "fresh");
  EXPECT_EQ(place_.batches(), before + 1);
}

// W8: … but not further than to the time that they have by then.
TEST_F(SharedTimeTest, WhoGoesBackAsksHowLateItIs) {
  auto still = start(0, kNeverKeeps);
  auto b = start(0);
  ASSERT_TRUE(b->commit({CreateStream{"s", {}}}).ok());
  for (Process* one : {still.get(), b.get()}) one->clock.pass(50'000);
  EXPECT_EQ(word(still->append("1")), "fresh");
  EXPECT_LE(still->store->statistics()->clock_lag, Duration{10'000});
}

// W8: … and goes on if nobody says so.
TEST_F(SharedTimeTest, WhoGoesBackAndIsNotAnsweredDecides) {
  auto still = start(0, kNeverKeeps, milliseconds{50});
  auto b = start(0);
  ASSERT_TRUE(b->commit({CreateStream{"s", {}}}).ok());
  b.reset();
  still->clock.pass(50'000);
  EXPECT_EQ(word(still->append("1")), "fresh");
  EXPECT_EQ(word(still->append("1")), "duplicate");
}

// W5, W8: nobody answers; who is gone may have told that something is over.
TEST_F(SharedTimeTest, WhoIsNotAnsweredGoesOnAheadOfWhatIsDurable) {
  auto a = start(0);
  const Expiry soon{Expiry::Kind::kAfter, {}, std::chrono::seconds{20}};
  a->one(Set{.name = "r", .value = "v", .mode = SetMode::kAlways, .expiry = soon});
  a->clock.pass(18'500);
  ASSERT_TRUE(a->commit({CreateStream{"s", {}}}).ok());
  a->clock.pass(1'600);
  EXPECT_FALSE(there(*a, "r"));
  keep_its_lock();
  a.reset();
  auto b = start(kHour, milliseconds{5}, milliseconds{0});
  EXPECT_FALSE(there(*b, "r"));
}

// W5: while nothing is written, the keeper writes log time down once a minute.
TEST_F(SharedTimeTest, AnIdleDayIsNotLost) {
  auto a = start(0);
  ASSERT_TRUE(a->commit({CreateStream{"s", {}}}).ok());
  const std::size_t before = place_.batches();
  a->clock.pass(24 * kHour);
  while (place_.batches() == before) std::this_thread::yield();
  a.reset();
  auto b = start(24 * kHour);
  EXPECT_LE(b->store->statistics()->clock_lag, Duration{kMinute});
  EXPECT_FALSE(b->store->statistics()->clock_jump_pending);
}

// W5: what was told to be over stays over, though all processes end and the clock is set back.
TEST_F(SharedTimeTest, WhatWasToldToBeOverStaysOver) {
  auto a = start(0);
  const Expiry soon{Expiry::Kind::kAfter, {}, std::chrono::seconds{20}};
  a->one(Set{.name = "r", .value = "v", .mode = SetMode::kAlways, .expiry = soon});
  EXPECT_TRUE(there(*a, "r"));
  a->clock.pass(21'000);
  EXPECT_FALSE(there(*a, "r"));
  a.reset();
  auto b = start(-kHour);
  EXPECT_FALSE(there(*b, "r"));
}

// E11: what is over by the clock of one may still be written for by another whose clock is behind.
TEST_F(SharedTimeTest, OneThatIsAheadForgetsNothingThatOthersMayUse) {
  auto behind = start(0);
  auto ahead = start(1'500);
  // Near enough to be followed at once, and later than anything they have read.
  const std::int64_t now_ms = host::HostClock().wall_ms() + 1'900;
  behind->clock.freeze(now_ms);
  ahead->clock.freeze(now_ms);
  const StreamSettings brief{.window = Window{std::chrono::seconds{1}}};
  ASSERT_TRUE(behind->commit({CreateStream{"s", brief}}).ok());
  EXPECT_EQ(word(behind->append("1")), "fresh");
  EXPECT_FALSE(ahead->store->find_id("s", "1", std::nullopt)->has_value());
  EXPECT_TRUE(behind->store->find_id("s", "1", std::nullopt)->has_value());
  EXPECT_EQ(word(behind->append("1")), "duplicate");
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(word(behind->append("more" + std::to_string(i))), "fresh");
    EXPECT_FALSE(ahead->store->find_id("s", "1", std::nullopt)->has_value());
  }
  // What the one that is ahead writes takes everybody's time along.
  EXPECT_EQ(word(ahead->append("1", "new")), "fresh");
  EXPECT_EQ(word(behind->append("1", "new")), "duplicate");
}

}  // namespace
}  // namespace hapax::shared
