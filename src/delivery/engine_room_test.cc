// How much an engine holds, and for whom.
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "delivery/engine.h"
#include "delivery/giving_source_test.h"
#include "delivery/scripted_sink_test.h"
#include "sim/clock.h"

namespace hapax::delivery {
namespace {

// Endpoint 0 answers at once, all others never.
class EngineOverManyThatHang : public testing::Test {
 protected:
  void use(std::uint32_t hanging) {
    living.answers = [](const Outgoing&) { return SendResult{}; };
    engine.add_endpoint(living, {.concurrency = 4, .held_max = 8});
    for (std::uint32_t i = 0; i < hanging; ++i) {
      engine.add_endpoint(silent, {.concurrency = 4, .held_max = 8});
    }
  }
  void publish(std::uint32_t endpoint, int records) {
    for (; records > 0; --records) {
      ++number;
      source.next.push_back({number, {.id = std::to_string(number)}, endpoint});
    }
  }
  void steps(int count) {
    for (int i = 0; i < count; ++i) {
      ASSERT_TRUE(engine.step());
      clock.advance(1);
    }
  }
  [[nodiscard]] std::vector<Duration> deferred() {
    std::vector<Duration> all;
    for (const Settlement& one : source.settled) {
      if (one.kind == Settlement::Kind::kDeferred) all.push_back(one.after);
    }
    source.settled.clear();
    return all;
  }

  sim::SimClock clock;
  GivingSource source;
  ScriptedSink living;
  ScriptedSink silent;
  HandoutNumber number = 0;
  Engine engine{source, clock, {.lease = Duration{600'000}, .window = 40}};
};

// Z26: without it, the first five that hang fill the window, and nothing is taken any more.
TEST_F(EngineOverManyThatHang, ThoseThatHangLeaveRoomForTheOneThatLives) {
  use(15);
  for (int round = 0; round < 8; ++round) {
    for (std::uint32_t endpoint = 1; endpoint <= 15; ++endpoint) publish(endpoint, 1);
    publish(0, 1);
    steps(5);
  }
  EXPECT_EQ(engine.counts().delivered, 8U);
  EXPECT_LE(engine.held(), 20U + 15U) << "half the window, and a share for each";
  EXPECT_GE(engine.held(), 20U) << "half of it is for whoever comes first";
}

TEST_F(EngineOverManyThatHang, FewThatHangHoldWhatTheyMay) {
  use(4);  // All together may hold the window and no more.
  for (std::uint32_t endpoint = 1; endpoint <= 4; ++endpoint) publish(endpoint, 8);
  steps(5);
  EXPECT_EQ(engine.held(), 32U);
  EXPECT_TRUE(deferred().empty());
}

// What is beyond the limit waits in the source for longer and longer, until the endpoint takes one.
TEST_F(EngineOverManyThatHang, WhatIsBeyondTheLimitIsAskedForLessAndLess) {
  use(1);
  publish(1, 11);
  steps(2);
  EXPECT_EQ(deferred(), std::vector<Duration>(3, Duration{100})) << "the same for all of one round";
  for (int i = 1; i <= 10; ++i) {
    clock.advance(30'000);
    publish(1, 1);
    steps(2);
    EXPECT_EQ(deferred(), std::vector<Duration>(1, std::min(Duration{100 << i}, Duration{30'000})));
  }
  silent.deliver();
  steps(1);
  publish(1, 2);
  steps(2);
  EXPECT_EQ(deferred(), std::vector<Duration>(1, Duration{100}));
}

}  // namespace
}  // namespace hapax::delivery
