// What is asked of a relay: by whoever ends it, and by a sink that wants to be left alone.
#include <string>

#include <gtest/gtest.h>

#include "delivery/relay_rig_test.h"

namespace hapax::delivery {
namespace {

class RelayIsAsked : public RelayEngine {
 protected:
  std::int64_t lasted(const std::function<bool()>& is_done) {
    const std::int64_t begun = clock.steady_ms();
    while (!is_done() && clock.steady_ms() - begun < 3'600'000) {
      drain(engine);
      if (!is_done()) clock.advance(10);
    }
    return clock.steady_ms() - begun;
  }
};

TEST_F(RelayIsAsked, ToEndTakesNothing) {
  engine.wind_down();
  outbox.publish(0, "1", "k");
  EXPECT_EQ(go(engine).taken, 0U);
  EXPECT_EQ(outbox.lanes[0].attempts, 0U);
}

// For all keys, because it is the sink that asked.
TEST_F(RelayIsAsked, ToWaitWaitsThatLong) {
  sink.asking = {"1"};
  sink.asked_for = Duration{7'000};
  for (const char* id : {"1", "2", "3"}) outbox.publish(0, id, id);
  drain(engine);
  sink.asking.clear();
  EXPECT_EQ(lasted([&] { return !sink.sent.empty(); }), 7'000);
  EXPECT_LE(lasted([&] { return sink.sent.size() == 3; }), 10);
  EXPECT_EQ(engine.counts().retried, 0U) << "it costs no attempt";
}

// Whatever it asks, the relay itself never waits for less than it would have.
TEST_F(RelayIsAsked, ToWaitForAMomentWaitsAsUsual) {
  sink.asking = {"1"};
  sink.asked_for = Duration{1};
  outbox.publish(0, "1", "1");
  drain(engine);
  sink.asking.clear();
  EXPECT_EQ(lasted([&] { return !sink.sent.empty(); }), 250);
}

// A sink that asks over one record each time gets the others, and then the failure is the record's.
TEST_F(RelayIsAsked, OverOneRecordEachTimeHoldsUpNoOther) {
  sink.asking = {"bad"};
  sink.asked_for = Duration{2'000};
  outbox.publish(0, "bad", "b");
  for (int i = 0; i < 5; ++i) outbox.publish(0, std::to_string(i), "k" + std::to_string(i));
  drain(engine);
  EXPECT_TRUE(sink.sent.empty());
  EXPECT_EQ(lasted([&] { return sink.sent.size() == 5; }), 2'000);
  // One that came behind waits no longer than for one answer of that kind.
  for (int i = 5; i < 30 && outbox.dead.empty(); ++i) {
    outbox.publish(0, std::to_string(i), "k" + std::to_string(i));
    const std::size_t wanted = static_cast<std::size_t>(i) + 1;
    EXPECT_LE(lasted([&] { return sink.sent.size() == wanted; }), 2'000);
    clock.advance(300'000);
    drain(engine);
  }
  ASSERT_EQ(outbox.dead.size(), 1U);
  EXPECT_EQ(outbox.dead.front().first, "bad");
}

TEST(RelaySettings, SayHowLongARecordMayTake) {
  RelaySettings settings;
  EXPECT_EQ(settings.retry_horizon(), std::chrono::seconds{511 + 15});
  settings.attempts_max = 1;
  EXPECT_EQ(settings.retry_horizon(), std::chrono::seconds{15});
  settings.attempts_max = 12;
  EXPECT_EQ(settings.retry_horizon(), std::chrono::seconds{511 + 2 * 300 + 15});
}

// Asked over whatever it is sent, for hours: nothing is given up.
TEST_F(RelayIsAsked, OverEveryRecordGivesNothingUp) {
  sink.asked_for = Duration{60'000};
  for (int i = 0; i < 20; ++i) {
    sink.asking.insert(std::to_string(i));
    outbox.publish(0, std::to_string(i), "k" + std::to_string(i % 7));
  }
  int requests = 0;
  sink.before = [&](const Outgoing&) { ++requests; };
  for (int second = 0; second < 7'200; ++second) {
    drain(engine);
    clock.advance(1'000);
  }
  EXPECT_LE(requests, 121) << "once a minute";
  EXPECT_EQ(engine.counts().retried, 0U);
  sink.asking.clear();
  EXPECT_LE(lasted([&] { return sink.sent.size() == 20; }), 60'000);
}

}  // namespace
}  // namespace hapax::delivery
