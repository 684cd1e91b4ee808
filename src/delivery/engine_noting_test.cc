// Engines over a source that notes what it is told: attempts that are announced, pauses, observers.
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "delivery/engine.h"
#include "delivery/scripted_sink_test.h"
#include "sim/clock.h"

namespace hapax::delivery {
namespace {

using Ids = std::vector<std::string>;
using Outcome = SendResult::Outcome;

// A source of single records that remembers what it was told.
class NotingSource final : public Source {
 public:
  std::vector<Handout> next{};
  std::vector<HandoutNumber> lost{};
  std::vector<HandoutNumber> noted{};
  std::vector<Settlement> settled{};
  bool fails = false;

  Result<Hand> take(const TakeCall& call) override {
    if (fails) return Error{Errc::kUnavailable, "away"};
    for (const Beginning& each : call.beginning) noted.push_back(each.number);
    settled.insert(settled.end(), call.settled.begin(), call.settled.end());
    Hand hand{.lost = lost, .lease_left = call.lease};
    if (call.room > 0) hand.records = std::exchange(next, {});
    return hand;
  }
  Status give_back(std::span<const Settlement> last) override {
    settled.insert(settled.end(), last.begin(), last.end());
    return Ok{};
  }
  void wait(Duration) override {}
  void nudge() override {}
};

class AnnouncingEngine : public testing::Test {
 protected:
  AnnouncingEngine() { engine.add_endpoint(sink, {.on_unknown = OnUnknown::kPark}); }
  void hand_out(HandoutNumber number, const std::string& key) {
    source.next.push_back({number, {.id = std::to_string(number), .key = key}, 0});
  }
  void steps(int count) {
    for (int i = 0; i < count; ++i) ASSERT_TRUE(engine.step());
  }

  sim::SimClock clock;
  NotingSource source;
  ScriptedSink sink;
  Engine engine{source, clock, {.announces = true}};
};

// Z2
TEST_F(AnnouncingEngine, NothingIsSentBeforeItIsNoted) {
  hand_out(1, "a");
  steps(1);
  EXPECT_TRUE(sink.sent.empty()) << "it was taken, and is not noted yet";
  steps(1);
  EXPECT_EQ(source.noted, std::vector<HandoutNumber>{1});
  EXPECT_EQ(sink.sent, Ids{"1"});
}

// Z2: nobody knows whether the note was written, so nothing is sent under it.
TEST_F(AnnouncingEngine, WhatWasNotNotedForCertainIsNotSent) {
  hand_out(1, "a");
  hand_out(2, "a");
  steps(1);
  source.fails = true;
  EXPECT_FALSE(engine.step());
  source.fails = false;
  steps(3);
  EXPECT_TRUE(sink.sent.empty());
  EXPECT_EQ(engine.held(), 0U);
  hand_out(3, "a");
  steps(2);
  EXPECT_EQ(sink.sent, Ids{"3"}) << "the key is free";
}

TEST_F(AnnouncingEngine, WhatIsLostWhenItIsNotedIsNotSent) {
  hand_out(1, "a");
  hand_out(2, "b");
  steps(1);
  source.lost = {1};
  steps(1);
  EXPECT_EQ(sink.sent, Ids{"2"});
}

TEST_F(AnnouncingEngine, AnUnknownOutcomeIsParkedAndItsKeyWaits) {
  hand_out(1, "a");
  hand_out(2, "a");
  steps(2);
  sink.answer(0, Outcome::kUnknown);
  steps(2);
  ASSERT_EQ(source.settled.size(), 2U);
  EXPECT_EQ(source.settled[0].kind, Settlement::Kind::kUnknown);
  EXPECT_EQ(source.settled[1].kind, Settlement::Kind::kHeld);
  EXPECT_EQ(sink.sent, Ids{"1"});
}

// Z9
TEST_F(AnnouncingEngine, WhatIsUnderWayAtTheEndIsUnknown) {
  hand_out(1, "a");
  steps(2);
  ASSERT_TRUE(engine.stop());
  ASSERT_EQ(source.settled.size(), 1U);
  EXPECT_EQ(source.settled[0].kind, Settlement::Kind::kUnknown);
}

// What waits is given back, so that its leases hold nobody up; what is under way is settled.
TEST(DeliveryEngines, WhilePausedNothingIsTakenOrBegins) {
  sim::SimClock clock;
  NotingSource source;
  ScriptedSink sink;
  Engine engine(source, clock, {});
  engine.add_endpoint(sink, {.concurrency = 1});
  for (HandoutNumber i = 1; i <= 2; ++i) source.next.push_back({i, {.id = std::to_string(i)}, 0});
  ASSERT_TRUE(engine.step());
  engine.set_paused(true);
  sink.deliver();
  source.next.push_back({3, {.id = "3"}, 0});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(engine.step());
  EXPECT_EQ(sink.sent, Ids{"1"});
  EXPECT_EQ(engine.held(), 0U);
  ASSERT_EQ(source.settled.size(), 2U);
  EXPECT_EQ(source.settled[0].kind, Settlement::Kind::kDelivered);
  EXPECT_EQ(source.settled[1].kind, Settlement::Kind::kNotSent);
  engine.set_paused(false);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(engine.step());
  EXPECT_EQ(sink.sent, (Ids{"1", "3"}));
}

TEST(DeliveryEngines, AnObserverIsToldWhatBecomesOfRecords) {
  struct Noting final : EndpointObserver {
    std::vector<std::string> told;
    void began(std::size_t records, std::size_t repeated) override {
      told.push_back("began " + std::to_string(records) + ", " + std::to_string(repeated) +
                     " again");
    }
    void settled(Settlement::Kind kind, Duration age, std::string_view reason) override {
      told.push_back(std::to_string(static_cast<int>(kind)) + " after " +
                     std::to_string(age.count()) + " " + std::string(reason));
    }
    void paused() override { told.emplace_back("paused"); }
    void disabled(std::string_view reason) override {
      told.push_back("disabled: " + std::string(reason));
    }
    void enabled() override { told.emplace_back("enabled"); }
  };
  sim::SimClock clock;
  NotingSource source;
  ScriptedSink sink;
  Noting observer;
  EndpointPolicy policy;
  policy.observer = &observer;
  Engine engine(source, clock, {});
  engine.add_endpoint(sink, policy);
  source.next.push_back({1, {.id = "1", .time = time_from_ms(clock.wall_ms())}, 0});
  ASSERT_TRUE(engine.step());
  clock.advance(40);
  sink.deliver();
  ASSERT_TRUE(engine.step());
  EXPECT_EQ(observer.told, (Ids{"began 1, 0 again", "0 after 40 "}));
  // A second attempt, a replay, and one that failed before this process knew of it.
  observer.told.clear();
  source.next.push_back({2, {.id = "2", .attempt = 2}, 0});
  source.next.push_back({3, {.id = "3", .replay = 1}, 0});
  source.next.push_back({4, {.id = "4", .tried_for = Duration{10}}, 0});
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(engine.step());
  EXPECT_EQ(observer.told, (Ids(3, "began 1, 1 again")));
  observer.told.clear();
  sink.answer(0, SendResult::Outcome::kGone);
  ASSERT_TRUE(engine.step());
  ASSERT_FALSE(observer.told.empty());
  EXPECT_EQ(observer.told.front(), "disabled: said so");
  observer.told.clear();
  engine.set_paused(true);
  ASSERT_TRUE(engine.step());
  EXPECT_EQ(observer.told, Ids{"enabled"});
}

// Z13
TEST_F(AnnouncingEngine, WhatBecameOfWhatIsLostMeanwhileIsSettled) {
  hand_out(1, "a");
  steps(2);
  source.lost = {1};
  hand_out(2, "b");
  steps(2);
  sink.answer(0, Outcome::kDelivered);
  steps(1);
  ASSERT_EQ(source.settled.size(), 1U);
  EXPECT_EQ(source.settled[0].number, 1U);
  EXPECT_EQ(source.settled[0].kind, Settlement::Kind::kDelivered);
  EXPECT_EQ(engine.counts().delivered, 0U) << "it is somebody else's";
}

// Z13
TEST_F(AnnouncingEngine, WhatIsUnderWayAndLostIsUnknownAtTheEnd) {
  hand_out(1, "a");
  steps(2);
  source.fails = true;
  hand_out(2, "a");
  EXPECT_FALSE(engine.step());
  source.fails = false;
  ASSERT_TRUE(engine.stop());
  ASSERT_EQ(source.settled.size(), 1U);
  EXPECT_EQ(source.settled[0].kind, Settlement::Kind::kUnknown);
  EXPECT_TRUE(source.settled[0].may_have_arrived);
}

// Z13: its note says that it was sent, so it goes back with what was behind it.
TEST_F(AnnouncingEngine, WhatWasNotSentGoesBack) {
  hand_out(1, "a");
  hand_out(2, "a");
  steps(2);
  sink.answer(0, Outcome::kNotSent);
  steps(1);
  ASSERT_EQ(source.settled.size(), 2U);
  EXPECT_EQ(source.settled[0].kind, Settlement::Kind::kNotSent);
  EXPECT_EQ(source.settled[1].kind, Settlement::Kind::kHeld);
  EXPECT_EQ(engine.held(), 0U);
}

// One endpoint that takes nothing holds at most what it may hold; the rest goes back.
TEST(DeliveryEngines, AnEndpointHoldsNoMoreThanItMay) {
  sim::SimClock clock;
  NotingSource source;
  ScriptedSink hanging;
  ScriptedSink living;
  living.answers = [](const Outgoing&) { return SendResult{}; };
  Engine engine(source, clock, {});
  engine.add_endpoint(hanging, {.concurrency = 2, .held_max = 3});
  engine.add_endpoint(living, {});
  for (HandoutNumber i = 0; i < 20; ++i) {
    source.next.push_back({i, {.id = std::to_string(i)}, static_cast<std::uint32_t>(i % 2)});
  }
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(engine.step());
  EXPECT_EQ(engine.counts().delivered, 10U);
  EXPECT_EQ(hanging.calls.size(), 2U);
  EXPECT_EQ(engine.counts().deferred, 7U);
}

}  // namespace
}  // namespace hapax::delivery
