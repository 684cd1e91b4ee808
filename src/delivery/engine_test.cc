// The engine over an outbox in memory, a sink that answers when the test says so, and a clock that
// the test moves.
#include "delivery/engine.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "delivery/lane_source.h"
#include "delivery/scripted_sink_test.h"
#include "relay/memory_source_test.h"
#include "sim/clock.h"

namespace hapax::delivery {
namespace {

using Ids = std::vector<std::string>;
using Outcome = SendResult::Outcome;
using relay::MemoryOutbox;
using relay::MemorySource;

EndpointPolicy patient() {
  EndpointPolicy policy;
  policy.failure_cost = FailureCost::kOnceOthersPass;
  policy.retry_after = [](std::uint32_t attempt) { return Duration{1'000 << (attempt - 1)}; };
  return policy;
}

class DeliveryEngine : public testing::Test {
 protected:
  void use(const EndpointPolicy& policy) { engine.add_endpoint(sink, policy); }
  Step go() {
    source.wait(Duration{0});
    auto step = engine.step();
    EXPECT_TRUE(step.has_value());
    return step.has_value() ? *step : Step{};
  }
  // Until nothing is left to do at this instant.
  void drain() {
    for (int i = 0; i < 10'000 && go().idle_for == Duration{0}; ++i) {
    }
  }
  // Lets time pass as a driver would: step by step.
  void pass(Duration span) {
    const std::int64_t end = clock.steady_ms() + span.count();
    while (clock.steady_ms() < end) {
      const Duration idle = go().idle_for;
      const std::int64_t next = std::max<std::int64_t>(idle.count(), 1);
      clock.advance(std::min(next, end - clock.steady_ms()));
    }
    drain();
  }

  sim::SimClock clock;
  MemoryOutbox outbox;
  ScriptedSink sink;
  MemorySource lanes{outbox, clock, "a"};
  LaneSource source{lanes, clock, LaneSettings{}};
  std::vector<std::string> said;
  Engine engine{source, clock, EngineSettings{},
                [this](std::string_view text) { said.emplace_back(text); }};
};

SendResult failed(const Outgoing&) {
  return {.outcome = Outcome::kTryLater, .answered = true, .reason = "status 500"};
}

// Z7: keys flow beside each other, and the records of one key one behind the other.
TEST_F(DeliveryEngine, OneKeyWaitsForItsAnswerOnly) {
  use(patient());
  outbox.publish(0, "a1", "a");
  outbox.publish(0, "a2", "a");
  outbox.publish(0, "b1", "b");
  outbox.publish(0, "x");
  outbox.publish(0, "y");
  drain();
  EXPECT_EQ(sink.sent, (Ids{"a1", "b1", "x", "y"}));
  sink.deliver();
  drain();
  EXPECT_EQ(sink.sent, (Ids{"a1", "b1", "x", "y", "a2"}));
}

TEST_F(DeliveryEngine, AHangingRecordHoldsUpItsKeyOnly) {
  use(patient());
  for (int i = 0; i < 100; ++i) outbox.publish(0, "k" + std::to_string(i), std::to_string(i % 10));
  drain();
  ASSERT_EQ(sink.calls.size(), 10U);
  for (int i = 0; i < 200 && sink.calls.size() > 1; ++i) {  // The first one never answers.
    sink.deliver(1);
    drain();
  }
  EXPECT_EQ(engine.counts().delivered, 90U);
  EXPECT_EQ(engine.under_way(), 1U);
}

TEST_F(DeliveryEngine, NoMoreAreUnderWayThanTheEndpointMayHave) {
  EndpointPolicy policy = patient();
  policy.concurrency = 3;
  use(policy);
  for (int i = 0; i < 10; ++i) outbox.publish(0, std::to_string(i));
  drain();
  EXPECT_EQ(sink.calls.size(), 3U);
  sink.deliver();
  drain();
  EXPECT_EQ(sink.calls.size(), 3U);
}

TEST_F(DeliveryEngine, ARateIsKept) {
  EndpointPolicy policy = patient();
  policy.rate = 20;
  use(policy);
  sink.answers = [](const Outgoing&) { return SendResult{}; };
  for (int i = 0; i < 100; ++i) outbox.publish(0, std::to_string(i));
  drain();
  EXPECT_EQ(sink.sent.size(), 2U) << "a tenth of a second's worth at once";
  pass(Duration{1'000});
  EXPECT_EQ(sink.sent.size(), 22U);
}

// Z5
TEST_F(DeliveryEngine, ARejectedRecordHoldsUpItsKeyOnly) {
  use(patient());
  std::set<std::string> rejected{"a1"};
  sink.answers = [&](const Outgoing& record) {
    return SendResult{
        .outcome = rejected.contains(record.id) ? Outcome::kRejected : Outcome::kDelivered,
        .answered = true,
        .reason = "status 422"};
  };
  outbox.publish(0, "a1", "a");
  outbox.publish(0, "b1", "b");
  outbox.publish(0, "a2", "a");
  outbox.publish(0, "x");
  drain();
  outbox.publish(0, "a3", "a");
  outbox.publish(0, "b2", "b");
  drain();
  EXPECT_EQ(sink.sent, (Ids{"a1", "b1", "x", "b2"}));
  rejected.clear();
  pass(Duration{1'100});
  EXPECT_EQ(sink.sent, (Ids{"a1", "b1", "x", "b2", "a1", "a2", "a3"}));
}

TEST_F(DeliveryEngine, WhereFailuresParkTheKeyGoesOn) {
  EndpointPolicy policy = patient();
  policy.on_failure = KeyOrder::kPark;
  use(policy);
  outbox.publish(0, "a1", "a");
  outbox.publish(0, "a2", "a");
  drain();
  sink.answer(0, Outcome::kRejected);
  drain();
  EXPECT_EQ(sink.sent, (Ids{"a1", "a2"}));
}

TEST_F(DeliveryEngine, AfterTheLastAttemptItIsADeadLetter) {
  use(patient());
  sink.answers = [&](const Outgoing& record) {
    const bool bad = record.id == "a1";
    return SendResult{.outcome = bad ? Outcome::kRejected : Outcome::kDelivered,
                      .answered = true,
                      .reason = "status 422"};
  };
  outbox.publish(0, "a1", "a");
  outbox.publish(0, "a2", "a");
  pass(Duration{2'000'000});
  ASSERT_EQ(outbox.dead.size(), 1U);
  EXPECT_EQ(outbox.dead.front().first, "a1");
  EXPECT_EQ(std::count(sink.sent.begin(), sink.sent.end(), "a1"), 10);
  EXPECT_EQ(sink.sent.back(), "a2");
  EXPECT_EQ(engine.counts().dead, 1U);
}

// Z6: an unavailable endpoint costs no attempts, however long it lasts, and is not asked all the
// time.
TEST_F(DeliveryEngine, AnUnavailableEndpointPausesWithoutCostingAttempts) {
  use(patient());
  bool down = true;
  sink.answers = [&](const Outgoing&) {
    return SendResult{.outcome = down ? Outcome::kTryLater : Outcome::kDelivered, .reason = "away"};
  };
  for (int i = 0; i < 200; ++i) outbox.publish(0, std::to_string(i), std::to_string(i % 50));
  pass(Duration{3'600'000});
  EXPECT_TRUE(outbox.dead.empty());
  EXPECT_LT(sink.sent.size(), 300U);
  down = false;
  sink.sent.clear();
  pass(Duration{40'000});
  EXPECT_EQ(engine.counts().delivered, 200U);
  EXPECT_TRUE(outbox.dead.empty());
}

// Z6: the endpoint takes others, so the failure is the record's own.
TEST_F(DeliveryEngine, ARecordThatMakesTheEndpointFailIsGivenUpWhileOthersPass) {
  use(patient());
  sink.answers = [&](const Outgoing& record) {
    return record.id == "bad" ? failed(record) : SendResult{};
  };
  outbox.publish(0, "bad", "a");
  outbox.publish(0, "a2", "a");
  for (int i = 0; i < 100; ++i) {
    outbox.publish(0, "ok" + std::to_string(i), "b");
    pass(Duration{30'000});
  }
  ASSERT_EQ(outbox.dead.size(), 1U);
  EXPECT_EQ(outbox.dead.front().first, "bad");
  EXPECT_EQ(engine.counts().delivered, 101U);
}

// Z8
TEST_F(DeliveryEngine, ARecordThatFailsAloneHoldsUpNobodyElse) {
  use(patient());
  sink.answers = [&](const Outgoing& record) {
    return record.id == "bad" ? failed(record) : SendResult{};
  };
  outbox.publish(0, "bad", "a");
  pass(Duration{60'000});
  outbox.publish(0, "b1", "b");
  pass(Duration{6'000});
  EXPECT_EQ(engine.counts().delivered, 1U);
  EXPECT_TRUE(outbox.dead.empty());
}

TEST_F(DeliveryEngine, ARecordThatFailsAloneForVeryLongIsGivenUp) {
  use(patient());
  sink.answers = failed;
  outbox.publish(0, "bad", "a");
  pass(Duration{24 * 3'600'000});
  EXPECT_EQ(outbox.dead.size(), 1U);
}

// Y4 of the endpoint: it asked to be left alone, so nobody sends to it.
TEST_F(DeliveryEngine, RetryAfterCountsForAllRecordsOfTheEndpoint) {
  use(patient());
  outbox.publish(0, "a1", "a");
  drain();
  sink.answer(0, Outcome::kTryLater, Duration{5'000});
  outbox.publish(0, "b1", "b");
  outbox.publish(0, "c1", "c");
  pass(Duration{4'990});
  EXPECT_EQ(sink.sent, Ids{"a1"});
  sink.answers = [](const Outgoing&) { return SendResult{}; };
  pass(Duration{1'000});
  EXPECT_EQ(engine.counts().delivered, 3U);
}

TEST_F(DeliveryEngine, AnUnknownOutcomeIsTriedAgainUnderItsId) {
  use(patient());
  outbox.publish(0, "a1", "a");
  drain();
  sink.answer(0, Outcome::kUnknown);
  pass(Duration{300});
  EXPECT_EQ(sink.sent, (Ids{"a1", "a1"}));
}

// Z1: nothing begins within the margin of the lease.
TEST_F(DeliveryEngine, NothingBeginsWhenTheLeaseMayBeOver) {
  EndpointPolicy policy = patient();
  policy.concurrency = 1;
  use(policy);
  outbox.publish(0, "1");
  outbox.publish(0, "2");
  drain();
  ASSERT_EQ(sink.calls.size(), 1U);
  EXPECT_EQ(sink.calls.front().not_after_ms, clock.steady_ms() + 13'000);
  sink.deliver();
  lanes.fail_leases = true;
  clock.advance(13'000);
  EXPECT_FALSE(engine.step().has_value());
  EXPECT_EQ(sink.sent, Ids{"1"});
}

// Z1: while an answer is awaited the lease is renewed, so it counts when it comes at last.
TEST_F(DeliveryEngine, AnAnswerMayTakeLongerThanTheLease) {
  use(patient());
  outbox.publish(0, "a1", "a");
  drain();
  pass(Duration{60'000});
  sink.deliver();
  drain();
  EXPECT_EQ(outbox.lanes[0].settled, 1U);
  EXPECT_EQ(engine.counts().lost, 0U);
}

// Z3, Z7: what was under way when its lease was lost still blocks its key.
TEST_F(DeliveryEngine, AfterAnErrorTheKeyWaitsForTheOldAnswer) {
  use(patient());
  outbox.publish(0, "a1", "a");
  outbox.publish(0, "b1", "b");
  drain();
  ASSERT_EQ(sink.calls.size(), 2U);
  sink.deliver(1);
  lanes.fail_leases = true;
  clock.advance(5'000);
  EXPECT_FALSE(engine.step().has_value()) << "the source does not answer";
  lanes.fail_leases = false;
  drain();
  EXPECT_EQ(sink.sent, (Ids{"a1", "b1", "b1"})) << "b1 again, and a1 is still under way";
  sink.deliver(0);  // the old a1, which does not count
  drain();
  EXPECT_EQ(sink.sent, (Ids{"a1", "b1", "b1", "a1"}));
  EXPECT_EQ(engine.counts().lost, 1U);
}

TEST_F(DeliveryEngine, WindingDownBeginsNothingAndWaitsForAnswers) {
  EndpointPolicy policy = patient();
  policy.concurrency = 2;
  use(policy);
  for (int i = 1; i <= 5; ++i) outbox.publish(0, std::to_string(i));
  drain();
  engine.wind_down();
  sink.deliver();
  drain();
  EXPECT_EQ(sink.sent, (Ids{"1", "2"}));
  EXPECT_EQ(engine.under_way(), 1U);
  sink.deliver();
  drain();
  EXPECT_EQ(engine.under_way(), 0U);
  ASSERT_TRUE(engine.stop());
  EXPECT_EQ(outbox.lanes[0].settled, 2U);
  EXPECT_EQ(outbox.lanes[0].until_ms, 0) << "the lane is free";
}

// What was delivered behind one that hangs is not sent again after a stop.
TEST_F(DeliveryEngine, AStopLosesNothingThatWasDelivered) {
  use(patient());
  for (int i = 1; i <= 5; ++i) outbox.publish(0, std::to_string(i));
  drain();
  ASSERT_EQ(sink.calls.size(), 5U);
  for (int i = 0; i < 3; ++i) sink.deliver(1);  // 2, 3, 4
  engine.wind_down();
  ASSERT_TRUE(engine.stop());

  ScriptedSink other_sink;
  other_sink.answers = [](const Outgoing&) { return SendResult{}; };
  MemorySource other_lanes(outbox, clock, "b");
  LaneSource other_source(other_lanes, clock, LaneSettings{});
  Engine other(other_source, clock, EngineSettings{});
  other.add_endpoint(other_sink, patient());
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(other.step());
  EXPECT_EQ(std::multiset<std::string>(other_sink.sent.begin(), other_sink.sent.end()),
            (std::multiset<std::string>{"1", "5"}));
}

TEST_F(DeliveryEngine, ManyGoInOneStartWhereTheSinkWantsIt) {
  sink.batch = 100;
  EndpointPolicy policy = patient();
  policy.concurrency = 1;
  use(policy);
  for (int i = 0; i < 250; ++i) outbox.publish(0, std::to_string(i), std::to_string(i % 3));
  Ids all;
  for (int i = 0; i < 250; ++i) all.push_back(std::to_string(i));
  drain();
  ASSERT_EQ(sink.calls.size(), 1U);
  EXPECT_EQ(sink.calls[0].ids.size(), 100U);
  while (!sink.calls.empty()) {
    sink.deliver();
    drain();
  }
  EXPECT_EQ(engine.counts().delivered, 250U);
  for (const char* key : {"0", "1", "2"}) {
    Ids of_key;
    for (const std::string& id : sink.sent) {
      if (std::stoi(id) % 3 == *key - '0') of_key.push_back(id);
    }
    EXPECT_TRUE(std::is_sorted(of_key.begin(), of_key.end(), [](const auto& a, const auto& b) {
      return std::stoi(a) < std::stoi(b);
    }));
  }
}

TEST_F(DeliveryEngine, OneOfManyThatIsRejectedHoldsBackItsKeyOnly) {
  sink.batch = 100;
  use(patient());
  for (const char* id : {"a1", "b1", "a2", "b2", "a3"}) outbox.publish(0, id, std::string(1, *id));
  drain();
  sink.answer(0, [](const Outgoing& record) {
    return SendResult{.outcome = record.id == "a2" ? Outcome::kRejected : Outcome::kDelivered};
  });
  drain();
  EXPECT_EQ(engine.counts().delivered, 3U);  // a1, b1, b2
  pass(Duration{1'100});
  ASSERT_EQ(sink.calls.size(), 1U);
  EXPECT_EQ(sink.calls[0].ids, Ids{"a2"});
  sink.deliver();
  drain();
  ASSERT_EQ(sink.calls.size(), 1U);
  EXPECT_EQ(sink.calls[0].ids, Ids{"a3"});
}

// What is given back is in the middle of its batch, and its lane must not go back to it.
TEST_F(DeliveryEngine, APauseSendsNothingAgainThatWasConfirmed) {
  use({.concurrency = 8});
  outbox.publish(0, "a1", "a");
  outbox.publish(0, "a2", "a");
  outbox.publish(0, "b1", "b");
  drain();
  ASSERT_EQ(sink.sent, (Ids{"a1", "b1"}));
  sink.answer(1, Outcome::kDelivered);
  drain();
  engine.set_paused(true);
  drain();
  sink.answer(0, Outcome::kDelivered);
  drain();
  engine.set_paused(false);
  pass(Duration{5'000});
  EXPECT_EQ(sink.sent, (Ids{"a1", "b1", "a2"}));
}

}  // namespace
}  // namespace hapax::delivery
