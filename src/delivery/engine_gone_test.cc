// Endpoints that say that they are gone, and endpoints to which nothing can be sent for a while.
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "delivery/engine.h"
#include "delivery/giving_source_test.h"
#include "delivery/scripted_sink_test.h"
#include "sim/clock.h"

namespace hapax::delivery {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using Kind = Settlement::Kind;
using Outcome = SendResult::Outcome;

class EnginesOfGoneEndpoints : public testing::Test {
 protected:
  void publish(HandoutNumber number, const std::string& key = "", std::uint32_t endpoint = 0) {
    source.next.push_back({number, {.id = std::to_string(number), .key = key}, endpoint});
  }
  void steps(int count = 5) {
    for (int i = 0; i < count; ++i) ASSERT_TRUE(engine.step());
  }
  [[nodiscard]] std::vector<std::pair<HandoutNumber, Kind>> settled() const {
    std::vector<std::pair<HandoutNumber, Kind>> all;
    for (const Settlement& one : source.settled) all.emplace_back(one.number, one.kind);
    return all;
  }
  static SendResult gone() { return {.outcome = Outcome::kGone, .reason = "HTTP 410"}; }

  sim::SimClock clock;
  GivingSource source;
  ScriptedSink sink;
  ScriptedSink other;
  std::vector<std::string> said;
  Engine engine{
      source, clock, {.window = 4}, [this](std::string_view text) { said.emplace_back(text); }};
};

// Z18: what waits goes back, and nothing is taken any more.
TEST_F(EnginesOfGoneEndpoints, RecordsOfTheOnlyOneWaitInTheSource) {
  engine.add_endpoint(sink, {.concurrency = 2});
  publish(1, "a");
  publish(2, "a");
  publish(3, "b");
  publish(4, "c");
  publish(5, "d");
  steps(2);
  ASSERT_THAT(sink.sent, ElementsAre("1", "3"));
  sink.answer(0, [](const Outgoing&) { return gone(); });
  steps();
  EXPECT_THAT(settled(), ElementsAre(std::pair(1, Kind::kDeferred), std::pair(4, Kind::kNotSent),
                                     std::pair(2, Kind::kNotSent)))
      << "no attempt counts";
  EXPECT_EQ(source.next.size(), 1U) << "and no more is taken";
  sink.deliver();
  steps();
  EXPECT_EQ(settled().back(), std::pair(HandoutNumber{3}, Kind::kDelivered))
      << "what was under way";
  EXPECT_THAT(sink.sent, ElementsAre("1", "3"));
  EXPECT_EQ(engine.held(), 0U);
  EXPECT_EQ(engine.counts().gone, 1U);
  EXPECT_THAT(said, ElementsAre("the endpoint is disabled: HTTP 410; nothing is sent to it until "
                                "the workflow is paused and resumed or the process starts again, "
                                "and its records wait"));
}

TEST_F(EnginesOfGoneEndpoints, WhatWasUnderWayIsNotSentAgain) {
  engine.add_endpoint(sink, {.concurrency = 2});
  publish(1);
  publish(2);
  steps(2);
  sink.answer(0, [](const Outgoing&) { return gone(); });
  sink.answer(0, Outcome::kNotSent);
  steps();
  EXPECT_THAT(settled(), ElementsAre(std::pair(1, Kind::kDeferred), std::pair(2, Kind::kNotSent)));
  EXPECT_EQ(engine.held(), 0U);
}

TEST_F(EnginesOfGoneEndpoints, APauseEnablesItAgain) {
  engine.add_endpoint(sink, {});
  publish(1);
  steps(2);
  sink.answer(0, [](const Outgoing&) { return gone(); });
  publish(2);
  steps();
  ASSERT_THAT(sink.sent, ElementsAre("1"));
  engine.set_paused(true);
  steps();
  engine.set_paused(false);
  steps();
  EXPECT_THAT(sink.sent, ElementsAre("1", "2"));
}

// Z18: what is said about a record that somebody else has by now does not count, but this does.
TEST_F(EnginesOfGoneEndpoints, ALostRecordTellsItToo) {
  engine.add_endpoint(sink, {.concurrency = 1});
  publish(1);
  publish(2);
  steps(2);
  source.lost = {1};
  clock.advance(10'000);
  steps(1);
  sink.answer(0, [](const Outgoing&) { return gone(); });
  steps();
  EXPECT_THAT(sink.sent, ElementsAre("1"));
  EXPECT_THAT(settled(), ElementsAre(std::pair(2, Kind::kNotSent)));
}

// Z18: they would fill the source, and the others would get nothing.
TEST_F(EnginesOfGoneEndpoints, RecordsOfOneOfSeveralBecomeDeadLetters) {
  other.answers = [](const Outgoing&) { return SendResult{}; };
  engine.add_endpoint(sink, {.name = "erp", .concurrency = 1});
  engine.add_endpoint(other, {});
  publish(1);
  publish(2);
  steps(2);
  sink.answer(0, [](const Outgoing&) { return gone(); });
  for (HandoutNumber i = 3; i < 30; ++i) publish(i, "", i % 2);
  steps(60);
  EXPECT_THAT(sink.sent, ElementsAre("1"));
  EXPECT_EQ(engine.counts().delivered, 14U);
  EXPECT_EQ(engine.counts().dead, 15U);
  for (const Settlement& one : source.settled) {
    if (one.number % 2 != 0 && one.number != 1) {
      EXPECT_EQ(one.kind, Kind::kDelivered);
      continue;
    }
    EXPECT_EQ(one.kind, Kind::kDead);
    EXPECT_EQ(one.reason, "endpoint 'erp' is disabled: HTTP 410");
  }
  EXPECT_THAT(said, ElementsAre(AllOf(HasSubstr("endpoint 'erp' is disabled"),
                                      HasSubstr("its records become dead letters"))));
}

// A signature or an access token that is missing is nobody's attempt.
TEST_F(EnginesOfGoneEndpoints, WhatCannotBeSentForAWhileWaits) {
  engine.add_endpoint(sink, {.concurrency = 2, .attempts_max = 1});
  bool missing = true;
  sink.answers = [&](const Outgoing&) {
    if (!missing) return SendResult{};
    return SendResult{.outcome = Outcome::kNotSent, .after = Duration{5'000}, .reason = "no key"};
  };
  publish(1, "a");
  publish(2, "b");
  steps();
  ASSERT_THAT(sink.sent, ElementsAre("1", "2"));
  EXPECT_THAT(said, ElementsAre("the endpoint is unavailable, pausing: no key"));
  clock.advance(4'000);
  steps();
  EXPECT_EQ(sink.sent.size(), 2U);
  clock.advance(1'000);
  steps();
  EXPECT_EQ(sink.sent.size(), 3U) << "one finds out how it is";
  missing = false;
  clock.advance(6'000);
  steps();
  EXPECT_EQ(engine.counts().delivered, 2U);
  EXPECT_THAT(settled(), Not(testing::Contains(testing::Pair(testing::_, Kind::kDead))));
}

TEST_F(EnginesOfGoneEndpoints, AHopelessRecordGetsNoSecondAttempt) {
  engine.add_endpoint(sink, {.attempts_max = 5});
  publish(1);
  steps(2);
  sink.answer(0, [](const Outgoing&) {
    return SendResult{.outcome = Outcome::kRejected, .hopeless = true, .reason = "no event"};
  });
  steps();
  EXPECT_THAT(settled(), ElementsAre(std::pair(1, Kind::kDead)));
}

// Z23
TEST_F(EnginesOfGoneEndpoints, WhatItsSinkRejectsByItselfSaysNothingOfTheEndpoint) {
  engine.add_endpoint(sink, {.concurrency = 2, .attempts_max = 1});
  publish(1, "a");
  publish(2, "b");
  steps(2);
  sink.answer(0, Outcome::kTryLater);
  sink.answer(0, Outcome::kTryLater);
  steps();
  for (HandoutNumber number = 3; number <= 6; ++number) publish(number, std::to_string(number));
  clock.advance(1'000);
  steps();
  ASSERT_EQ(engine.under_way(), 1U) << "one finds out how it is";
  sink.answer(0, [](const Outgoing&) {
    return SendResult{.outcome = Outcome::kRejected, .hopeless = true, .reason = "no event"};
  });
  steps();
  EXPECT_EQ(engine.under_way(), 1U) << "so does the next one: nothing has reached the endpoint";
  sink.deliver();
  steps();
  EXPECT_EQ(engine.under_way(), 2U);
}

}  // namespace
}  // namespace hapax::delivery
