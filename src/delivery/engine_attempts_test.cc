// What an engine tells its source of the attempts that it made.
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "delivery/engine.h"
#include "delivery/scripted_sink_test.h"
#include "sim/clock.h"

namespace hapax::delivery {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using Outcome = SendResult::Outcome;

class AttemptedSource final : public Source {
 public:
  std::vector<Handout> next{};
  std::vector<HandoutNumber> lost{};
  std::vector<Attempt> noted{};

  void note_attempts(std::vector<Attempt> attempts) override {
    std::move(attempts.begin(), attempts.end(), std::back_inserter(noted));
  }
  Result<Hand> take(const TakeCall& call) override {
    return Hand{.records = std::exchange(next, {}),
                .lost = std::exchange(lost, {}),
                .lease_left = call.lease};
  }
  Status give_back(std::span<const Settlement>) override { return Ok{}; }
  void wait(Duration) override {}
  void nudge() override {}
};

class EngineAttempts : public testing::Test {
 protected:
  EngineAttempts() { engine_.add_endpoint(sink_, {.name = "crm"}); }
  // One record is under way.
  void send() {
    Outgoing record{.place = 17, .id = "o1"};
    record.attempt = 2;
    record.replay = 1;
    source_.next.push_back({1, record});
    steps();
    ASSERT_THAT(sink_.calls, SizeIs(1));
  }
  void steps() {
    for (int i = 0; i < 5; ++i) {
      ASSERT_TRUE(engine_.step());
      clock_.advance(60);
    }
  }

  sim::SimClock clock_;
  AttemptedSource source_;
  ScriptedSink sink_;
  Engine engine_{source_, clock_, {.tells_attempts = true}};
};

TEST_F(EngineAttempts, AreToldWithWhatTheSinkKnows) {
  send();
  sink_.answer(0, [](const Outgoing&) {
    SendResult result{.outcome = Outcome::kRejected, .reason = "HTTP 422 no"};
    result.facts = {.times = {.total = 900}, .status = 422, .answer = "no"};
    return result;
  });
  steps();
  ASSERT_THAT(source_.noted, SizeIs(1));
  const Attempt& attempt = source_.noted[0];
  EXPECT_EQ(attempt.key, "o1");
  EXPECT_EQ(attempt.endpoint, "crm");
  EXPECT_EQ(attempt.place, 17U);
  EXPECT_EQ(attempt.number, 2U);
  EXPECT_EQ(attempt.replay, 1U);
  EXPECT_EQ(attempt.outcome, AttemptOutcome::kRejected);
  EXPECT_EQ(attempt.facts.status, 422);
  EXPECT_EQ(attempt.facts.answer, "no");
  EXPECT_EQ(attempt.facts.times.total, 900U);
  EXPECT_EQ(attempt.reason, "") << "the answer says it";
}

TEST_F(EngineAttempts, WithoutAWholeAnswerHaveAReason) {
  send();
  sink_.answer(0, Outcome::kUnknown);
  steps();
  ASSERT_THAT(source_.noted, SizeIs(1));
  EXPECT_EQ(source_.noted[0].outcome, AttemptOutcome::kUnknown);
  EXPECT_EQ(source_.noted[0].reason, "said so");
}

TEST_F(EngineAttempts, ThatWereNotMadeAreNone) {
  send();
  sink_.answer(0, Outcome::kNotSent);
  steps();
  EXPECT_THAT(source_.noted, IsEmpty());
}

TEST_F(EngineAttempts, AreToldOfARecordThatSomebodyElseHas) {
  send();
  source_.lost = {1};
  clock_.advance(10'000);
  ASSERT_TRUE(engine_.step());
  sink_.deliver();
  clock_.advance(10'000);
  steps();
  ASSERT_THAT(source_.noted, SizeIs(1));
  EXPECT_EQ(source_.noted[0].outcome, AttemptOutcome::kDelivered);
}

TEST_F(EngineAttempts, AreUnknownWhenTheEngineEnds) {
  send();
  ASSERT_TRUE(engine_.stop());
  ASSERT_THAT(source_.noted, SizeIs(1));
  EXPECT_EQ(source_.noted[0].outcome, AttemptOutcome::kUnknown);
  EXPECT_THAT(source_.noted[0].reason, HasSubstr("ended before the answer"));
  EXPECT_GT(source_.noted[0].facts.times.total, 0U);
}

TEST_F(EngineAttempts, AreNotToldToASourceWithoutALog) {
  Engine engine(source_, clock_, {});
  engine.add_endpoint(sink_, {});
  source_.next.push_back({1, {.id = "o1"}});
  ASSERT_TRUE(engine.step());
  ASSERT_TRUE(engine.step());
  sink_.deliver();
  ASSERT_TRUE(engine.stop());
  EXPECT_THAT(source_.noted, IsEmpty());
}

}  // namespace
}  // namespace hapax::delivery
