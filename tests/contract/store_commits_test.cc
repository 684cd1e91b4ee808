// The commit itself: all or nothing, repeats under an id; positions and registers.
#include <array>

#include "store_contract.h"

namespace hapax::contract {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Commits : public StoreContract {};

TEST_P(Commits, OfARefusedAtomicCommitNothingIsVisible) {
  make_stream("s");
  append("s", "p", "known");
  const auto claimed = run<Claimed>(Claim{.scope = "c", .key = "k", .owner = "one"});
  append("s", "to be received");
  const std::uint64_t snapshot = store().describe("s").value().bytes;
  const Answer answer = commit({
      CreateStream{"new", {}},
      Append{.stream = "s", .payload = "p", .id = "fresh"},
      Append{.stream = "s", .payload = "p", .id = "known"},
      Settle{.scope = "c", .key = "k", .fence = claimed.fence},
      Claim{.scope = "c", .key = "other", .owner = "one"},
      Receive{"s", "consumer", 5},
      Advance{"source", "", "1", Epoch{1}},
      Set{.name = "r", .value = "v"},
      Begin{"t"},
      Trim{"s", Sequence{3}},
      Append{.stream = "s", .payload = "other", .id = "known"},  // This one conflicts.
      Append{.stream = "s", .payload = "after"},
  });
  EXPECT_FALSE(answer.committed);
  ASSERT_EQ(answer.verdicts.size(), 12U);
  for (std::size_t i = 0; i < 12; ++i) {
    if (i == 10) as<Conflict>(answer.verdicts[i]);
    if (i != 10) as<NotApplied>(answer.verdicts[i]);
  }
  always([&] {
    EXPECT_EQ(store().describe("new").error().code, Errc::kNotFound);
    EXPECT_EQ(last("s"), Sequence{2});
    EXPECT_EQ(store().describe("s").value().first, Sequence{1});
    EXPECT_EQ(store().describe("s").value().bytes, snapshot);
    EXPECT_THAT(store().describe("s").value().consumers, IsEmpty());
    EXPECT_EQ(store().find_id("s", "fresh", std::nullopt).value(), std::nullopt);
    EXPECT_EQ(store().find_claim("c", "k").value()->state, ClaimState::kProcessing);
    EXPECT_EQ(store().find_claim("c", "other").value(), std::nullopt);
    EXPECT_EQ(store().find_position("source").value(), std::nullopt);
    EXPECT_EQ(store().find_register("r").value(), std::nullopt);
    EXPECT_EQ(store().statistics().value().transactions_open, 0U);
  });
}

TEST_P(Commits, ADuplicateDoesNotAbortTheCommitAroundIt) {
  make_stream("s");
  append("s", "p", "known");
  const Answer answer = commit({Append{.stream = "s", .payload = "a"},
                                Append{.stream = "s", .payload = "p", .id = "known"},
                                Append{.stream = "s", .payload = "b"}});
  EXPECT_TRUE(answer.committed);
  EXPECT_EQ(as<Appended>(answer.verdicts[0]).sequence, Sequence{2});
  EXPECT_EQ(as<Duplicate>(answer.verdicts[1]).sequence, Sequence{1});
  EXPECT_EQ(as<Appended>(answer.verdicts[2]).sequence, Sequence{3});
  always([&] { EXPECT_THAT(payloads(records("s")), ElementsAre("p", "a", "b")); });
}

TEST_P(Commits, OnTheirOwnTheGoodOperationsStand) {
  make_stream("s");
  append("s", "p", "known");
  const Answer answer =
      each({Append{.stream = "s", .payload = "a"},
            Append{.stream = "s", .payload = "other", .id = "known"},
            Append{.stream = "nowhere", .payload = "b"}, Append{.stream = "s", .payload = "c"}});
  EXPECT_TRUE(answer.committed);
  as<Appended>(answer.verdicts[0]);
  as<Conflict>(answer.verdicts[1]);
  EXPECT_EQ(as<Refused>(answer.verdicts[2]).error.code, Errc::kNotFound);
  EXPECT_EQ(as<Appended>(answer.verdicts[3]).sequence, Sequence{3});
  always([&] { EXPECT_THAT(payloads(records("s")), ElementsAre("p", "a", "c")); });
}

TEST_P(Commits, ALaterOperationSeesWhatAnEarlierOneDid) {
  const Answer answer = commit({CreateStream{"s", {}}, Append{.stream = "s", .payload = "p"},
                                Receive{"s", "c", 5}, DeleteStream{"s"}});
  EXPECT_TRUE(answer.committed);
  const auto got = as<Received>(answer.verdicts[2]).deliveries;
  ASSERT_EQ(got.size(), 1U);
  always([&] { EXPECT_THAT(store().streams().value(), testing::Not(testing::Contains("s"))); });
}

TEST_P(Commits, RepeatingACommitUnderItsIdReturnsTheFirstAnswer) {
  make_stream("s");
  const std::vector<Op> ops{Append{.stream = "s", .payload = "p"},
                            Claim{.scope = "c", .key = "k", .owner = "one"},
                            Set{.name = "r", .value = "v"}};
  const std::string id("any \0 bytes", 11);
  const Answer first = commit(ops, Mode::kAtomic, id);
  EXPECT_TRUE(first.committed);
  EXPECT_FALSE(first.repeated);
  always([&] {
    Answer again = commit(ops, Mode::kAtomic, id);
    EXPECT_TRUE(again.repeated);
    again.repeated = false;
    EXPECT_EQ(again, first);
    EXPECT_EQ(last("s"), Sequence{1});
    EXPECT_EQ(store().find_register("r").value()->version, Version{1});
  });
}

TEST_P(Commits, OtherOperationsUnderAUsedIdAreAnError) {
  make_stream("s");
  commit({Append{.stream = "s", .payload = "p"}}, Mode::kAtomic, "id");
  always([&] {
    const auto other = try_commit({Append{.stream = "s", .payload = "q"}}, Mode::kAtomic, "id");
    ASSERT_FALSE(other.ok());
    EXPECT_EQ(other.error().code, Errc::kConflict);
    EXPECT_THAT(other.error().text(), HasSubstr("HX1005"));
    const auto mode = try_commit({Append{.stream = "s", .payload = "p"}}, Mode::kEach, "id");
    EXPECT_EQ(mode.error().code, Errc::kConflict);
    EXPECT_EQ(last("s"), Sequence{1});
  });
}

TEST_P(Commits, AHeaderIsNotTakenForAProducer) {
  make_stream("s");
  const std::array headers{Header{"a", "b"}};
  const Append with_header{.stream = "s", .payload = "p", .headers = headers};
  const Append with_producer{
      .stream = "s", .payload = "p", .producer = ProducerMark{"a", Epoch{1}, ProducerSequence{98}}};
  EXPECT_TRUE(commit({with_header}, Mode::kAtomic, "id").committed);
  EXPECT_EQ(try_commit({with_producer}, Mode::kAtomic, "id").error().code, Errc::kConflict);
}

TEST_P(Commits, ARefusedCommitIsDecidedAnewUnderItsId) {
  make_stream("s");
  const std::vector<Op> ops{Append{.stream = "later", .payload = "p"}};
  EXPECT_FALSE(commit(ops, Mode::kAtomic, "id").committed);
  make_stream("later");
  EXPECT_TRUE(commit(ops, Mode::kAtomic, "id").committed);
  EXPECT_TRUE(commit(ops, Mode::kAtomic, "id").repeated);
}

TEST_P(Commits, AnEmptyIdIsRefused) {
  make_stream("s");
  for (const Mode mode : {Mode::kAtomic, Mode::kEach}) {
    const auto told = try_commit({Append{.stream = "s", .payload = "p"}}, mode, "");
    ASSERT_FALSE(told.ok());
    EXPECT_EQ(told.error().code, Errc::kInvalidArgument);
    EXPECT_THAT(told.error().detail, testing::HasSubstr("id is empty; leave the field out"));
  }
  EXPECT_EQ(last("s"), Sequence{0});
}

TEST_P(Commits, AnAnswerIsRememberedForItsWindow) {
  make_stream("s");
  const std::array<Op, 1> ops{Append{.stream = "s", .payload = "p"}};
  Commit commit;
  commit.ops = ops;
  commit.id = "id";
  commit.id_window = Window{std::chrono::seconds{1}};
  const Time decided = store().commit(commit).value().time;
  wait_until(decided + std::chrono::seconds{1});
  reopen();
  EXPECT_FALSE(store().commit(commit).value().repeated);
  EXPECT_EQ(last("s"), Sequence{2});
}

TEST_P(Commits, TheStoredResultIsInARepeatedAnswerToo) {
  const Claim claim{.scope = "c", .key = "k", .owner = "one"};
  const Fence fence = run<Claimed>(claim).fence;
  run<Done>(Settle{.scope = "c", .key = "k", .fence = fence, .result = {200, "h", "body"}});
  const Answer first = commit({claim}, Mode::kAtomic, "look");
  EXPECT_EQ(as<DuplicateClaim>(first.verdicts[0]).result, (StoredResult{200, "h", "body"}));
  always([&] { EXPECT_EQ(commit({claim}, Mode::kAtomic, "look").verdicts, first.verdicts); });
}

// I13: a repeated answer shows its own result or none, never that of a later claim of the key.
TEST_P(Commits, ARepeatedAnswerNeverShowsALaterResult) {
  const auto settle = [&](std::string_view body) {
    const Fence fence = run<Claimed>(Claim{"s", "k", "c", "me"}).fence;
    run<Done>(Settle{"s", "k", fence, Outcome::kCompleted, {200, "", body}});
  };
  const Claim claim{"s", "k", "c", "me"};
  settle("first");
  const auto told = as<DuplicateClaim>(commit({claim}, Mode::kAtomic, "look").verdicts.front());
  ASSERT_TRUE(told.result);
  EXPECT_EQ(told.result->body, "first");
  run<Done>(Forget{"s", "k", "somebody", "a test"});
  settle("second");
  const auto again = as<DuplicateClaim>(commit({claim}, Mode::kAtomic, "look").verdicts.front());
  EXPECT_EQ(again.fence, told.fence);
  EXPECT_EQ(again.result, std::nullopt);
}

// The same for records of a stream that was made anew under its old name.
TEST_P(Commits, ARepeatedReceiveNeverShowsRecordsOfAnotherStream) {
  const Receive receive{.stream = "s", .consumer = "c"};
  make_stream("s");
  run<Appended>(Append{.stream = "s", .payload = "first"});
  const auto told = as<Received>(commit({receive}, Mode::kAtomic, "get").verdicts.front());
  ASSERT_EQ(told.deliveries.size(), 1U);
  run<Done>(DeleteStream{"s"});
  wait_until(store().statistics().value().log_time + Duration{1});
  make_stream("s");
  run<Appended>(Append{.stream = "s", .payload = "second"});
  const auto again = as<Received>(commit({receive}, Mode::kAtomic, "get").verdicts.front());
  ASSERT_EQ(again.deliveries.size(), 1U);
  EXPECT_EQ(again.deliveries[0].record.payload, "");
  EXPECT_TRUE(again.deliveries[0].gone);
}

TEST_P(Commits, ARepeatedReceiveSaysWhichRecordsAreGone) {
  const Receive receive{.stream = "s", .consumer = "c", .max = 2};
  make_stream("s");
  run<Appended>(Append{.stream = "s", .payload = "first"});
  run<Appended>(Append{.stream = "s", .payload = "second"});
  const auto told = as<Received>(commit({receive}, Mode::kAtomic, "get").verdicts.front());
  ASSERT_EQ(told.deliveries.size(), 2U);
  EXPECT_FALSE(told.deliveries[0].gone);
  run<Done>(Trim{"s", Sequence{2}});
  const auto again = as<Received>(commit({receive}, Mode::kAtomic, "get").verdicts.front());
  ASSERT_EQ(again.deliveries.size(), 2U);
  EXPECT_TRUE(again.deliveries[0].gone);
  EXPECT_EQ(again.deliveries[0].record.sequence, Sequence{1});
  EXPECT_EQ(again.deliveries[0].token, told.deliveries[0].token);
  EXPECT_FALSE(again.deliveries[1].gone);
  EXPECT_EQ(again.deliveries[1].record.payload, "second");
}

// A worker that waits asks again and again: what told it nothing is not kept.
TEST_P(Commits, AnAnswerWithoutRecordsIsNotRemembered) {
  const Receive receive{.stream = "s", .consumer = "c"};
  make_stream("s");
  run<Done>(CreateConsumer{"s", "c", {}});
  const std::uint64_t before = store().statistics().value().claims_settled;
  for (int i = 0; i < 3; ++i) {
    const Answer answer = commit({receive}, Mode::kAtomic, "get");
    EXPECT_FALSE(answer.repeated);
    EXPECT_TRUE(as<Received>(answer.verdicts.front()).deliveries.empty());
  }
  EXPECT_EQ(store().statistics().value().claims_settled, before);
  run<Appended>(Append{.stream = "s", .payload = "p"});
  const Answer found = commit({receive}, Mode::kAtomic, "get");
  const Answer again = commit({receive}, Mode::kAtomic, "get");
  EXPECT_FALSE(found.repeated);
  EXPECT_TRUE(again.repeated);
  EXPECT_EQ(again.verdicts, found.verdicts);
}

// --- positions -----------------------------------------------------------------------------------

TEST_P(Commits, APositionMovesOnlyFromWhereItIsExpected) {
  run<Done>(Advance{"kafka/0", "", "10", Epoch{1}});
  always([&] {
    EXPECT_EQ(run<ExpectationFailed>(Advance{"kafka/0", "", "11", Epoch{1}}).actual_position, "10");
    EXPECT_EQ(run<ExpectationFailed>(Advance{"kafka/0", "9", "11", Epoch{1}}).actual_position,
              "10");
    EXPECT_EQ(run<ExpectationFailed>(Advance{"kafka/0", "", "10", Epoch{1}}).actual_position,
              "10");  // A repeat.
    const auto found = store().find_position("kafka/0").value();
    ASSERT_TRUE(found);
    EXPECT_EQ(found->value, "10");
    EXPECT_EQ(found->epoch, Epoch{1});
  });
  EXPECT_EQ(store().find_position("kafka/1").value(), std::nullopt);
}

TEST_P(Commits, AnOlderOwnerOfAPositionIsFenced) {
  run<Done>(Advance{"source", "", "10", Epoch{5}});
  run<Done>(Advance{"source", "10", "20", Epoch{6}});
  always([&] {
    const std::uint64_t before = fenced();
    EXPECT_EQ(run<Fenced>(Advance{"source", "20", "21", Epoch{5}}), (Fenced{6, 5}));
    EXPECT_EQ(fenced(), before + 1);
    EXPECT_EQ(store().find_position("source").value()->value, "20");
  });
  // A new owner takes over without moving it.
  run<Done>(Advance{"source", "20", "20", Epoch{7}});
  run<Fenced>(Advance{"source", "20", "30", Epoch{6}});
}

TEST_P(Commits, RecordsAndThePositionTheyCameFromAreOneCommit) {
  make_stream("s");
  const std::vector<Op> ops{Append{.stream = "s", .payload = "p"},
                            Advance{"source", "", "1", Epoch{1}}};
  EXPECT_TRUE(commit(ops).committed);
  EXPECT_FALSE(commit(ops).committed);  // A repeat whose first answer was lost.
  run<Done>(Advance{"source", "1", "2", Epoch{1}});
  reopen();
  EXPECT_FALSE(commit(ops).committed);
  EXPECT_EQ(last("s"), Sequence{1});
}

// --- registers -----------------------------------------------------------------------------------

TEST_P(Commits, ARegisterIsComparedAndSet) {
  const auto set = [](std::string_view value, std::uint64_t expected) {
    return Set{.name = "r", .value = value, .expected = Version{expected}};
  };
  EXPECT_EQ(run<Superseded>(set("x", 1)).version, Version{0});
  EXPECT_EQ(run<Registered>(set("one", 0)).version, Version{1});
  EXPECT_EQ(run<Registered>(set("two", 1)).version, Version{2});
  always([&] {
    EXPECT_EQ(run<Superseded>(set("lost", 1)).version, Version{2});
    EXPECT_EQ(run<Superseded>(set("lost", 0)).version, Version{2});
    EXPECT_EQ(run<Superseded>(set("lost", 3)).version, Version{2});
    EXPECT_EQ(store().find_register("r").value()->value, "two");
    EXPECT_EQ(store().find_register("r").value()->version, Version{2});
  });
  EXPECT_EQ(store().find_register("never").value(), std::nullopt);
}

TEST_P(Commits, TheLastWriterWinsWhateverOrderTheyArriveIn) {
  const std::int64_t now = to_ms(log_time());
  const auto set = [](std::string_view value, HybridTime at) {
    return Set{.name = "r", .value = value, .mode = SetMode::kLastWriter, .at = at};
  };
  const HybridTime late{now, 1, 1};
  EXPECT_EQ(run<Registered>(set("late", late)).at, late);
  always([&] {
    EXPECT_EQ(run<Superseded>(set("late again", late)).at, late);
    EXPECT_EQ(run<Superseded>(set("early", {now, 0, 9})).at, late);
    EXPECT_EQ(run<Superseded>(set("older", {now - 1, 9, 9})).at, late);
    EXPECT_EQ(store().find_register("r").value()->value, "late");
  });
  run<Registered>(set("node breaks the tie", {now, 1, 2}));
  EXPECT_EQ(run<Registered>(set("counter", {now, 2, 0})).version, Version{3});
}

TEST_P(Commits, TheStoresOwnClockIsNeverBehindAWriterItHasSeen) {
  const HybridTime ahead{to_ms(log_time()) + 50'000, 0, 3};
  run<Registered>(Set{.name = "r", .value = "a", .mode = SetMode::kLastWriter, .at = ahead});
  reopen();
  const auto own = run<Registered>(Set{.name = "r", .value = "b", .mode = SetMode::kLastWriter});
  EXPECT_GT(own.at, ahead);
  const auto next = run<Registered>(Set{.name = "q", .value = "c", .mode = SetMode::kLastWriter});
  EXPECT_GT(next.at, own.at);
}

TEST_P(Commits, AWriterTooFarAheadIsRefused) {
  const HybridTime ahead{to_ms(log_time()) + 120'000, 0, 0};
  const Error error =
      refusal(Set{.name = "r", .value = "a", .mode = SetMode::kLastWriter, .at = ahead});
  EXPECT_EQ(error.code, Errc::kInvalidArgument);
  EXPECT_THAT(error.detail, HasSubstr("the most is 60000"));
  EXPECT_EQ(store().find_register("r").value(), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(, Commits, testing::ValuesIn(all_stores()), name_of);

}  // namespace
}  // namespace hapax::contract
