#include "delivery/outbox_driver.h"

#include <gtest/gtest.h>

#include "delivery/scripted_sink_test.h"
#include "relay/memory_source_test.h"
#include "sim/clock.h"

namespace hapax::delivery {
namespace {

using Ids = std::vector<std::string>;
using SendOutcome = SendResult::Outcome;

class DeliveryDriver : public testing::Test {
 protected:
  std::unique_ptr<OutboxDriver> driver(DriverSettings settings = {}) {
    auto made = std::make_unique<ScriptedSink>();
    sink = made.get();
    sink->answers = [](const Outgoing&) { return SendResult{}; };
    settings.owner = "me";
    return std::make_unique<OutboxDriver>(
        [this]() -> Result<std::unique_ptr<relay::Source>> {
          ++opens;
          if (problem) return *problem;
          return std::unique_ptr<relay::Source>(
              std::make_unique<relay::MemorySource>(outbox, clock, "me"));
        },
        std::move(made), clock, settings,
        [this](std::string_view text) { said.emplace_back(text); });
  }
  // As run() does it, on the clock of the test.
  void go(OutboxDriver& driver, Duration span) {
    const std::int64_t end = clock.steady_ms() + span.count();
    while (clock.steady_ms() < end) {
      const auto turn = driver.turn();
      if (turn.last) return;
      clock.advance(std::max<std::int64_t>(turn.wait.count(), 1));
    }
  }

  sim::SimClock clock;
  relay::MemoryOutbox outbox;
  ScriptedSink* sink = nullptr;
  std::optional<Error> problem;
  int opens = 0;
  Ids said;
};

TEST_F(DeliveryDriver, WaitsForADatabaseThatIsAway) {
  const auto driver = this->driver();
  problem = Error{Errc::kUnavailable, "nobody listens"};
  ASSERT_TRUE(driver->open());
  go(*driver, Duration{60'000});
  EXPECT_GT(opens, 3);
  EXPECT_LT(opens, 12) << "ever more rarely";
  problem.reset();
  outbox.publish(0, "1");
  go(*driver, Duration{20'000});
  EXPECT_EQ(sink->sent, Ids{"1"});
}

// The database comes before its tables do.
TEST_F(DeliveryDriver, OnceItWaitsItWaitsForTablesToo) {
  const auto driver = this->driver();
  problem = Error{Errc::kUnavailable, "nobody listens"};
  ASSERT_TRUE(driver->open());
  problem = Error{Errc::kNotFound, "there is no table"};
  go(*driver, Duration{30'000});
  EXPECT_NE(std::find(said.begin(), said.end(), problem->text()), said.end());
  problem.reset();
  outbox.publish(0, "1");
  go(*driver, Duration{20'000});
  EXPECT_EQ(sink->sent, Ids{"1"});
}

TEST_F(DeliveryDriver, EndsOverWhatWillNotMendItself) {
  const auto driver = this->driver();
  problem = Error{Errc::kConflict, "another relay has this name"};
  EXPECT_FALSE(driver->open());
}

TEST_F(DeliveryDriver, OnceEndsWhenNothingIsLeft) {
  const auto driver = this->driver({.once = true});
  outbox.publish(0, "1");
  ASSERT_TRUE(driver->open());
  EXPECT_TRUE(driver->run());
  EXPECT_EQ(sink->sent, Ids{"1"});
  EXPECT_EQ(driver->left(), OutboxDriver::Left::kNothing);
  EXPECT_EQ(outbox.lanes[0].until_ms, 0) << "the lane is free";
}

TEST_F(DeliveryDriver, OnceDoesNotWaitForADatabase) {
  const auto driver = this->driver({.once = true});
  problem = Error{Errc::kUnavailable, "nobody listens"};
  ASSERT_TRUE(driver->open());
  const Status ended = driver->run();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, Errc::kUnavailable);
}

TEST_F(DeliveryDriver, OnceWaitsForWhatWillBeFreeSoon) {
  const auto driver = this->driver({.once = true});
  problem = Error{Errc::kLocked, "a relay of this name holds lanes"};
  outbox.publish(0, "1");
  ASSERT_TRUE(driver->open());
  EXPECT_FALSE(driver->turn().last);
  problem.reset();
  go(*driver, Duration{5'000});
  EXPECT_EQ(sink->sent, Ids{"1"});
}

TEST_F(DeliveryDriver, OnceSaysThatRecordsAreLeft) {
  const auto driver = this->driver({.once = true});
  sink->answers = [](const Outgoing&) { return SendResult{.outcome = SendOutcome::kTryLater}; };
  for (const char* id : {"1", "2", "3"}) outbox.publish(0, id);
  ASSERT_TRUE(driver->open());
  go(*driver, Duration{60'000});
  driver->end();
  EXPECT_EQ(driver->left(), OutboxDriver::Left::kSome);
}

// Z9
TEST_F(DeliveryDriver, AStopSettlesWhatWasDelivered) {
  const auto driver = this->driver({.patience = Duration{0}});
  sink->answers = nullptr;
  for (const char* id : {"1", "2", "3"}) outbox.publish(0, id);
  ASSERT_TRUE(driver->open());
  go(*driver, Duration{10});
  ASSERT_EQ(sink->calls.size(), 3U);
  sink->deliver(0);
  driver->stop();
  EXPECT_TRUE(driver->turn().last);
  driver->end();
  EXPECT_EQ(outbox.lanes[0].settled, 3U) << "1, and the others wait for another attempt";
  EXPECT_EQ(outbox.lanes[0].waiting.size(), 2U);
  EXPECT_EQ(outbox.lanes[0].until_ms, 0) << "the lane is free";
}

// A request may be under way for longer than its sender is waited for.
TEST(DeliveryCompletions, AnAnswerAfterTheEndCallsNobody) {
  int called = 0;
  Completions completions([&] { ++called; });
  completions.put(1, {});
  completions.close();
  completions.put(2, {});
  EXPECT_EQ(called, 1);
}

}  // namespace
}  // namespace hapax::delivery
