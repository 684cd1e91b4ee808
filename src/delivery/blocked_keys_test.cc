#include "delivery/blocked_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "delivery/stream_source.h"
#include "delivery/stream_stock_test.h"
#include "sim/clock.h"

namespace hapax::delivery {
namespace {

using Kind = Settlement::Kind;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

constexpr Duration kForever = Duration::max();
constexpr Duration kDay{std::chrono::days{1}};

TEST(BlockedRecord, IsReadAsItWasWritten) {
  const BlockedRecord record{.receipt = {Sequence{7}, Token{9}},
                             .key = "a key\nwith 3 lines\n",
                             .since = time_from_ms(1'700'000'000'000),
                             .until = time_from_ms(1'700'000'060'000),
                             .attempts = 3,
                             .retries = 2,
                             .reason = "HTTP 422 12",
                             .waits = false};
  const auto read = read_blocked(text_of(record)).value();
  EXPECT_EQ(text_of(read), text_of(record));
  EXPECT_EQ(read.key, record.key);
  EXPECT_EQ(read.reason, record.reason);
  EXPECT_EQ(read.until, record.until);
  EXPECT_FALSE(read.waits);
  EXPECT_EQ(read_blocked(text_of({}))->until, Time::max());
}

// Others may write registers of that name.
TEST(BlockedRecord, WhatSomebodyElseWroteIsNone) {
  for (const char* text : {"", "x", "2 1 7 9 0 -1 3 0 0 ", "1 1 7 9 0 -1 3 0 99 key", "1 1 7",
                           "1 1 7 9 0 -1 3 0 -1 key"}) {
    EXPECT_FALSE(read_blocked(text)) << text;
  }
}

class BlockedKeys : public testing::Test {
 protected:
  // A process of its own, whose answers of the store may get lost.
  struct Sender {
    Sender(BlockedKeys& test, std::optional<Duration> hold,
           std::optional<AttemptTerms::InDoubt> claims = {})
        : store({.clock = test.clock_,
                 .random = test.random_,
                 .error = [this] { return away; },
                 .answer_lost = [this] { return answer_lost; }},
                test.store_),
          source(store, test.clock_, settings(hold, claims),
                 [](const Record& record, std::uint64_t) { return record.id; }) {}
    static StreamSourceSettings settings(std::optional<Duration> hold,
                                         std::optional<AttemptTerms::InDoubt> claims) {
      StreamSourceSettings settings = stream_of_world("p1");
      settings.hold = hold;
      if (claims) settings.claims = attempts_of_world(*claims);
      return settings;
    }
    Result<Hand> try_take(std::vector<Settlement> settled = {},
                          const std::vector<const Handout*>& begins = {}) {
      std::vector<Beginning> beginning;
      for (const Handout* each : begins) beginning.push_back({each->number, &each->record});
      return source.take(
          {.settled = settled, .beginning = beginning, .room = 10, .lease = Duration{10'000}});
    }
    std::vector<Handout> take(std::vector<Settlement> settled = {}) {
      return try_take(std::move(settled)).value().records;
    }
    Handout take_one(std::vector<Settlement> settled = {}) {
      auto records = take(std::move(settled));
      EXPECT_THAT(records, SizeIs(1));
      return records.empty() ? Handout{} : std::move(records.front());
    }
    bool away = false;
    bool answer_lost = false;
    WorldStore store;
    StreamSource source;
  };

  BlockedKeys() { run(CreateStream{"orders", {}}); }
  void run(const Op& op) {
    const Answer answer = store_.commit({.ops = {&op, 1}}).value();
    ASSERT_TRUE(holds(answer.verdicts.front())) << word_of(answer.verdicts.front());
  }
  void append(const std::string& id, const std::string& group) {
    Append append{.stream = "orders", .payload = id, .id = id};
    if (!group.empty()) append.group = group;
    run(append);
  }
  static Settlement dead(const Handout& handout) {
    return {handout.number, Kind::kDead, Duration{0}, "HTTP 422"};
  }
  static BlockTerms terms() { return {"orders", "erp", "erp.blocked"}; }
  [[nodiscard]] std::vector<BlockedRecord> listed() {
    return list_blocked(store_, terms(), 100).value();
  }
  bool decide(const BlockedRecord& record, BlockDecision decision) {
    return decide_blocked(store_, terms(), record, decision, "ann: checked").value();
  }
  [[nodiscard]] std::map<std::string, std::string> dead_letters() {
    std::map<std::string, std::string> all;
    const core::Stream* stream = store_.rules.state.find_stream("erp.dead");
    if (stream == nullptr) return all;
    for (Sequence at = stream->first; at <= stream->last; ++at.value) {
      const Record record = store_.record("erp.dead", at);
      all.emplace(record.id, record.lineage->reason);
    }
    return all;
  }
  [[nodiscard]] std::size_t registers() const { return store_.rules.state.registers.size(); }

  sim::SimClock clock_;
  sim::Random random_{1};
  RuleStore store_{clock_};
};

// Z19
TEST_F(BlockedKeys, LaterRecordsOfTheKeyWaitAndOthersGoOn) {
  append("a1", "k");
  append("a2", "k");
  Sender sender(*this, kForever);
  const Handout first = sender.take_one();
  EXPECT_THAT(sender.take({dead(first)}), IsEmpty());
  append("b1", "other");
  append("c1", "");
  EXPECT_THAT(sender.take(), SizeIs(2));
  EXPECT_THAT(dead_letters(), IsEmpty());
  ASSERT_THAT(listed(), SizeIs(1));
  const BlockedRecord blocked = listed().front();
  EXPECT_EQ(blocked.key, "k");
  EXPECT_EQ(blocked.receipt.sequence, Sequence{1});
  EXPECT_EQ(blocked.attempts, 1U);
  EXPECT_EQ(blocked.reason, "HTTP 422");
  EXPECT_EQ(blocked.until, Time::max());
}

// Whoever is handed the record when the lease of a day is over does not send it.
TEST_F(BlockedKeys, AKeyWaitsForWeeks) {
  append("a1", "k");
  append("a2", "k");
  {
    Sender dies(*this, kForever);
    dies.take({dead(dies.take_one())});
  }
  const Time since = listed().front().since;
  for (int day = 0; day < 20; ++day) {
    clock_.advance(kDay.count());
    Sender another(*this, kForever);
    EXPECT_THAT(another.take(), IsEmpty()) << day;
    EXPECT_THAT(another.take(), IsEmpty()) << day;
    ASSERT_THAT(listed(), SizeIs(1)) << day;
    EXPECT_EQ(listed().front().since, since);
  }
  ASSERT_TRUE(decide(listed().front(), BlockDecision::kPark));
  EXPECT_EQ(Sender(*this, kForever).take_one().record.id, "a2");
}

TEST_F(BlockedKeys, WhatIsSentAgainComesBeforeTheLaterOnes) {
  append("a1", "k");
  append("a2", "k");
  Sender sender(*this, kForever);
  const Handout first = sender.take_one();
  const Handout second = sender.take_one({{first.number, Kind::kRetry, Duration{0}, "HTTP 503"}});
  EXPECT_EQ(second.record.attempt, 2U);
  sender.take({dead(second)});
  EXPECT_EQ(listed().front().attempts, 2U);
  ASSERT_TRUE(decide(listed().front(), BlockDecision::kRetry));
  EXPECT_THAT(listed(), IsEmpty());
  const Handout again = sender.take_one();
  EXPECT_EQ(again.record.id, "a1");
  EXPECT_EQ(again.record.attempt, 1U) << "its attempts start over";
  EXPECT_EQ(again.record.replay, 1U);
  sender.take({dead(again)});
  EXPECT_EQ(listed().front().retries, 1U);
  ASSERT_TRUE(decide(listed().front(), BlockDecision::kRetry));
  const Handout third = sender.take_one();
  EXPECT_EQ(third.record.replay, 2U);
  EXPECT_EQ(sender.take_one({{third.number, Kind::kDelivered}}).record.id, "a2");
}

TEST_F(BlockedKeys, WhatIsParkedIsADeadLetterAndWhatIsDroppedIsGone) {
  for (const char* id : {"a1", "a2", "a3"}) append(id, "k");
  Sender sender(*this, kForever);
  sender.take({dead(sender.take_one())});
  ASSERT_TRUE(decide(listed().front(), BlockDecision::kPark));
  const Handout second = sender.take_one();
  EXPECT_EQ(second.record.id, "a2");
  EXPECT_THAT(dead_letters(), ElementsAre(Pair("a1", "ann: checked")));
  sender.take({dead(second)});
  ASSERT_TRUE(decide(listed().front(), BlockDecision::kDrop));
  EXPECT_EQ(sender.take_one().record.id, "a3");
  EXPECT_THAT(dead_letters(), SizeIs(1));
  EXPECT_EQ(registers(), 0U);
}

// Z20
TEST_F(BlockedKeys, OfSeveralDecisionsOneCounts) {
  append("a1", "k");
  Sender sender(*this, kForever);
  sender.take({dead(sender.take_one())});
  const BlockedRecord seen = listed().front();
  EXPECT_TRUE(decide(seen, BlockDecision::kRetry));
  EXPECT_FALSE(decide(seen, BlockDecision::kDrop));
  EXPECT_FALSE(decide(seen, BlockDecision::kRetry));
  sender.take({dead(sender.take_one())});
  EXPECT_FALSE(decide(seen, BlockDecision::kPark)) << "it blocks again, which nobody has seen";
  EXPECT_TRUE(decide(listed().front(), BlockDecision::kPark));
  EXPECT_THAT(listed(), IsEmpty());
  EXPECT_THAT(dead_letters(), SizeIs(1));
}

TEST_F(BlockedKeys, AfterSomeTimeItIsADeadLetterByItself) {
  append("a1", "k");
  append("a2", "k");
  Sender sender(*this, kDay * 2);
  sender.take({dead(sender.take_one())});
  const BlockedRecord blocked = listed().front();
  EXPECT_EQ(blocked.until, blocked.since + kDay * 2);
  clock_.advance(kDay.count());
  EXPECT_THAT(sender.take(), IsEmpty());
  clock_.advance(kDay.count() - 1'000);
  EXPECT_THAT(sender.take(), IsEmpty());
  clock_.advance(1'000);
  EXPECT_THAT(sender.take(), IsEmpty()) << "it is looked at";
  EXPECT_EQ(sender.take_one().record.id, "a2");
  EXPECT_THAT(dead_letters(), ElementsAre(Pair("a1", "HTTP 422")));
  EXPECT_THAT(listed(), IsEmpty());
}

TEST_F(BlockedKeys, AWorkflowThatParksNowHoldsNothing) {
  append("a1", "k");
  append("a2", "k");
  {
    Sender before(*this, kForever);
    before.take({dead(before.take_one())});
  }
  Sender parks(*this, std::nullopt);
  clock_.advance(kDay.count());
  EXPECT_THAT(parks.take(), IsEmpty());
  EXPECT_EQ(parks.take_one().record.id, "a2");
  EXPECT_THAT(dead_letters(), SizeIs(1));
  EXPECT_THAT(listed(), IsEmpty());
}

TEST_F(BlockedKeys, WithoutAKeyItIsADeadLetterAtOnce) {
  append("a1", "");
  Sender sender(*this, kForever);
  sender.take({dead(sender.take_one())});
  EXPECT_THAT(dead_letters(), SizeIs(1));
  EXPECT_THAT(listed(), IsEmpty());
}

TEST_F(BlockedKeys, ALostAnswerLeavesTheKeyBlockedOnce) {
  append("a1", "k");
  append("a2", "k");
  Sender sender(*this, kForever);
  const Handout first = sender.take_one();
  sender.answer_lost = true;
  EXPECT_FALSE(sender.try_take({dead(first)}));
  sender.answer_lost = false;
  EXPECT_THAT(listed(), SizeIs(1));
  clock_.advance(100'000);
  EXPECT_THAT(sender.take(), IsEmpty());
  EXPECT_TRUE(decide(listed().front(), BlockDecision::kDrop));
  EXPECT_EQ(sender.take_one().record.id, "a2");
}

// What a sender says whose lease is over must not leave a register behind.
TEST_F(BlockedKeys, WhatSomebodyElseHasIsNotBlocked) {
  append("a1", "k");
  Sender slow(*this, kForever);
  const Handout held = slow.take_one();
  clock_.advance(10'001);
  Sender other(*this, kForever);
  const Handout theirs = other.take_one();
  EXPECT_THAT(slow.take({dead(held)}), IsEmpty());
  EXPECT_THAT(listed(), IsEmpty());
  other.take({{theirs.number, Kind::kDelivered}});
  EXPECT_EQ(registers(), 0U);
}

TEST_F(BlockedKeys, SeveralBlockInOneTakeAlthoughOneIsLost) {
  append("a1", "k");
  append("b1", "m");
  Sender slow(*this, kForever);
  const auto held = slow.take();
  ASSERT_THAT(held, SizeIs(2));
  run(Ack{"orders", "erp", {Sequence{1}, Token{1}}});
  slow.take({dead(held[0]), dead(held[1])});
  ASSERT_THAT(listed(), SizeIs(1));
  EXPECT_EQ(listed().front().key, "m");
}

// A retry of a person is a replay, so it is made although the workflow makes one attempt.
TEST_F(BlockedKeys, APersonMayRepeatTheOneAttempt) {
  append("a1", "k");
  Sender sender(*this, kForever, AttemptTerms::InDoubt::kGiveUp);
  const Handout first = sender.take_one();
  ASSERT_TRUE(sender.try_take({}, {&first}));
  sender.take({dead(first)});
  ASSERT_THAT(listed(), SizeIs(1));
  ASSERT_TRUE(decide(listed().front(), BlockDecision::kRetry));
  const Handout second = sender.take_one();
  EXPECT_THAT(sender.try_take({}, {&second}).value().lost, IsEmpty());
  sender.take({{second.number, Kind::kDelivered}});
  EXPECT_THAT(listed(), IsEmpty());
  EXPECT_THAT(dead_letters(), IsEmpty());
}

TEST_F(BlockedKeys, AnUnknownOutcomeBlocksUntilItIsResolved) {
  append("a1", "k");
  Sender sender(*this, kForever, AttemptTerms::InDoubt::kPark);
  const Handout first = sender.take_one();
  ASSERT_TRUE(sender.try_take({}, {&first}));
  sender.take({{first.number, Kind::kUnknown, Duration{0}, "reset", true}});
  EXPECT_EQ(listed().front().reason, "unknown outcome of erp.deliveries/a1: reset");
  ASSERT_TRUE(decide(listed().front(), BlockDecision::kRetry));
  const Handout again = sender.take_one();
  EXPECT_THAT(sender.try_take({}, {&again}).value().lost, SizeIs(1)) << "nobody has resolved it";
  sender.take();
  ASSERT_THAT(listed(), SizeIs(1));
  run(Resolve{.scope = "erp.deliveries",
              .key = "a1",
              .resolution = Resolution::kNotApplied,
              .actor = "ann",
              .reason = "asked"});
  ASSERT_TRUE(decide(listed().front(), BlockDecision::kRetry));
  const Handout third = sender.take_one();
  EXPECT_THAT(sender.try_take({}, {&third}).value().lost, IsEmpty());
}

TEST_F(BlockedKeys, AStreamThatIsNotThereBlocksNobody) {
  EXPECT_THAT(list_blocked(store_, {"none", "erp", "erp.blocked"}, 10).value(), IsEmpty());
}

}  // namespace
}  // namespace hapax::delivery
