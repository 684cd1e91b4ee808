// Log time against every wall clock there is. docs/internals/time.md has the table.
#include "engine/log_clock.h"

#include <gtest/gtest.h>

#include "sim/clock.h"
#include "sim/random.h"

namespace hapax::engine {
namespace {

constexpr Duration kJumpMax{std::chrono::hours{24}};
constexpr std::int64_t kHour = 3'600'000;
constexpr std::int64_t kDay = 24 * kHour;

class LogClockTest : public testing::Test {
 protected:
  std::int64_t now() { return to_ms(log.now()); }
  // How far log time moves while so much true time passes, in one reading.
  std::int64_t moved(std::int64_t ms) {
    const std::int64_t before = now();
    wall.advance(ms);
    return now() - before;
  }

  sim::SimClock wall;
  LogClock log{wall, kJumpMax};
};

TEST_F(LogClockTest, ANewStoreStartsAtWallTimeAndFollowsIt) {
  EXPECT_EQ(now(), sim::SimClock::kStartMs);
  EXPECT_EQ(moved(0), 0);
  EXPECT_EQ(moved(1), 1);
  EXPECT_EQ(moved(5'000), 5'000);
  EXPECT_FALSE(log.jump_pending());
}

TEST_F(LogClockTest, ASmallLeadOfTheWallClockIsFollowedAtOnce) {
  wall.jump(2'000);
  EXPECT_EQ(moved(10), 10);  // The jump itself was taken in by the first reading.
  EXPECT_EQ(now(), wall.wall_ms());
}

TEST_F(LogClockTest, ALargerLeadIsMadeUpByATenth) {
  EXPECT_EQ(now(), wall.wall_ms());
  wall.jump(kHour);
  EXPECT_EQ(moved(1'000), 1'100);
  EXPECT_EQ(moved(100'000), 110'000);
  EXPECT_FALSE(log.jump_pending());
  for (int i = 0; i < 11 * 60; ++i) moved(60'000);
  EXPECT_EQ(now(), wall.wall_ms());
}

TEST_F(LogClockTest, AWallClockBehindSlowsItDownAndNeverTurnsItBack) {
  EXPECT_EQ(now(), wall.wall_ms());
  wall.jump(-kHour);
  EXPECT_EQ(moved(0), 0);
  EXPECT_EQ(moved(1'000), 900);
  for (int i = 0; i < 11 * 60; ++i) moved(60'000);
  EXPECT_EQ(now(), wall.wall_ms());
  EXPECT_EQ(moved(1'000), 1'000);
}

TEST_F(LogClockTest, AFrozenWallClockDoesNotStopIt) {
  EXPECT_EQ(now(), wall.wall_ms());
  wall.freeze();
  EXPECT_GE(moved(1'000), 900);
  EXPECT_GE(moved(100'000), 90'000);
}

// W2, both ways: a wall clock too far off is not followed at all, and says so until it is back.
TEST_F(LogClockTest, AJumpTooFarIsNotBelieved) {
  for (const std::int64_t jump : {kDay + 10'000, 3'650 * kDay, -3'650 * kDay}) {
    SCOPED_TRACE(jump);
    EXPECT_EQ(moved(1'000), 1'000);
    wall.jump(jump);
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(moved(1'000), 1'000);
      EXPECT_TRUE(log.jump_pending());
    }
    wall.jump(-jump / 2);  // Nearer is not near.
    EXPECT_EQ(moved(1'000), 1'000);
    EXPECT_TRUE(log.jump_pending());
    wall.jump(-jump + jump / 2);
    EXPECT_EQ(moved(1'000), 1'000);
    EXPECT_FALSE(log.jump_pending());
  }
}

// W2: after a jump ahead was corrected a little too far, log time must not stay ahead for ever.
TEST_F(LogClockTest, AWallClockThatIsMerelyBehindIsApproachedAgain) {
  EXPECT_EQ(moved(1'000), 1'000);
  wall.jump(2 * kDay);
  EXPECT_EQ(moved(1'000), 1'000);
  EXPECT_TRUE(log.jump_pending());
  wall.jump(-2 * kDay - 10'000);
  EXPECT_LT(moved(1'000), 1'000);
  EXPECT_FALSE(log.jump_pending());
  for (int i = 0; i < 3'600; ++i) now(), wall.advance(1'000);
  EXPECT_EQ(now(), wall.wall_ms());
}

// W7
TEST_F(LogClockTest, AStartGoesOnFromTheLastLogTime) {
  const Time wall_now = time_from_ms(wall.wall_ms());
  struct Case {
    Duration ahead;  // of the wall clock
    LogClock::Jump jump;
    bool follows;
  };
  for (const Case& one : {
           Case{Duration{-kDay * 9}, LogClock::Jump::kRefuse, false},
           Case{Duration{-1}, LogClock::Jump::kRefuse, false},
           Case{Duration{0}, LogClock::Jump::kRefuse, true},
           Case{Duration{2'000}, LogClock::Jump::kRefuse, true},
           Case{Duration{2'001}, LogClock::Jump::kRefuse, false},
           Case{Duration{kDay}, LogClock::Jump::kRefuse, false},
           Case{Duration{kDay * 3'650}, LogClock::Jump::kRefuse, false},
           Case{Duration{kDay * 3'650}, LogClock::Jump::kAccept, true},
           Case{Duration{-kDay * 9}, LogClock::Jump::kAccept, false},
       }) {
    SCOPED_TRACE(one.ahead.count());
    LogClock clock(wall, kJumpMax);
    const Time last = wall_now - one.ahead;
    clock.start_at(last, one.jump);
    EXPECT_EQ(clock.now(), one.follows ? wall_now : last);
    EXPECT_FALSE(clock.jump_pending());
    EXPECT_EQ(clock.lag(), one.follows ? Duration{0} : one.ahead);
  }
}

// W7: a stop is not a jump, however long. What was away is made up by a tenth.
TEST_F(LogClockTest, ALongStopIsSlewed) {
  log.start_at(time_from_ms(wall.wall_ms() - 30 * kDay), LogClock::Jump::kRefuse);
  for (int i = 0; i < 299; ++i) {
    EXPECT_EQ(moved(kDay), kDay + kDay / 10);
    EXPECT_FALSE(log.jump_pending());
  }
  moved(kDay);
  EXPECT_EQ(moved(kDay), kDay);
  EXPECT_EQ(now(), wall.wall_ms());
}

// W2, W7: what the wall clock was ahead by at the start is no jump; what it moves by later may be.
TEST_F(LogClockTest, AJumpAfterALongStopIsNotBelieved) {
  log.start_at(time_from_ms(wall.wall_ms() - 30 * kDay), LogClock::Jump::kRefuse);
  EXPECT_EQ(moved(1'000), 1'100);
  wall.jump(2 * kDay);
  EXPECT_EQ(moved(1'000), 1'100) << "it goes on towards the wall clock as it was";
  EXPECT_TRUE(log.jump_pending());
  EXPECT_EQ(to_ms(log.wall()), wall.wall_ms() - 2 * kDay);
  wall.jump(-2 * kDay);
  EXPECT_EQ(moved(1'000), 1'100);
  EXPECT_FALSE(log.jump_pending());
  EXPECT_EQ(to_ms(log.wall()), wall.wall_ms());
}

// W1: however often the clock is read.
TEST_F(LogClockTest, ABusyStoreIsSlewedToo) {
  log.start_at(time_from_ms(wall.wall_ms() - kHour), LogClock::Jump::kRefuse);
  const std::int64_t before = now();
  for (int i = 0; i < 10'000; ++i) moved(1);
  EXPECT_EQ(now() - before, 11'000);
  wall.jump(-2 * kHour);
  const std::int64_t ahead = now();
  for (int i = 0; i < 10'000; ++i) moved(1);
  EXPECT_EQ(now() - ahead, 9'000);
}

// W3: a machine without a battery shows 1970 until somebody tells it the time. That is no jump.
TEST_F(LogClockTest, AClockThatIsSetAfterTheStartIsBelieved) {
  const Time last = time_from_ms(wall.wall_ms());
  wall.set_wall(0);
  log.start_at(last, LogClock::Jump::kRefuse);
  EXPECT_EQ(moved(1'000), 1'000);
  EXPECT_FALSE(log.jump_pending());
  wall.set_wall(to_ms(last) + 3 * kDay);
  EXPECT_EQ(moved(1'000), 1'100);
  EXPECT_FALSE(log.jump_pending());
  wall.jump(2 * kDay);
  EXPECT_EQ(moved(1'000), 1'100);
  EXPECT_TRUE(log.jump_pending()) << "but the next one is";
}

// W3
TEST_F(LogClockTest, AClockThatWasNeverSetCountsAs1970) {
  wall.set_wall(-kDay * 365 * 10);
  LogClock unset(wall, Duration{kDay});
  EXPECT_EQ(to_ms(unset.now()), 0);
  wall.advance(5'000);
  EXPECT_EQ(to_ms(unset.now()), 5'000 - 500) << "ahead of a wall clock that counts as 1970";
}

// W4: one that stood still, because its database was away, follows others that did not.
TEST_F(LogClockTest, TimeThatOthersHaveCountedIsNotCountedAgain) {
  EXPECT_EQ(now(), wall.wall_ms());
  for (int i = 0; i < 3; ++i) {
    wall.advance(5'000);
    log.follow(time_from_ms(wall.wall_ms()));
    EXPECT_EQ(now(), wall.wall_ms());
  }
  wall.advance(5'000);
  log.follow(time_from_ms(wall.wall_ms() - 4'000));
  EXPECT_EQ(now(), wall.wall_ms()) << "what was written a while ago";
}

TEST_F(LogClockTest, OthersThatAreAheadAreFollowedAndThenTheWallClock) {
  EXPECT_EQ(now(), wall.wall_ms());
  wall.advance(1'000);
  log.follow(time_from_ms(wall.wall_ms() + 10'000));
  EXPECT_EQ(now(), wall.wall_ms() + 10'000);
  EXPECT_EQ(moved(1'000), 900);
}

// W1: whatever the wall clock does.
TEST_F(LogClockTest, ItNeverGoesBackAndNeverRunsAway) {
  sim::Random random(1);
  std::int64_t before = now();
  for (int i = 0; i < 50'000; ++i) {
    const auto elapsed =
        static_cast<std::int64_t>(random.below(random.chance(1, 10) ? 90'000 : 20));
    wall.advance(elapsed);
    if (random.chance(1, 5)) {
      const auto far =
          static_cast<std::int64_t>(random.below(random.chance(1, 2) ? 5'000 : 9 * kDay));
      wall.jump(random.chance(1, 2) ? far : -far);
    }
    if (random.chance(1, 500)) wall.reboot();
    if (random.chance(1, 500)) log.start_at(time_from_ms(before), LogClock::Jump::kRefuse);
    const std::int64_t after = now();
    ASSERT_GE(after, before);
    ASSERT_LE(after - before, elapsed + elapsed / 10 + 2'000);
    before = after;
  }
}

}  // namespace
}  // namespace hapax::engine
