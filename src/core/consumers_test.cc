// The rules of consumers, one by one. Random histories are in consumers_model_test.cc.
#include "core/consumers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/consumers_harness.h"

namespace hapax::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Consumers : public testing::Test {
 protected:
  void append(int count, std::string_view group = "") {
    for (int i = 0; i < count; ++i) store.append(group);
  }
  std::vector<std::uint64_t> received(std::uint32_t max) {
    return numbers(store.receive("c", max));
  }
  // Receives one record and lets its lease run out, so often.
  void waste_attempts(int count) {
    for (int i = 0; i < count; ++i) {
      ASSERT_EQ(store.receive("c").size(), 1U);
      store.pass(Duration{1'000});
    }
  }

  ConsumersHarness store;
};

// --- making and removing -----------------------------------------------------------------------

TEST_F(Consumers, MakingTheSameOneAgainIsFine) {
  EXPECT_TRUE(is_done(store.create("c", {.attempts_max = 3})));
  const std::size_t facts = store.facts();
  EXPECT_TRUE(is_done(store.create("c", {.attempts_max = 3})));
  EXPECT_EQ(store.facts(), facts);
  EXPECT_EQ(refusal_of(store.create("c", {.attempts_max = 4})), Errc::kAlreadyExists);
}

TEST_F(Consumers, AStreamIsNotItsOwnDeadLetters) {
  EXPECT_EQ(refusal_of(store.create("c", {.dead_letters = "orders"})), Errc::kInvalidArgument);
}

TEST_F(Consumers, ADeadLetterStreamWhoseNameWouldBeTooLongIsRefusedAtOnce) {
  const std::string name(limits::kNameBytesMax - 2, 's');
  store.emit(StreamMade{StreamUid{2}, name, StreamSettings{}});
  EXPECT_EQ(refusal_of(store.create("c", {}, name)), Errc::kLimitExceeded);
  EXPECT_TRUE(is_done(store.create("c", {.dead_letters = "short"}, name)));
}

TEST_F(Consumers, AStreamHasALimitedNumberOfThem) {
  for (std::size_t i = 0; i < limits::kConsumersPerStreamMax; ++i) {
    ASSERT_TRUE(is_done(store.create("c" + std::to_string(i), {})));
  }
  EXPECT_EQ(refusal_of(store.create("one more", {})), Errc::kLimitExceeded);
}

TEST_F(Consumers, ReceivingMakesOneThatIsNotThereYet) {
  append(2);
  EXPECT_THAT(received(5), ElementsAre(1, 2));
  EXPECT_TRUE(is_done(store.create("c", {})));
  const Verdict nowhere = store.run(Receive{.stream = "nowhere", .consumer = "c"});
  EXPECT_EQ(refusal_of(nowhere), Errc::kNotFound);
}

TEST_F(Consumers, AllOperationsNeedStreamAndConsumer) {
  EXPECT_EQ(refusal_of(store.ack("nobody", {})), Errc::kNotFound);
  EXPECT_EQ(refusal_of(store.nack("nobody", {})), Errc::kNotFound);
  EXPECT_EQ(refusal_of(store.extend("nobody", {}, Duration{1})), Errc::kNotFound);
  EXPECT_EQ(refusal_of(store.run(Seek{"orders", "nobody", Sequence{1}})), Errc::kNotFound);
  EXPECT_EQ(refusal_of(store.run(DeleteConsumer{"orders", "nobody"})), Errc::kNotFound);
  EXPECT_EQ(refusal_of(store.ack("c", {}, "nowhere")), Errc::kNotFound);
}

TEST_F(Consumers, ADeletedOneStartsOverWhenItIsMadeAgain) {
  append(2);
  const Delivery first = store.receive("c").front();
  EXPECT_TRUE(is_done(store.run(DeleteConsumer{"orders", "c"})));
  EXPECT_EQ(refusal_of(store.ack("c", receipt_of(first))), Errc::kNotFound);
  EXPECT_THAT(received(5), ElementsAre(1, 2));
}

TEST_F(Consumers, StartWhereTheyWereToldOrWhereTheStreamBegins) {
  append(9);
  ASSERT_TRUE(is_done(store.create("c", {.start = Sequence{4}})));
  EXPECT_EQ(store.consumer("c").floor(), Sequence{3});
  EXPECT_THAT(received(2), ElementsAre(4, 5));
  store.run(Trim{"orders", Sequence{8}});
  ASSERT_TRUE(is_done(store.create("late", {.start = Sequence{2}})));
  EXPECT_THAT(numbers(store.receive("late", 9)), ElementsAre(8, 9));
}

TEST_F(Consumers, NeitherStartNorSeekBeyondTheEnd) {
  append(3);
  EXPECT_EQ(refusal_of(store.create("c", {.start = Sequence{5}})), Errc::kInvalidArgument);
  ASSERT_TRUE(is_done(store.create("c", {.start = Sequence{4}})));
  EXPECT_EQ(refusal_of(store.run(Seek{"orders", "c", Sequence{5}})), Errc::kInvalidArgument);
  EXPECT_TRUE(is_done(store.run(Seek{"orders", "c", Sequence{4}})));
}

// --- receiving ---------------------------------------------------------------------------------

TEST_F(Consumers, NothingToHandOutIsNoFact) {
  append(1);
  EXPECT_THAT(received(5), ElementsAre(1));
  const std::size_t facts = store.facts();
  EXPECT_THAT(received(5), IsEmpty());
  EXPECT_EQ(store.facts(), facts);
}

TEST_F(Consumers, EachOneIsHandedEveryRecord) {
  append(3);
  EXPECT_THAT(numbers(store.receive("a", 2)), ElementsAre(1, 2));
  EXPECT_THAT(numbers(store.receive("b", 9)), ElementsAre(1, 2, 3));
  EXPECT_THAT(numbers(store.receive("a", 9)), ElementsAre(3));
}

// C3.
TEST_F(Consumers, ALeaseThatRanOutIsHandedOutAgainWithTheNextAttempt) {
  append(3);
  const auto first = store.receive("c", 2, Duration{1'000});
  EXPECT_EQ(first[1].attempt, 1U);
  EXPECT_EQ(first[1].lease_until, store.now + Duration{1'000});
  store.pass(Duration{999});
  EXPECT_THAT(received(1), ElementsAre(3));
  store.pass(Duration{1});
  const auto again = store.receive("c", 9);
  EXPECT_THAT(numbers(again), ElementsAre(1, 2));
  EXPECT_EQ(again[0].attempt, 2U);
  EXPECT_GT(again[0].token, first[1].token);
}

TEST_F(Consumers, DueRecordsComeBeforeNewOnes) {
  append(4);
  EXPECT_THAT(received(2), ElementsAre(1, 2));
  store.pass(Duration{1'000});
  EXPECT_THAT(received(3), ElementsAre(1, 2, 3));
}

TEST_F(Consumers, NoMoreAreInFlightThanAllowed) {
  append(5);
  ASSERT_TRUE(is_done(store.create("c", {.in_flight_max = 2})));
  const auto first = store.receive("c", 5);
  EXPECT_THAT(numbers(first), ElementsAre(1, 2));
  EXPECT_THAT(received(5), IsEmpty());
  store.nack("c", receipt_of(first[0]), Duration{10});
  EXPECT_THAT(received(5), ElementsAre(3));
  store.pass(Duration{10});
  EXPECT_THAT(received(5), IsEmpty());  // 1 waits: 2 and 3 fill the room.
  store.pass(Duration{990});
  EXPECT_THAT(received(1), ElementsAre(2));  // A lease that ran out had its place already.
}

// C8
TEST_F(Consumers, OneWhoseHolderDiedIsReachedHoweverManyWaitForRoom) {
  ASSERT_TRUE(is_done(store.create("c", {.attempts_max = 2, .in_flight_max = 1})));
  append(1'200);
  for (int i = 0; i < 1'100; ++i) {
    const auto got = store.receive("c", 1);
    ASSERT_EQ(got.size(), 1U);
    store.nack("c", receipt_of(got[0]), Duration{500});
  }
  EXPECT_THAT(received(1), ElementsAre(1'101));
  store.pass(Duration{1'000});
  EXPECT_THAT(received(1), ElementsAre(1'101));
  store.pass(Duration{1'000});
  EXPECT_THAT(received(1), ElementsAre(1));
  EXPECT_EQ(store.consumer("c").dead_lettered, 1U);
}

TEST_F(Consumers, TrimmedRecordsAreSkippedAndCountAsAcked) {
  append(6);
  const auto first = store.receive("c", 2);
  store.run(Trim{"orders", Sequence{5}});
  EXPECT_THAT(received(9), ElementsAre(5, 6));
  store.pass(Duration{1'000});
  EXPECT_THAT(received(9), ElementsAre(5, 6));
  EXPECT_EQ(store.consumer("c").floor(), Sequence{4});
  EXPECT_TRUE(is_done(store.ack("c", receipt_of(first[0]))));  // Its holder could not know.
}

TEST_F(Consumers, AGroupGoesOnBehindManyTrimmedRecords) {
  append(50, "g");
  EXPECT_THAT(received(9), ElementsAre(1));
  store.run(Trim{"orders", Sequence{50}});
  EXPECT_THAT(received(9), IsEmpty());
  store.pass(Duration{1'000});
  EXPECT_THAT(received(9), ElementsAre(50));
  EXPECT_EQ(store.consumer("c").floor(), Sequence{49});
}

// --- groups ------------------------------------------------------------------------------------

// C1.
TEST_F(Consumers, AGroupHasOneRecordInFlightAndOthersFlow) {
  store.append("a");
  store.append("a");
  store.append("b");
  store.append("");
  store.append("b");
  const auto first = store.receive("c", 9);
  EXPECT_THAT(numbers(first), ElementsAre(1, 3, 4));
  EXPECT_TRUE(is_done(store.ack("c", receipt_of(first[0]))));
  EXPECT_THAT(received(9), ElementsAre(2));
  EXPECT_TRUE(is_done(store.ack("c", receipt_of(first[1]))));
  EXPECT_THAT(received(9), ElementsAre(5));
}

TEST_F(Consumers, TheOrderOfAGroupIsKeptOverRetries) {
  append(3, "g");
  for (std::uint64_t head = 1; head <= 3; ++head) {
    const auto first = store.receive("c", 9);
    ASSERT_THAT(numbers(first), ElementsAre(head));
    EXPECT_TRUE(is_done(store.nack("c", receipt_of(first[0]), Duration{500})));
    EXPECT_THAT(received(9), IsEmpty());
    store.pass(Duration{500});
    const auto second = store.receive("c", 9);
    ASSERT_THAT(numbers(second), ElementsAre(head));
    EXPECT_EQ(second[0].attempt, 2U);
    EXPECT_TRUE(is_done(store.ack("c", receipt_of(second[0]))));
  }
}

TEST_F(Consumers, ABusyGroupDoesNotStarveALeaseThatRanOut) {
  append(20, "g");
  store.append("other");
  auto held = store.receive("c", 2, Duration{10});
  ASSERT_THAT(numbers(held), ElementsAre(1, 21));
  store.ack("c", receipt_of(held[0]));
  for (int round = 0;; ++round) {
    ASSERT_LT(round, 15) << "record 21 is never reached";
    store.pass(Duration{1});
    held = store.receive("c", 1, Duration{1'000});
    ASSERT_EQ(held.size(), 1U);
    if (held[0].record.sequence == Sequence{21}) break;
    store.ack("c", receipt_of(held[0]));
  }
}

// --- receipts ----------------------------------------------------------------------------------

TEST_F(Consumers, AckingTwiceWithTheValidReceiptIsFine) {
  append(1);
  const Delivery held = store.receive("c").front();
  EXPECT_TRUE(is_done(store.ack("c", receipt_of(held))));
  const std::size_t facts = store.facts();
  EXPECT_TRUE(is_done(store.ack("c", receipt_of(held))));
  EXPECT_EQ(store.facts(), facts);
  EXPECT_EQ(store.nack("c", receipt_of(held)), Verdict{(Stale{"", true})});
  EXPECT_EQ(store.extend("c", receipt_of(held), Duration{1}), Verdict{(Stale{"", true})});
}

// C2.
TEST_F(Consumers, AStaleReceiptIsToldWhoHoldsTheRecordAndChangesNothing) {
  append(1);
  const Receipt old = receipt_of(store.receive("c", 1, Duration{10}, "slow").front());
  store.pass(Duration{10});
  const Receipt latest = receipt_of(store.receive("c", 1, Duration{10}, "quick").front());
  const std::string before = dump_consumers(store.state);
  const Verdict told{(Stale{"quick", false})};
  EXPECT_EQ(store.ack("c", old), told);
  EXPECT_EQ(store.nack("c", old), told);
  EXPECT_EQ(store.extend("c", old, Duration{1}), told);
  EXPECT_EQ(dump_consumers(store.state), before);
  EXPECT_EQ(store.state.counters.fenced, 3U);
  EXPECT_TRUE(is_done(store.ack("c", latest)));
  EXPECT_EQ(store.ack("c", old), Verdict{(Stale{"", true})});
}

TEST_F(Consumers, AHolderWhoseLeaseRanOutMayStillSpeakUntilAnotherIsHandedTheRecord) {
  append(3);
  const auto held = store.receive("c", 3, Duration{10});
  store.pass(Duration{50});
  EXPECT_TRUE(is_done(store.ack("c", receipt_of(held[0]))));
  EXPECT_TRUE(is_done(store.nack("c", receipt_of(held[1]), Duration{100})));
  EXPECT_EQ(store.extend("c", receipt_of(held[2]), Duration{100}),
            Verdict{Renewed{store.now + Duration{100}}});
  EXPECT_THAT(received(9), IsEmpty());
}

TEST_F(Consumers, ANackGivesTheReceiptBack) {
  append(1);
  const Receipt held = receipt_of(store.receive("c").front());
  EXPECT_TRUE(is_done(store.nack("c", held, Duration{10})));
  EXPECT_EQ(store.ack("c", held), Verdict{Stale{}});
  EXPECT_EQ(store.nack("c", held), Verdict{Stale{}});
}

TEST_F(Consumers, AReceiptNobodyWasGivenIsRefused) {
  append(2, "g");
  const Receipt held = receipt_of(store.receive("c", 1).front());
  const Verdict parked = store.ack("c", {Sequence{2}, held.token});
  EXPECT_EQ(refusal_of(parked), Errc::kInvalidArgument);
  EXPECT_THAT(refusal_text(parked), HasSubstr("record 2 of stream 'orders' was never handed out"));
  EXPECT_EQ(refusal_of(store.ack("c", {Sequence{1}, Token{0}})), Errc::kInvalidArgument);
  EXPECT_EQ(refusal_of(store.ack("c", {Sequence{1}, Token{99}})), Errc::kInvalidArgument);
  EXPECT_EQ(refusal_of(store.ack("c", {Sequence{0}, held.token})), Errc::kNotFound);
  EXPECT_EQ(refusal_of(store.ack("c", {Sequence{3}, held.token})), Errc::kNotFound);
  EXPECT_TRUE(is_done(store.ack("c", held)));
  EXPECT_EQ(refusal_of(store.ack("c", {Sequence{2}, held.token})), Errc::kInvalidArgument);
}

TEST_F(Consumers, TheTokensOfManyAcksAreRememberedInOneSpan) {
  append(2'000);
  const auto held = store.receive("c", 2'000);
  for (const Delivery& delivery : held) store.ack("c", receipt_of(delivery));
  EXPECT_EQ(store.consumer("c").acked_tokens.size(), 1U);
  for (const Delivery& delivery : held) {
    ASSERT_TRUE(is_done(store.ack("c", receipt_of(delivery))));
  }
}

TEST_F(Consumers, TheOldestTokensAreForgottenFirst) {
  const std::size_t records = 2 * kAckedTokenSpansMax + 4;
  append(static_cast<int>(records));
  ASSERT_TRUE(is_done(store.create("c", {.in_flight_max = limits::kInFlightPerConsumerMax})));
  const auto held = store.receive("c", static_cast<std::uint32_t>(records));
  ASSERT_EQ(held.size(), records);
  // Every second one: no two neighbours.
  for (std::size_t i = 0; i + 2 < records; i += 2) store.ack("c", receipt_of(held[i]));
  const std::string before = dump_consumers(store.state);
  const ConsumersHarness::Mark mark = store.mark();
  store.ack("c", receipt_of(held[records - 2]));
  store.roll_back(mark);
  EXPECT_EQ(dump_consumers(store.state), before);
  store.ack("c", receipt_of(held[records - 2]));
  EXPECT_EQ(store.consumer("c").acked_tokens.size(), kAckedTokenSpansMax);
  EXPECT_EQ(store.ack("c", receipt_of(held[0])), Verdict{(Stale{"", true})});
  EXPECT_TRUE(is_done(store.ack("c", receipt_of(held[records - 2]))));
}

// --- seeking -----------------------------------------------------------------------------------

TEST_F(Consumers, SeekingBackHandsOutAgainAndEndsAllReceipts) {
  append(4, "g");
  const auto first = store.receive("c", 1);
  store.ack("c", receipt_of(first[0]));
  const auto second = store.receive("c", 1);
  EXPECT_TRUE(is_done(store.run(Seek{"orders", "c", Sequence{1}})));
  EXPECT_EQ(store.ack("c", receipt_of(second[0])), Verdict{Stale{}});
  const auto again = store.receive("c", 9);
  EXPECT_THAT(numbers(again), ElementsAre(1));
  EXPECT_EQ(again[0].attempt, 1U);
  EXPECT_GT(again[0].token, second[0].token);
  EXPECT_EQ(store.ack("c", receipt_of(first[0])), Verdict{(Stale{"w1", false})});
}

TEST_F(Consumers, SeekingForwardCountsWhatIsBelowAsAcked) {
  append(4);
  const auto held = store.receive("c", 1);
  EXPECT_TRUE(is_done(store.run(Seek{"orders", "c", Sequence{4}})));
  EXPECT_EQ(store.consumer("c").floor(), Sequence{3});
  EXPECT_EQ(store.ack("c", receipt_of(held[0])), Verdict{(Stale{"", true})});
  EXPECT_THAT(received(9), ElementsAre(4));
  EXPECT_EQ(refusal_of(store.run(Seek{"orders", "c", Sequence{6}})), Errc::kInvalidArgument);
  EXPECT_TRUE(is_done(store.run(Seek{"orders", "c", Sequence{5}})));
  EXPECT_THAT(received(9), IsEmpty());
}

TEST_F(Consumers, ARecordBehindManyOfABusyGroupIsFoundAtOnce) {
  store.append("busy");
  ASSERT_THAT(received(1), ElementsAre(1));
  append(5'000, "busy");
  store.append("free");
  store.append("free too");
  EXPECT_THAT(received(1), ElementsAre(5'002));
  // What was parked is not looked at again.
  EXPECT_EQ(store.consumer("c").next, Sequence{5'003});
  EXPECT_THAT(received(1), ElementsAre(5'003));
}

// The last attempts of 3,000 records are over, and behind them one waits that was handed out once.
class BehindMany : public Consumers {
 protected:
  void SetUp() override {
    ASSERT_TRUE(is_done(store.create("c", {.attempts_max = 2})));
    append(3'000);
    for (const Delivery& held : store.receive("c", 3'000)) store.nack("c", receipt_of(held));
    append(1);
    const auto held = store.receive("c", 9'000);
    ASSERT_EQ(held.size(), 3'001U);
    ASSERT_TRUE(is_done(store.nack("c", receipt_of(held[3'000]), Duration{1'100})));
    store.pass(Duration{1'200});
  }
};

TEST_F(BehindMany, ThatAreGoneARecordIsFoundAtOnce) {
  store.run(Trim{"orders", Sequence{3'001}});
  EXPECT_THAT(received(1), ElementsAre(3'001));
}

TEST_F(BehindMany, ThatWaitToBeGivenUpARecordIsFoundAtOnce) {
  EXPECT_THAT(received(1), ElementsAre(3'001));
  EXPECT_EQ(store.stream("orders.dead").last, Sequence{1'000});
}

// --- the last attempt --------------------------------------------------------------------------

// C6.
TEST_F(Consumers, TheLastLeaseThatRunsOutMakesADeadLetterAndTheGroupGoesOn) {
  ASSERT_TRUE(is_done(store.create("c", {.attempts_max = 2})));
  store.append("g", "poison");
  store.append("g", "fine");
  const Time first = store.now;
  waste_attempts(2);
  EXPECT_THAT(received(9), ElementsAre(2));
  const RecordAppended dead = store.record(Sequence{1}, "orders.dead");
  EXPECT_EQ(dead.payload, "poison");
  const Time second = first + Duration{1'000};
  const Time third = second + Duration{1'000};
  const auto ran_out = AttemptEnding::kLeaseRanOut;
  EXPECT_EQ(*dead.lineage, (Lineage{"orders",
                                    Sequence{1},
                                    "c",
                                    "lease ran out",
                                    2,
                                    first,
                                    second,
                                    0,
                                    {{1, 0, first, second, ran_out, "w1", ""},
                                     {2, 0, second, third, ran_out, "w1", ""}}}));
  EXPECT_EQ(consumer_stats(store.stream(), store.consumer("c")).dead_lettered, 1U);
  EXPECT_EQ(store.consumer("c").floor(), Sequence{1});
}

TEST_F(Consumers, ANackOfTheLastAttemptMakesADeadLetterAtOnce) {
  ASSERT_TRUE(is_done(store.create("c", {.attempts_max = 1, .dead_letters = "lost"})));
  append(1);
  const Receipt held = receipt_of(store.receive("c").front());
  EXPECT_TRUE(is_done(store.nack("c", held, Duration{0}, "no such customer")));
  EXPECT_EQ(store.record(Sequence{1}, "lost").lineage->reason, "no such customer");
  // It went another way: the receipt is not "acked before".
  EXPECT_EQ(store.ack("c", held), Verdict{(Stale{"", true})});
  store.run(Seek{"orders", "c", Sequence{1}});
  EXPECT_EQ(consumer_stats(store.stream(), store.consumer("c")).dead_lettered, 1U);
}

TEST_F(Consumers, ANackMaySayThatNoAttemptFollows) {
  ASSERT_TRUE(is_done(store.create("c", {.attempts_max = 10})));
  append(1);
  const Receipt held = receipt_of(store.receive("c").front());
  EXPECT_TRUE(is_done(store.nack("c", held, Duration{0}, "no such customer", "orders", true)));
  EXPECT_EQ(store.record(Sequence{1}, "orders.dead").lineage->attempts, 1U);
  EXPECT_TRUE(store.receive("c").empty());
  EXPECT_TRUE(holds(store.redrive(Sequence{1})));
  EXPECT_EQ(store.receive("c").front().attempt, 1U);
}

TEST_F(Consumers, ALateAckOnTheLastAttemptIsStillInTime) {
  ASSERT_TRUE(is_done(store.create("c", {.attempts_max = 1})));
  append(1);
  const Receipt held = receipt_of(store.receive("c").front());
  store.pass(Duration{5'000});
  EXPECT_TRUE(is_done(store.ack("c", held)));
  EXPECT_EQ(store.state.find_stream("orders.dead"), nullptr);
}

TEST_F(Consumers, ABlockedRecordHoldsItsGroupAndNoOther) {
  ASSERT_TRUE(is_done(store.create("c", {.attempts_max = 1, .last_attempt = LastAttempt::kBlock})));
  store.append("bad");
  store.append("bad");
  store.append("good");
  const auto held = store.receive("c", 9);
  ASSERT_THAT(numbers(held), ElementsAre(1, 3));
  EXPECT_TRUE(is_done(store.nack("c", receipt_of(held[0]), Duration{0}, "ask a person")));
  EXPECT_EQ(store.consumer("c").pending.at(Sequence{1}).past->back().reason, "ask a person");
  store.pass(Duration{100'000});
  EXPECT_THAT(received(9), IsEmpty());  // 3 is blocked as well: its lease ran out.
  store.append("good");
  store.append("new");
  EXPECT_THAT(received(9), ElementsAre(5));
  EXPECT_EQ(store.nack("c", receipt_of(held[0])), Verdict{Stale{}});
  EXPECT_TRUE(is_done(store.ack("c", receipt_of(held[0]))));  // Somebody settled it.
  EXPECT_THAT(received(9), ElementsAre(2));
}

TEST_F(Consumers, ADiskErrorRefusesTheReceiveAndChangesNothing) {
  ASSERT_TRUE(is_done(store.create("c", {.attempts_max = 1})));
  append(3);
  const auto held = store.receive("c", 2);
  store.pass(Duration{1'000});
  const std::string before = dump_consumers(store.state);
  store.disk_fails = true;
  EXPECT_EQ(refusal_of(store.run(Receive{"orders", "c", 9})), Errc::kIo);
  EXPECT_EQ(refusal_of(store.nack("c", receipt_of(held[0]))), Errc::kIo);
  EXPECT_EQ(dump_consumers(store.state), before);
  store.disk_fails = false;
  EXPECT_THAT(received(9), ElementsAre(3));
  EXPECT_EQ(store.stream("orders.dead").last, Sequence{2});
}

TEST_F(Consumers, ATrimmedRecordMakesNoDeadLetter) {
  ASSERT_TRUE(is_done(store.create("c", {.attempts_max = 1})));
  append(3);
  const auto held = store.receive("c", 2);
  store.run(Trim{"orders", Sequence{3}});
  EXPECT_TRUE(is_done(store.nack("c", receipt_of(held[0]))));
  store.pass(Duration{1'000});
  EXPECT_THAT(received(9), ElementsAre(3));
  EXPECT_EQ(store.state.find_stream("orders.dead"), nullptr);
  EXPECT_EQ(store.consumer("c").floor(), Sequence{2});
}

// --- what others ask ---------------------------------------------------------------------------

TEST_F(Consumers, AckedByAllIsWhatTheSlowestOneAcked) {
  EXPECT_EQ(acked_by_all(store.state, store.stream()), Sequence{0});
  append(6);
  for (const Delivery& held : store.receive("quick", 4)) store.ack("quick", receipt_of(held));
  EXPECT_EQ(acked_by_all(store.state, store.stream()), Sequence{4});
  const auto held = store.receive("slow", 3);
  EXPECT_EQ(acked_by_all(store.state, store.stream()), Sequence{0});
  store.ack("slow", receipt_of(held[2]));
  store.ack("slow", receipt_of(held[0]));
  EXPECT_EQ(acked_by_all(store.state, store.stream()), Sequence{1});
  store.run(Trim{"orders", Sequence{3}});  // Takes record 2, which `slow` still holds.
  EXPECT_EQ(acked_by_all(store.state, store.stream()), Sequence{3});
}

TEST_F(Consumers, StatisticsTellInFlightFromWaiting) {
  append(3, "g");
  append(2);
  const auto held = store.receive("c", 9);
  ASSERT_THAT(numbers(held), ElementsAre(1, 4, 5));
  store.nack("c", receipt_of(held[1]), Duration{10});
  const ConsumerStats stats = consumer_stats(store.stream(), store.consumer("c"));
  EXPECT_EQ(stats.consumer, "c");
  EXPECT_EQ(stats.in_flight, 2U);
  EXPECT_EQ(stats.waiting, 3U);
  EXPECT_EQ(stats.next, Sequence{6});
  EXPECT_EQ(stats.floor, Sequence{0});
}

}  // namespace
}  // namespace hapax::core
