#include "sim/clock.h"

#include <gtest/gtest.h>

namespace hapax::sim {
namespace {

TEST(SimClock, StandsStillUntilAdvanced) {
  SimClock clock(5000);
  EXPECT_EQ(clock.wall_ms(), 5000);
  EXPECT_EQ(clock.steady_ms(), 0);
  clock.advance(250);
  EXPECT_EQ(clock.wall_ms(), 5250);
  EXPECT_EQ(clock.steady_ms(), 250);
}

TEST(SimClock, AJumpMovesOnlyTheWall) {
  SimClock clock(5000);
  clock.jump(-7000);
  EXPECT_EQ(clock.wall_ms(), -2000);
  clock.set_wall(9000);
  EXPECT_EQ(clock.wall_ms(), 9000);
  EXPECT_EQ(clock.steady_ms(), 0);
}

TEST(SimClock, AFrozenWallLetsSteadyTimeGoOn) {
  SimClock clock(5000);
  clock.freeze();
  clock.advance(100);
  EXPECT_EQ(clock.wall_ms(), 5000);
  clock.thaw();
  clock.advance(1);
  EXPECT_EQ(clock.wall_ms(), 5001);
  EXPECT_EQ(clock.steady_ms(), 101);
}

TEST(SimClock, SmallDriftsAddUp) {
  SimClock clock(0);
  clock.drift(100);
  for (int i = 0; i < 1000; ++i) clock.advance(10);
  EXPECT_EQ(clock.wall_ms(), 10'001);
  clock.drift(-500'000);
  clock.advance(10);
  EXPECT_EQ(clock.wall_ms(), 10'006);
  EXPECT_EQ(clock.steady_ms(), 10'010);
}

TEST(SimClock, ARebootBeginsSteadyTimeAnew) {
  SimClock clock(0);
  clock.advance(10);
  clock.reboot();
  EXPECT_EQ(clock.steady_ms(), 0);
  EXPECT_EQ(clock.wall_ms(), 10);
}

}  // namespace
}  // namespace hapax::sim
