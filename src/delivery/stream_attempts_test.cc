// Streams as sources whose attempts are claims.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "delivery/stream_source.h"
#include "delivery/stream_stock_test.h"
#include "sim/clock.h"
#include "sim/random.h"

namespace hapax::delivery {
namespace {

using InDoubt = AttemptTerms::InDoubt;
using Kind = Settlement::Kind;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

constexpr Duration kTestLease{10'000};

class ScriptedProbe final : public OutcomeProbe {
 public:
  void ask(const std::string& key, Done done) override {
    asked.push_back(key);
    if (answers) done(told);
  }
  std::vector<std::string> asked{};
  bool answers = true;
  Told told = Told::kNothing;
};

class StreamAttempts : public testing::Test {
 protected:
  // A process of its own, whose answers of the store may get lost.
  struct Sender {
    Sender(StreamAttempts& test, const std::string& owner, InDoubt in_doubt,
           std::shared_ptr<OutcomeProbe> probe = {})
        : store({.clock = test.clock_,
                 .random = test.random_,
                 .error = [this] { return away; },
                 .answer_lost = [this] { return answer_lost; }},
                test.store_),
          source(store, test.clock_, settings(owner, in_doubt, std::move(probe)),
                 [](const Record& record, std::uint64_t) { return record.id; }) {}
    static StreamSourceSettings settings(const std::string& owner, InDoubt in_doubt,
                                         std::shared_ptr<OutcomeProbe> probe) {
      StreamSourceSettings settings = stream_of_world(owner);
      settings.claims = attempts_of_world(in_doubt);
      settings.claims->probe = std::move(probe);
      settings.claims->ask_after = Duration{5'000};
      settings.give_up_after = Duration{60'000};
      return settings;
    }
    Result<Hand> try_take(std::vector<Settlement> settled = {},
                          const std::vector<const Handout*>& begins = {}) {
      std::vector<Beginning> beginning;
      for (const Handout* each : begins) beginning.push_back({each->number, &each->record});
      return source.take(
          {.settled = settled, .beginning = beginning, .room = 10, .lease = kTestLease});
    }
    Hand take(std::vector<Settlement> settled = {}) { return try_take(std::move(settled)).value(); }
    Handout take_one(std::vector<Settlement> settled = {}) {
      Hand hand = take(std::move(settled));
      EXPECT_THAT(hand.records, SizeIs(1));
      return hand.records.empty() ? Handout{} : std::move(hand.records.front());
    }
    bool begin(const Handout& handout) { return try_take({}, {&handout}).value().lost.empty(); }
    Handout take_and_begin() {
      Handout handout = take_one();
      EXPECT_TRUE(begin(handout));
      return handout;
    }

    bool away = false;
    bool answer_lost = false;
    WorldStore store;
    StreamSource source;
  };

  StreamAttempts() {
    run(CreateStream{"orders", {}});
    append("a");
  }
  void run(const Op& op) {
    const Answer answer = store_.commit({.ops = {&op, 1}}).value();
    ASSERT_TRUE(holds(answer.verdicts.front())) << word_of(answer.verdicts.front());
  }
  void append(const std::string& id, std::string_view payload = "pay") {
    run(Append{.stream = "orders", .payload = payload, .id = id});
  }
  void resolve(Resolution how) {
    run(Resolve{.scope = "erp.deliveries",
                .key = "a",
                .resolution = how,
                .actor = "ann",
                .reason = "asked"});
  }
  void redrive() {
    const core::Stream* stream = store_.rules.state.find_stream("erp.dead");
    run(Redrive{.dead_letters = "erp.dead", .sequence = stream->last});
  }
  [[nodiscard]] std::optional<ClaimState> claim() {
    const auto found = store_.find_claim("erp.deliveries", "a").value();
    return found ? std::optional(found->state) : std::nullopt;
  }
  [[nodiscard]] std::vector<std::string> dead() {
    std::vector<std::string> all;
    const core::Stream* stream = store_.rules.state.find_stream("erp.dead");
    if (stream == nullptr) return all;
    for (Sequence at = stream->first; at <= stream->last; ++at.value) {
      if (stream->keeps(at)) all.push_back(store_.record("erp.dead", at).lineage->reason);
    }
    return all;
  }
  void expect_nothing_left(Sender& sender) {
    clock_.advance(100'000);
    EXPECT_THAT(sender.take().records, IsEmpty());
  }
  static Settlement unknown(const Handout& handout) {
    return {handout.number, Kind::kUnknown, Duration{0}, "reset", true};
  }

  sim::SimClock clock_;
  sim::Random random_{1};
  RuleStore store_{clock_};
};

// Z2
TEST_F(StreamAttempts, AnAttemptIsAClaimUntilItIsSettled) {
  Sender sender(*this, "p1", InDoubt::kPark);
  const Handout first = sender.take_one();
  EXPECT_EQ(claim(), std::nullopt) << "it is not noted yet";
  EXPECT_TRUE(sender.begin(first));
  EXPECT_EQ(claim(), ClaimState::kProcessing);
  sender.take({{first.number, Kind::kDelivered}});
  EXPECT_EQ(claim(), ClaimState::kCompleted);
  expect_nothing_left(sender);
}

TEST_F(StreamAttempts, AFailureIsCertainSoItIsSentAgain) {
  Sender sender(*this, "p1", InDoubt::kPark);
  const Handout first = sender.take_and_begin();
  sender.take({{first.number, Kind::kRetry, Duration{500}, "HTTP 503"}});
  EXPECT_EQ(claim(), ClaimState::kFailed);
  clock_.advance(500);
  const Handout second = sender.take_and_begin();
  EXPECT_EQ(second.record.attempt, 2U);
  sender.take({{second.number, Kind::kDead, Duration{0}, "HTTP 422"}});
  EXPECT_EQ(claim(), ClaimState::kFailed);
  EXPECT_THAT(dead(), ElementsAre("HTTP 422"));
}

TEST_F(StreamAttempts, WhatWasNotSentLeavesNothing) {
  Sender sender(*this, "p1", InDoubt::kPark);
  const Handout first = sender.take_and_begin();
  const Handout again = sender.take_one({{first.number, Kind::kNotSent}});
  EXPECT_EQ(claim(), std::nullopt);
  EXPECT_EQ(again.record.attempt, 1U);
  EXPECT_TRUE(sender.begin(again));
}

TEST_F(StreamAttempts, AnUnknownOutcomeIsParkedUntilSomebodyDecides) {
  Sender sender(*this, "p1", InDoubt::kPark);
  sender.take({unknown(sender.take_and_begin())});
  EXPECT_EQ(claim(), ClaimState::kUnknown);
  EXPECT_THAT(dead(), ElementsAre("unknown outcome of erp.deliveries/a: reset"));
  redrive();
  EXPECT_FALSE(sender.begin(sender.take_one())) << "nobody has decided";
  EXPECT_THAT(sender.take().records, IsEmpty());
  EXPECT_THAT(dead(), ElementsAre("unknown outcome of erp.deliveries/a: reset"));
  resolve(Resolution::kNotApplied);
  redrive();
  sender.take({{sender.take_and_begin().number, Kind::kDelivered}});
  EXPECT_EQ(claim(), ClaimState::kCompleted);
  expect_nothing_left(sender);
}

TEST_F(StreamAttempts, WhatIsResolvedAsDeliveredIsNotSent) {
  Sender sender(*this, "p1", InDoubt::kPark);
  sender.take({unknown(sender.take_and_begin())});
  resolve(Resolution::kCompleted);
  redrive();
  EXPECT_FALSE(sender.begin(sender.take_one()));
  expect_nothing_left(sender);
  EXPECT_THAT(dead(), IsEmpty());
}

// Z14
TEST_F(StreamAttempts, WhatItsProcessDiedOverIsUnknown) {
  {
    Sender dies(*this, "p1", InDoubt::kPark);
    ASSERT_EQ(dies.take_and_begin().record.id, "a");
    clock_.advance(1);
  }
  Sender other(*this, "p2", InDoubt::kPark);
  clock_.advance(10'000);
  EXPECT_FALSE(other.begin(other.take_one()));
  EXPECT_THAT(other.take().records, IsEmpty());
  EXPECT_THAT(dead(), ElementsAre(HasSubstr("the lease of owner 'p1' ran out")));
  EXPECT_EQ(claim(), ClaimState::kUnknown);
}

// Z14: the other one goes on, and its claim is renewed as long as it waits for an answer.
TEST_F(StreamAttempts, NothingBeginsWhileAnAttemptIsUnderWay) {
  Sender hangs(*this, "p1", InDoubt::kPark);
  const Handout first = hangs.take_and_begin();
  Sender other(*this, "p2", InDoubt::kPark);
  run(Seek{"orders", "erp", Sequence{1}});
  const Handout second = other.take_one();
  EXPECT_FALSE(other.begin(second));
  for (int i = 0; i < 6; ++i) {
    clock_.advance(4'000);
    hangs.take();
    for (const Handout& each : other.take().records) EXPECT_FALSE(other.begin(each));
  }
  EXPECT_EQ(claim(), ClaimState::kProcessing);
  hangs.take({{first.number, Kind::kDelivered}});
  EXPECT_EQ(claim(), ClaimState::kCompleted) << "Z13: although it was lost meanwhile";
  clock_.advance(20'000);
  EXPECT_FALSE(other.begin(other.take_one()));
  expect_nothing_left(other);
  EXPECT_THAT(dead(), IsEmpty());
}

TEST_F(StreamAttempts, AnEndpointThatRecognisesRepetitionsIsSentItAgain) {
  {
    Sender dies(*this, "p1", InDoubt::kSendAgain);
    ASSERT_EQ(dies.take_and_begin().record.id, "a");
  }
  clock_.advance(10'001);
  Sender other(*this, "p2", InDoubt::kSendAgain);
  const Handout second = other.take_and_begin();
  const Handout third = other.take_one({{second.number, Kind::kRetry, Duration{0}, "reset", true}});
  EXPECT_EQ(claim(), ClaimState::kFailed);
  EXPECT_TRUE(other.begin(third));
  other.take({{third.number, Kind::kDead, Duration{0}, "reset", true}});
  EXPECT_EQ(claim(), ClaimState::kUnknown) << "nobody sends it again";
  redrive();
  EXPECT_FALSE(other.begin(other.take_one())) << "first the claim is decided";
  EXPECT_TRUE(other.begin(other.take_one()));
}

TEST_F(StreamAttempts, OneAttemptIsAllThereIs) {
  Sender sender(*this, "p1", InDoubt::kGiveUp);
  sender.take({{sender.take_and_begin().number, Kind::kRetry, Duration{0}, "HTTP 503"}});
  EXPECT_EQ(claim(), ClaimState::kFailed);
  expect_nothing_left(sender);
  EXPECT_THAT(dead(), ElementsAre("HTTP 503"));
  run(Seek{"orders", "erp", Sequence{1}});
  EXPECT_FALSE(sender.begin(sender.take_one())) << "not even when it is handed out again";
  expect_nothing_left(sender);
  EXPECT_EQ(claim(), ClaimState::kFailed);
}

// Released, the claim would forget that there was an attempt.
TEST_F(StreamAttempts, OneAttemptIsRememberedWhenASecondClaimIsNotHeard) {
  Sender sender(*this, "p1", InDoubt::kGiveUp);
  sender.take({{sender.take_and_begin().number, Kind::kRetry, Duration{0}, "HTTP 503"}});
  run(Seek{"orders", "erp", Sequence{1}});
  const Handout again = sender.take_one();
  sender.answer_lost = true;
  EXPECT_FALSE(sender.try_take({}, {&again}));
  sender.answer_lost = false;
  sender.take();
  EXPECT_EQ(claim(), ClaimState::kFailed);
  clock_.advance(10'001);
  EXPECT_FALSE(sender.begin(sender.take_one()));
}

TEST_F(StreamAttempts, OneAttemptThatFailedMayBeReplayed) {
  Sender sender(*this, "p1", InDoubt::kGiveUp);
  sender.take({{sender.take_and_begin().number, Kind::kRetry, Duration{0}, "HTTP 503"}});
  redrive();
  EXPECT_TRUE(sender.begin(sender.take_one())) << "nothing arrived, and a person decided";
}

TEST_F(StreamAttempts, OneAttemptWithoutAnAnswerStaysUnknown) {
  {
    Sender dies(*this, "p1", InDoubt::kGiveUp);
    ASSERT_EQ(dies.take_and_begin().record.id, "a");
  }
  clock_.advance(10'001);
  Sender other(*this, "p2", InDoubt::kGiveUp);
  EXPECT_FALSE(other.begin(other.take_one()));
  expect_nothing_left(other);
  EXPECT_EQ(claim(), ClaimState::kUnknown);
  EXPECT_THAT(dead(), ElementsAre(HasSubstr("unknown outcome")));
  redrive();
  EXPECT_FALSE(other.begin(other.take_one())) << "nobody decided";
}

TEST_F(StreamAttempts, WhatWasNotSentMayStillHaveItsOneAttempt) {
  Sender sender(*this, "p1", InDoubt::kGiveUp);
  const Handout first = sender.take_and_begin();
  EXPECT_TRUE(sender.begin(sender.take_one({{first.number, Kind::kNotSent}})));
}

// Z13
TEST_F(StreamAttempts, WhatBecameOfAnAttemptIsToldUntilItIsHeard) {
  Sender sender(*this, "p1", InDoubt::kPark);
  const Handout first = sender.take_and_begin();
  sender.away = true;
  EXPECT_FALSE(sender.try_take({{first.number, Kind::kDelivered}}));
  EXPECT_FALSE(sender.try_take());
  sender.away = false;
  EXPECT_EQ(claim(), ClaimState::kProcessing);
  sender.take();
  EXPECT_EQ(claim(), ClaimState::kCompleted);
  clock_.advance(10'001);
  EXPECT_FALSE(sender.begin(sender.take_one()));
  expect_nothing_left(sender);
}

// The store did what it was asked for, and nobody heard it: nothing left under that claim.
TEST_F(StreamAttempts, AClaimWhoseAnswerWasLostIsReleased) {
  Sender sender(*this, "p1", InDoubt::kPark);
  const Handout first = sender.take_one();
  sender.answer_lost = true;
  EXPECT_FALSE(sender.try_take({}, {&first}));
  sender.answer_lost = false;
  EXPECT_EQ(claim(), ClaimState::kProcessing);
  sender.take();
  EXPECT_EQ(claim(), std::nullopt);
  clock_.advance(10'001);
  EXPECT_TRUE(sender.begin(sender.take_one()));
}

// Also if the store was away for so long that the claim has lapsed.
TEST_F(StreamAttempts, AClaimThatLapsedUnheardWasNeverSent) {
  for (const InDoubt in_doubt : {InDoubt::kPark, InDoubt::kGiveUp, InDoubt::kSendAgain}) {
    const std::string id = base::format("r{}", static_cast<int>(in_doubt));
    append(id);
    Sender sender(*this, "p1", in_doubt);
    std::vector<Handout> some = sender.take().records;
    const auto first = std::find_if(some.begin(), some.end(),
                                    [&](const Handout& each) { return each.record.id == id; });
    ASSERT_NE(first, some.end());
    sender.answer_lost = true;
    EXPECT_FALSE(sender.try_take({}, {&*first}));
    sender.answer_lost = false;
    sender.away = true;
    clock_.advance(30'000);
    EXPECT_FALSE(sender.try_take());
    sender.away = false;
    for (const Handout& again : sender.take().records) {
      if (again.record.id != id) continue;
      EXPECT_TRUE(sender.begin(again)) << id;
      sender.take({{again.number, Kind::kDelivered}});
    }
    EXPECT_EQ(store_.find_claim("erp.deliveries", id).value()->state, ClaimState::kCompleted) << id;
  }
  EXPECT_THAT(dead(), IsEmpty());
}

// What really is unknown stays so: the claim was there before the commit that was not heard.
TEST_F(StreamAttempts, AnUnknownOutcomeOutlivesACommitThatWasNotHeard) {
  Sender sender(*this, "p1", InDoubt::kPark);
  sender.take({unknown(sender.take_and_begin())});
  redrive();
  const Handout again = sender.take_one();
  sender.answer_lost = true;
  EXPECT_FALSE(sender.try_take({}, {&again}));
  sender.answer_lost = false;
  clock_.advance(30'000);
  EXPECT_FALSE(sender.begin(sender.take_one()));
  EXPECT_EQ(claim(), ClaimState::kUnknown);
}

// Z14: its lease was over when the attempt was to begin, and somebody else has it.
TEST_F(StreamAttempts, TheClaimOfWhatIsLostIsReleased) {
  Sender slow(*this, "p1", InDoubt::kPark);
  const Handout first = slow.take_one();
  clock_.advance(10'001);
  Sender other(*this, "p2", InDoubt::kPark);
  const Handout second = other.take_one();
  EXPECT_FALSE(slow.begin(first));
  slow.take();
  EXPECT_EQ(claim(), std::nullopt);
  EXPECT_TRUE(other.begin(second));
}

TEST_F(StreamAttempts, AKeyWithAnotherPayloadIsNotTakenForARepetition) {
  Sender sender(*this, "p1", InDoubt::kPark);
  sender.take({{sender.take_and_begin().number, Kind::kDelivered}});
  clock_.advance(25 * 3'600'000);  // beyond the window of the stream
  append("a", "other");
  EXPECT_FALSE(sender.begin(sender.take_one()));
  sender.take();
  EXPECT_THAT(dead(), ElementsAre(HasSubstr("with another payload")));
}

class AskedEndpoint : public StreamAttempts {
 protected:
  using Told = OutcomeProbe::Told;

  // Whether there is something to send when the record came back and the endpoint was asked.
  bool begins_later() {
    for (int i = 0; i < 400; ++i) {
      clock_.advance(250);
      for (const Handout& each : sender_.take().records) {
        if (sender_.begin(each)) return true;
      }
      if (claim() != ClaimState::kUnknown || !dead().empty()) break;
    }
    const Hand hand = sender_.take();
    return !hand.records.empty() && sender_.begin(hand.records.front());
  }

  const std::shared_ptr<ScriptedProbe> probe_ = std::make_shared<ScriptedProbe>();
  Sender sender_{*this, "p1", InDoubt::kAsk, probe_};
};

TEST_F(AskedEndpoint, HasItSoItIsNotSentAgain) {
  probe_->told = Told::kDelivered;
  sender_.take({unknown(sender_.take_and_begin())});
  EXPECT_EQ(claim(), ClaimState::kUnknown);
  EXPECT_FALSE(begins_later());
  EXPECT_EQ(claim(), ClaimState::kCompleted);
  EXPECT_THAT(probe_->asked, ElementsAre("a"));
  expect_nothing_left(sender_);
  EXPECT_THAT(dead(), IsEmpty());
}

TEST_F(AskedEndpoint, DoesNotHaveItSoItIsSentAgain) {
  probe_->told = Told::kNotArrived;
  sender_.take({unknown(sender_.take_and_begin())});
  EXPECT_TRUE(begins_later());
  EXPECT_THAT(probe_->asked, ElementsAre("a"));
  EXPECT_EQ(claim(), ClaimState::kProcessing);
}

TEST_F(AskedEndpoint, IsNotAskedWhileTheRequestMayBeOnItsWay) {
  probe_->told = Told::kNotArrived;
  sender_.take({unknown(sender_.take_and_begin())});
  clock_.advance(4'999);
  EXPECT_THAT(sender_.take().records, IsEmpty());
  EXPECT_THAT(probe_->asked, IsEmpty());
}

TEST_F(AskedEndpoint, SaysNothingUntilTheRecordIsGivenUp) {
  sender_.take({unknown(sender_.take_and_begin())});
  EXPECT_FALSE(begins_later());
  EXPECT_THAT(dead(), ElementsAre("unknown outcome of erp.deliveries/a: reset"));
  EXPECT_EQ(claim(), ClaimState::kUnknown);
  EXPECT_GT(probe_->asked.size(), 2U);
}

// What it said of the attempt before says nothing of the next one.
TEST_F(AskedEndpoint, IsAskedOfEachAttempt) {
  Doubts doubts(probe_, Duration{0});
  const Time first = RuleStore::kStart;
  const Time second = first + Duration{1'000};
  probe_->told = Told::kNotArrived;
  EXPECT_EQ(doubts.look("a", first, first).told, Told::kNothing);
  probe_->told = Told::kDelivered;
  EXPECT_EQ(doubts.look("a", second, second).told, Told::kNothing);
  EXPECT_EQ(doubts.look("a", second, second).told, Told::kDelivered);
  EXPECT_THAT(probe_->asked, SizeIs(2));
}

TEST_F(StreamAttempts, WhoStopsSettlesItsAttempts) {
  Sender sender(*this, "p1", InDoubt::kPark);
  const Handout first = sender.take_and_begin();
  append("b");
  ASSERT_EQ(sender.take_one().record.id, "b");
  const std::vector<Settlement> settled{unknown(first)};
  ASSERT_TRUE(sender.source.give_back(settled).ok());
  EXPECT_EQ(claim(), ClaimState::kUnknown);
  EXPECT_THAT(dead(), SizeIs(1));
  EXPECT_EQ(sender.take_one().record.id, "b");
}

}  // namespace
}  // namespace hapax::delivery
