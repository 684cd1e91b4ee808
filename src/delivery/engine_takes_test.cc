// When the engine asks its source, and what it does beside that.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "delivery/engine.h"
#include "delivery/scripted_sink_test.h"
#include "sim/clock.h"

namespace hapax::delivery {
namespace {

// Hands out what it has at once, and remembers what was settled.
class SlowSource final : public Source {
 public:
  std::vector<Handout> next{};
  std::size_t settled = 0;
  std::function<void()> asked{};  // while the engine waits

  Result<Hand> take(const TakeCall& call) override {
    if (asked) asked();
    settled += call.settled.size();
    return Hand{.records = std::exchange(next, {}), .lease_left = call.lease};
  }
  Status give_back(std::span<const Settlement> last) override {
    settled += last.size();
    return Ok{};
  }
  void wait(Duration) override {}
  void nudge() override {}
};

class EngineTakes : public testing::Test {
 protected:
  EngineTakes() {
    engine.add_endpoint(sink, {.concurrency = 1});
    for (HandoutNumber i = 1; i <= 5; ++i) {
      source.next.push_back({i, {.id = std::to_string(i)}, 0});
    }
  }
  Step go() {
    auto step = engine.step();
    EXPECT_TRUE(step.has_value());
    return step.has_value() ? *step : Step{};
  }

  sim::SimClock clock;
  SlowSource source;
  ScriptedSink sink;
  Engine engine{source, clock, {}};
};

TEST_F(EngineTakes, WhatIsHeldDoesNotWaitForThem) {
  go();
  sink.deliver();
  clock.advance(2);
  std::size_t sent_before = 0;
  source.asked = [&] { sent_before = sink.sent.size(); };
  go();
  EXPECT_EQ(sent_before, 2U);
  EXPECT_EQ(source.settled, 1U);
}

// While the places are taken and as many records wait, nothing would begin for what is settled.
TEST_F(EngineTakes, RestWhileTheEndpointHasEnough) {
  go();
  for (int i = 0; i < 2; ++i) {
    sink.deliver();
    EXPECT_EQ(go().idle_for, Duration{2});
  }
  EXPECT_EQ(source.settled, 0U);
  clock.advance(2);
  go();
  EXPECT_EQ(source.settled, 2U);
  sink.deliver();
  go();
  EXPECT_EQ(source.settled, 2U) << "one is under way, and one waits";
  sink.deliver();
  go();
  EXPECT_EQ(source.settled, 4U) << "nothing waits any more";
}

// So that the wait for a slow disk is not most of the time.
TEST_F(EngineTakes, RestForAsLongAsTheyTook) {
  source.asked = [this] { clock.advance(20); };
  go();
  sink.deliver();
  EXPECT_EQ(go().idle_for, Duration{20});
  source.asked = [this] { clock.advance(500); };
  clock.advance(20);
  go();
  sink.deliver();
  EXPECT_EQ(go().idle_for, Duration{50});
}

}  // namespace
}  // namespace hapax::delivery
