// Redrive: to whom a dead letter goes back, and how often.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/consumers_harness.h"
#include "core/state_codec.h"

namespace hapax::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class DeadLetters : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(is_done(store.create("c", {.attempts_max = 1}))); }
  void kill(std::uint32_t count) {
    for (const Delivery& held : store.receive("c", count)) {
      ASSERT_TRUE(is_done(store.nack("c", receipt_of(held), Duration{0}, "bad")));
    }
  }
  void append(int count) {
    for (int i = 0; i < count; ++i) store.append();
  }
  std::vector<std::uint64_t> received(std::string_view consumer) {
    return numbers(store.receive(consumer, 9, Duration{10}));
  }
  void ack_all(std::string_view consumer) {
    for (const Delivery& held : store.receive(consumer, 9)) store.ack(consumer, receipt_of(held));
  }
  [[nodiscard]] Sequence floor_of(std::string_view consumer) {
    return consumer_stats(store.stream(), store.consumer(consumer)).floor;
  }

  ConsumersHarness store;
};

TEST_F(DeadLetters, GoBackToTheirSourceWithTheirLineage) {
  store.append("g", "poison");
  kill(1);
  EXPECT_EQ(store.redrive(Sequence{1}), Verdict{Appended{Sequence{2}}});
  const RecordAppended back = store.record(Sequence{2});
  EXPECT_EQ(back.payload, "poison");
  EXPECT_EQ(back.group, "g");
  EXPECT_EQ(back.lineage->consumer, "c");
  EXPECT_EQ(back.lineage->to, RedriveTo::kConsumer);
  EXPECT_EQ(back.lineage->sequence, Sequence{1});
  EXPECT_EQ(back.lineage->redrives, 1U);
  const Verdict again = store.redrive(Sequence{1});
  EXPECT_EQ(refusal_of(again), Errc::kNotFound);
  EXPECT_THAT(refusal_text(again), HasSubstr("redriven or trimmed"));
  EXPECT_EQ(refusal_of(store.redrive(Sequence{2})), Errc::kNotFound);

  kill(1);
  const Lineage twice = *store.record(Sequence{2}, "orders.dead").lineage;
  EXPECT_EQ(twice.sequence, Sequence{1});  // The first one of all.
  EXPECT_EQ(twice.redrives, 1U);
  store.redrive(Sequence{2});
  EXPECT_EQ(store.record(Sequence{3}).lineage->redrives, 2U);
}

// C10: the letter of a deleted stream names a sequence that its successor has, too.
TEST_F(DeadLetters, OfAStreamAndOfItsSuccessorAreTwoFailures) {
  store.append("", "old");
  kill(1);
  store.run(DeleteStream{"orders"});
  store.emit(StreamMade{StreamUid{3}, "orders", StreamSettings{}});
  ASSERT_TRUE(is_done(store.create("c", {.attempts_max = 1})));
  store.append("", "new");
  kill(1);
  EXPECT_EQ(store.redrive(Sequence{1}), Verdict{Appended{Sequence{2}}});
  EXPECT_EQ(store.redrive(Sequence{2}), Verdict{Appended{Sequence{3}}});
  EXPECT_EQ(store.record(Sequence{3}).payload, "new");
}

TEST_F(DeadLetters, OnlyDeadLettersAreRedriven) {
  append(1);
  EXPECT_EQ(refusal_of(store.redrive(Sequence{1}, RedriveTo::kConsumer, "orders")),
            Errc::kInvalidArgument);
  EXPECT_EQ(refusal_of(store.redrive(Sequence{1})), Errc::kNotFound);
  kill(1);
  store.redrive(Sequence{1});
  EXPECT_EQ(refusal_of(store.redrive(Sequence{2}, RedriveTo::kConsumer, "orders")),
            Errc::kInvalidArgument);
  EXPECT_EQ(refusal_of(store.redrive(Sequence{3}, RedriveTo::kConsumer, "orders")),
            Errc::kNotFound);
}

TEST_F(DeadLetters, StayWhenTheirSourceIsGone) {
  append(1);
  kill(1);
  store.run(DeleteStream{"orders"});
  const Verdict verdict = store.redrive(Sequence{1});
  EXPECT_EQ(refusal_of(verdict), Errc::kNotFound);
  EXPECT_THAT(refusal_text(verdict), HasSubstr("redrive record 1 of stream 'orders.dead'"));
  EXPECT_TRUE(store.stream("orders.dead").keeps(Sequence{1}));
}

TEST_F(DeadLetters, LeaveAHoleThatClosesWhenTheFrontLeaves) {
  append(4);
  kill(4);
  store.redrive(Sequence{2});
  store.redrive(Sequence{3});
  Stream& dead = store.stream("orders.dead");
  EXPECT_EQ(dead.first, Sequence{1});
  EXPECT_FALSE(dead.keeps(Sequence{2}));
  EXPECT_EQ(refusal_of(store.redrive(Sequence{3})), Errc::kNotFound);
  EXPECT_THAT(numbers(store.receive("person", 9, Duration{9}, "p", "orders.dead")),
              ElementsAre(1, 4));
  store.redrive(Sequence{1});
  EXPECT_EQ(dead.first, Sequence{4});
  EXPECT_EQ(store.redrive(Sequence{4}), Verdict{Appended{Sequence{8}}});
  EXPECT_EQ(dead.first, Sequence{5});
}

TEST_F(DeadLetters, ThatAreRedrivenWhileSomebodyHoldsThemAreNotHandedOutAgain) {
  append(3);
  kill(3);
  const auto held = store.receive("person", 9, Duration{10}, "p", "orders.dead");
  store.redrive(Sequence{2});
  store.pass(Duration{10});
  const auto again = store.receive("person", 9, Duration{10}, "p", "orders.dead");
  EXPECT_THAT(numbers(again), ElementsAre(1, 3));
  EXPECT_TRUE(is_done(store.ack("person", receipt_of(held[1]), "orders.dead")));
}

// --- to whom -----------------------------------------------------------------------------------

// C9.
TEST_F(DeadLetters, GoToTheConsumerThatGaveUpAndEveryOtherOneCountsThemAsAcked) {
  append(2);
  ack_all("billing");
  kill(1);
  ASSERT_EQ(store.redrive(Sequence{1}), Verdict{Appended{Sequence{3}}});
  EXPECT_EQ(floor_of("billing"), Sequence{3});
  EXPECT_THAT(received("billing"), IsEmpty());
  EXPECT_THAT(received("c"), ElementsAre(2, 3));
  append(1);
  EXPECT_THAT(received("billing"), ElementsAre(4));
  store.run(Seek{"orders", "billing", Sequence{1}});
  EXPECT_THAT(received("billing"), ElementsAre(1, 2, 4));
  EXPECT_THAT(received("made later"), ElementsAre(1, 2, 4));
}

TEST_F(DeadLetters, GoToAllOnlyIfAskedFor) {
  append(1);
  ack_all("billing");
  kill(1);
  ASSERT_EQ(store.redrive(Sequence{1}, RedriveTo::kAll), Verdict{Appended{Sequence{2}}});
  const Lineage lineage = *store.record(Sequence{2}).lineage;
  EXPECT_EQ(lineage.consumer, "c");
  EXPECT_EQ(lineage.to, RedriveTo::kAll);
  EXPECT_THAT(received("billing"), ElementsAre(2));
  EXPECT_THAT(received("c"), ElementsAre(2));
  EXPECT_EQ(refusal_of(store.redrive(Sequence{2}, RedriveTo::kAll, "orders")),
            Errc::kInvalidArgument);
}

TEST_F(DeadLetters, OfTwoConsumersGoToEachOnce) {
  ASSERT_TRUE(is_done(store.create("mail", {.attempts_max = 1})));
  append(1);
  kill(1);
  const Receipt held = receipt_of(store.receive("mail").front());
  ASSERT_TRUE(is_done(store.nack("mail", held)));
  EXPECT_EQ(store.redrive(Sequence{1}), Verdict{Appended{Sequence{2}}});
  EXPECT_EQ(store.redrive(Sequence{2}), Verdict{Appended{Sequence{3}}});
  EXPECT_THAT(received("c"), ElementsAre(2));
  EXPECT_THAT(received("mail"), ElementsAre(3));
}

// C10.
TEST_F(DeadLetters, OfOneFailureArePutBackOnce) {
  append(1);
  kill(1);
  store.run(Seek{"orders", "c", Sequence{1}});
  kill(1);
  const Time first = store.now;
  ASSERT_EQ(store.redrive(Sequence{1}), Verdict{Appended{Sequence{2}}});
  store.pass(Duration{5});
  EXPECT_EQ(store.redrive(Sequence{2}),
            Verdict{(Duplicate{Sequence{2}, first, limits::kWindowDefault.end(first)})});
  EXPECT_FALSE(store.stream("orders.dead").keeps(Sequence{2}));
  EXPECT_EQ(store.stream().last, Sequence{2});
  // A failure after the redrive is another one.
  kill(1);
  EXPECT_EQ(store.redrive(Sequence{3}), Verdict{Appended{Sequence{3}}});
}

TEST_F(DeadLetters, WaitUntilTheirConsumerIsThereAgain) {
  append(2);
  kill(1);
  store.run(DeleteConsumer{"orders", "c"});
  const Verdict verdict = store.redrive(Sequence{1});
  EXPECT_EQ(refusal_of(verdict), Errc::kNotFound);
  EXPECT_THAT(refusal_text(verdict), HasSubstr("redrive to all"));
  ASSERT_TRUE(is_done(store.create("c", {.start = Sequence{2}})));
  EXPECT_EQ(store.redrive(Sequence{1}), Verdict{Appended{Sequence{3}}});
  EXPECT_THAT(received("c"), ElementsAre(2, 3));
}

TEST_F(DeadLetters, ThatAreGivenUpOnceMoreStillGoToTheirFirstConsumer) {
  ASSERT_TRUE(is_done(store.create("c", {.attempts_max = 1})));
  append(1);
  kill(1);
  ASSERT_TRUE(is_done(store.create("clerk", {.attempts_max = 1}, "orders.dead")));
  const auto held = store.receive("clerk", 1, Duration{10}, "p", "orders.dead");
  ASSERT_TRUE(is_done(store.nack("clerk", receipt_of(held[0]), Duration{0}, "", "orders.dead")));
  EXPECT_EQ(store.record(Sequence{1}, "orders.dead.dead").lineage->consumer, "c");
  EXPECT_EQ(store.redrive(Sequence{1}, RedriveTo::kConsumer, "orders.dead.dead"),
            Verdict{Appended{Sequence{2}}});
  EXPECT_THAT(received("c"), ElementsAre(2));
}

TEST_F(DeadLetters, KeepTheirConsumerOverASnapshotUntilTheyAreTrimmed) {
  append(1);
  kill(1);
  store.redrive(Sequence{1});
  collect(store.state, store.now, 100);
  std::string bytes;
  encode_state(store.state, bytes);
  State restored(4);
  const Status decoded = decode_state(bytes, restored);
  ASSERT_TRUE(decoded) << decoded.error().detail;
  EXPECT_EQ(restored.find_stream("orders")->addressed, store.stream().addressed);
  EXPECT_FALSE(store.stream().is_for("billing", Sequence{2}));
  EXPECT_EQ(restored.text_bytes, store.state.text_bytes);

  const std::uint64_t before = store.state.text_bytes;
  store.run(Trim{"orders", Sequence{3}});
  collect(store.state, store.now, 100);
  EXPECT_TRUE(store.stream().addressed.empty());
  EXPECT_LT(store.state.text_bytes, before);
}

// C12
class Replays : public DeadLetters {
 protected:
  Verdict again(std::uint64_t sequence, std::string_view replay, std::string_view consumer = "c") {
    return store.run(Redrive{.dead_letters = "orders",
                             .sequence = Sequence{sequence},
                             .again_for = consumer,
                             .replay = replay});
  }
};

TEST_F(Replays, PutARecordBehindTheOthersForItsConsumerAlone) {
  ASSERT_TRUE(is_done(store.create("other", {})));
  store.append("g", "first");
  store.append("g", "second");
  ack_all("c");
  ack_all("c");
  EXPECT_EQ(again(1, "r1"), Verdict{Appended{Sequence{3}}});
  const RecordAppended copy = store.record(Sequence{3});
  EXPECT_EQ(copy.payload, "first");
  EXPECT_EQ(copy.group, "g");
  EXPECT_EQ(copy.lineage->sequence, Sequence{1});
  EXPECT_EQ(copy.lineage->redrives, 1U);
  EXPECT_EQ(copy.lineage->to, RedriveTo::kConsumer);
  EXPECT_FALSE(copy.lineage->is_dead_letter());
  EXPECT_THAT(copy.lineage->reason, HasSubstr("r1"));
  EXPECT_EQ(store.record(Sequence{1}).payload, "first");  // It stays.
  EXPECT_THAT(received("c"), ElementsAre(3));
  ack_all("other");
  ack_all("other");
  EXPECT_EQ(floor_of("other"), Sequence{3});
}

TEST_F(Replays, PutARecordOnceUnderOneName) {
  store.append("", "tea");
  ack_all("c");
  EXPECT_EQ(again(1, "r1"), Verdict{Appended{Sequence{2}}});
  const std::size_t facts = store.facts();
  EXPECT_TRUE(std::holds_alternative<Duplicate>(again(1, "r1")));
  ack_all("c");
  // The copy is the same record.
  EXPECT_TRUE(std::holds_alternative<Duplicate>(again(2, "r1")));
  EXPECT_GE(store.facts(), facts);
  EXPECT_THAT(received("c"), IsEmpty());
  // Another replay is another one, and tells how often it was.
  EXPECT_EQ(again(2, "r2"), Verdict{Appended{Sequence{3}}});
  EXPECT_EQ(store.record(Sequence{3}).lineage->redrives, 2U);
  EXPECT_EQ(store.record(Sequence{3}).lineage->sequence, Sequence{1});
  // The same names, cut elsewhere.
  ASSERT_TRUE(is_done(store.create("cr", {})));
  ack_all("cr");
  EXPECT_EQ(again(1, "2", "cr"), Verdict{Appended{Sequence{4}}});
}

TEST_F(Replays, OfWhatIsNotAckedAreForLater) {
  append(2);
  EXPECT_EQ(refusal_of(again(1, "r1")), Errc::kUnavailable);
  received("c");
  EXPECT_EQ(refusal_of(again(1, "r1")), Errc::kUnavailable) << "under way";
}

TEST_F(Replays, OfWhatIsGoneOrForNobodyAreRefused) {
  append(2);
  ack_all("c");
  store.run(Trim{"orders", Sequence{2}});
  EXPECT_EQ(refusal_of(again(1, "r1")), Errc::kNotFound);
  EXPECT_EQ(refusal_of(again(2, "r1", "nobody")), Errc::kNotFound);
  EXPECT_EQ(refusal_of(again(9, "r1")), Errc::kNotFound);
}

// A replayed record that fails is a dead letter like any other, and goes back as one.
TEST_F(Replays, MayDieAndComeBack) {
  store.append("", "tea");
  ack_all("c");
  again(1, "r1");
  kill(1);
  const Lineage dead = *store.record(Sequence{1}, "orders.dead").lineage;
  EXPECT_TRUE(dead.is_dead_letter());
  EXPECT_EQ(dead.redrives, 1U);
  EXPECT_EQ(store.redrive(Sequence{1}), Verdict{Appended{Sequence{3}}});
  EXPECT_EQ(store.record(Sequence{3}).lineage->redrives, 2U);
}

}  // namespace
}  // namespace hapax::core
