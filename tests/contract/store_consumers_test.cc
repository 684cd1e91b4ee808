// Consumers: receipts, order per group key, attempts, dead letters.
#include <algorithm>
#include <array>

#include "store_contract.h"

namespace hapax::contract {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class Consumers : public StoreContract {
 protected:
  void fill(int count, std::optional<std::string_view> group = {}) {
    std::vector<std::string> texts;
    for (int i = 0; i < count; ++i) texts.push_back("p" + std::to_string(i));
    std::vector<Op> ops;
    for (const std::string& text : texts) {
      ops.push_back(Append{.stream = "s", .payload = text, .group = group});
    }
    EXPECT_TRUE(commit(ops).committed);
  }
  Delivery take(Duration lease = limits::kLeaseDefault, std::string_view owner = "worker") {
    const std::vector<Delivery> all = receive("s", "c", 1, lease, owner);
    EXPECT_THAT(all, SizeIs(1));
    return all.empty() ? Delivery{} : all.front();
  }
  static Ack ack_of(const Delivery& one) { return Ack{"s", "c", receipt_of(one)}; }
  static Nack nack_of(const Delivery& one, Duration delay = Duration{0},
                      std::string_view reason = "no") {
    return Nack{"s", "c", receipt_of(one), delay, reason};
  }
  void make_consumer(const ConsumerSettings& settings) {
    run<Done>(CreateConsumer{"s", "c", settings});
  }
  ConsumerStats stats() {
    const StreamStats all = store().describe("s").value();
    const auto found = std::find_if(all.consumers.begin(), all.consumers.end(),
                                    [](const ConsumerStats& one) { return one.consumer == "c"; });
    EXPECT_NE(found, all.consumers.end());
    return found == all.consumers.end() ? ConsumerStats{} : *found;
  }
};

TEST_P(Consumers, RecordsAreHandedOutOnceInOrderWithReceipts) {
  make_stream("s");
  fill(3);
  const Answer answer = commit({Receive{"s", "c", 2, Duration{60'000}, "worker"}});
  const std::vector<Delivery> got = as<Received>(answer.verdicts[0]).deliveries;
  ASSERT_THAT(sequences(got), ElementsAre(1, 2));
  EXPECT_NE(got[0].token, got[1].token);
  for (const Delivery& one : got) {
    EXPECT_EQ(one.attempt, 1U);
    EXPECT_EQ(one.lease_until, answer.time + Duration{60'000});
    EXPECT_EQ(one.record, records("s")[one.record.sequence.value - 1]);
  }
  reopen();
  EXPECT_THAT(sequences(receive("s", "c")), ElementsAre(3));
  always([&] {
    EXPECT_THAT(receive("s", "c"), IsEmpty());
    EXPECT_EQ(stats().in_flight, 3U);
    EXPECT_EQ(stats().floor, Sequence{0});
    EXPECT_EQ(stats().next, Sequence{4});
  });
  EXPECT_EQ(refusal(Receive{.stream = "nowhere", .consumer = "c"}).code, Errc::kNotFound);
}

TEST_P(Consumers, EachConsumerSeesEveryRecord) {
  make_stream("s");
  fill(2);
  EXPECT_THAT(sequences(receive("s", "c")), ElementsAre(1, 2));
  EXPECT_THAT(sequences(receive("s", "d")), ElementsAre(1, 2));
  run<Done>(CreateConsumer{"s", "late", {.start = Sequence{2}}});
  EXPECT_THAT(sequences(receive("s", "late")), ElementsAre(2));
}

TEST_P(Consumers, AnAckIsForEverAndMayBeRepeated) {
  make_stream("s");
  fill(2);
  const std::vector<Delivery> got = receive("s", "c");
  run<Done>(ack_of(got[0]));
  always([&] {
    run<Done>(ack_of(got[0]));
    EXPECT_EQ(run<Stale>(nack_of(got[0])), (Stale{"", true}));
    EXPECT_EQ(run<Stale>(Extend{"s", "c", receipt_of(got[0])}), (Stale{"", true}));
    EXPECT_EQ(stats().floor, Sequence{1});
    EXPECT_EQ(stats().in_flight, 1U);
  });
  run<Done>(ack_of(got[1]));
  EXPECT_EQ(stats().floor, Sequence{2});
}

TEST_P(Consumers, OnlyTheLatestReceiptCountsAndAnOldOneIsToldTheOwner) {
  make_stream("s");
  fill(1);
  const Delivery first = take(Duration{1}, "one");
  wait_until(first.lease_until);
  const Delivery second = take(limits::kLeaseDefault, "two");
  EXPECT_EQ(second.record.sequence, first.record.sequence);
  EXPECT_EQ(second.attempt, 2U);
  EXPECT_GT(second.token, first.token);
  always([&] {
    const std::uint64_t before = fenced();
    EXPECT_EQ(run<Stale>(ack_of(first)), (Stale{"two", false}));
    EXPECT_EQ(run<Stale>(nack_of(first)), (Stale{"two", false}));
    EXPECT_EQ(run<Stale>(Extend{"s", "c", receipt_of(first)}), (Stale{"two", false}));
    EXPECT_EQ(fenced(), before + 3);
  });
  run<Done>(ack_of(second));
  EXPECT_EQ(run<Stale>(ack_of(first)), (Stale{"", true}));
}

TEST_P(Consumers, ALateHolderWhomNobodyReplacedMayStillAck) {
  make_stream("s");
  fill(1);
  const Delivery late = take(Duration{1});
  wait_until(late.lease_until);
  run<Done>(ack_of(late));
  EXPECT_THAT(receive("s", "c"), IsEmpty());
}

TEST_P(Consumers, AReceiptNobodyWasGivenIsRefused) {
  make_stream("s");
  fill(2);
  const Delivery one = take();
  Receipt forged = receipt_of(one);
  forged.token = forged.token.next();
  EXPECT_EQ(refusal(Ack{"s", "c", forged}).code, Errc::kInvalidArgument);
  EXPECT_EQ(refusal(Ack{"s", "c", {Sequence{9}, one.token}}).code, Errc::kNotFound);
  EXPECT_EQ(refusal(Ack{"s", "nobody", receipt_of(one)}).code, Errc::kNotFound);
  EXPECT_EQ(refusal(Ack{"nowhere", "c", receipt_of(one)}).code, Errc::kNotFound);
  run<Done>(ack_of(one));
}

TEST_P(Consumers, ANackedRecordComesBackAfterItsDelay) {
  make_stream("s");
  fill(1);
  run<Done>(nack_of(take()));
  const Delivery second = take();
  EXPECT_EQ(second.attempt, 2U);
  const Answer nacked = commit({nack_of(second, Duration{300})});
  EXPECT_EQ(run<Stale>(ack_of(second)), (Stale{"", false}));
  reopen();
  const Answer early = commit({Receive{"s", "c", 1}});
  if (early.time < nacked.time + Duration{300}) {
    EXPECT_THAT(as<Received>(early.verdicts[0]).deliveries, IsEmpty());
    EXPECT_EQ(stats().waiting, 1U);
    wait_until(nacked.time + Duration{300});
    EXPECT_EQ(take().attempt, 3U);
  }
}

TEST_P(Consumers, ExtendingProlongsTheLease) {
  make_stream("s");
  fill(1);
  const Delivery one = take(Duration{1});
  const Answer answer = commit({Extend{"s", "c", receipt_of(one), Duration{3'600'000}}});
  EXPECT_EQ(as<Renewed>(answer.verdicts[0]).lease_until, answer.time + Duration{3'600'000});
  wait_until(one.lease_until + Duration{5});
  always([&] { EXPECT_THAT(receive("s", "c"), IsEmpty()); });
  run<Done>(ack_of(one));
}

TEST_P(Consumers, AGroupHasOneRecordInFlightAndOtherGroupsFlow) {
  make_stream("s");
  append("s", "a1", {}, "a");
  append("s", "a2", {}, "a");
  append("s", "b1", {}, "b");
  append("s", "free");
  append("s", "a3", {}, "a");
  const std::vector<Delivery> got = receive("s", "c");
  ASSERT_THAT(sequences(got), ElementsAre(1, 3, 4));
  always([&] { EXPECT_THAT(receive("s", "c"), IsEmpty()); });
  run<Done>(ack_of(got[0]));
  reopen();
  const Delivery second = take();
  EXPECT_EQ(second.record.payload, "a2");
  run<Done>(ack_of(second));
  EXPECT_EQ(take().record.payload, "a3");
}

TEST_P(Consumers, TheOrderOfAGroupIsKeptOverRetries) {
  make_stream("s");
  fill(3, "g");
  std::vector<std::string> seen;
  for (int i = 0; i < 9; ++i) {
    const Delivery one = take();
    seen.push_back(one.record.payload);
    run<Done>(one.attempt < 3 ? Op{nack_of(one)} : Op{ack_of(one)});
    if (i == 4) reopen();
  }
  EXPECT_THAT(seen, ElementsAre("p0", "p0", "p0", "p1", "p1", "p1", "p2", "p2", "p2"));
  EXPECT_THAT(receive("s", "c"), IsEmpty());
}

TEST_P(Consumers, ADelayedRecordHoldsItsGroup) {
  make_stream("s");
  fill(2, "g");
  const Delivery first = take();
  const Answer nacked = commit({nack_of(first, Duration{200})});
  const Answer early = commit({Receive{"s", "c", 9}});
  if (early.time < nacked.time + Duration{200}) {
    EXPECT_THAT(as<Received>(early.verdicts[0]).deliveries, IsEmpty());
    wait_until(nacked.time + Duration{200});
    EXPECT_EQ(take().record.payload, "p0");
  }
}

TEST_P(Consumers, TheLastNackMakesADeadLetterWithItsHistory) {
  make_stream("s");
  make_consumer({.attempts_max = 2});
  const std::array headers{Header{"h", "v"}};
  run<Appended>(
      Append{.stream = "s", .payload = "poison", .id = "id", .group = "g", .headers = headers});
  append("s", "next", {}, "g");
  const Answer first = commit({Receive{"s", "c", 1, limits::kLeaseDefault, "ann"}});
  const Delivery first_try = as<Received>(first.verdicts[0]).deliveries[0];
  const Answer nacked = commit({nack_of(first_try, Duration{0}, "first reason")});
  reopen();
  const Answer second = commit({Receive{"s", "c", 1, limits::kLeaseDefault, "bob"}});
  const Delivery last_try = as<Received>(second.verdicts[0]).deliveries[0];
  EXPECT_EQ(last_try.attempt, 2U);
  const Answer buried = commit({nack_of(last_try, Duration{60'000}, "last reason")});
  const std::vector<PastAttempt> history{
      {1, 0, first.time, nacked.time, AttemptEnding::kNacked, "ann", "first reason"},
      {2, 0, second.time, buried.time, AttemptEnding::kNacked, "bob", "last reason"}};
  always([&] {
    const std::vector<Record> dead = records("s.dead");
    ASSERT_THAT(dead, SizeIs(1));
    EXPECT_EQ(dead[0].payload, "poison");
    EXPECT_EQ(dead[0].id, "id");
    EXPECT_EQ(dead[0].group, "g");
    EXPECT_THAT(dead[0].headers, ElementsAre(std::pair<std::string, std::string>("h", "v")));
    EXPECT_EQ(dead[0].lineage, (Lineage{"s", Sequence{1}, "c", "last reason", 2, first.time,
                                        second.time, 0, history}));
    EXPECT_EQ(stats().dead_lettered, 1U);
    EXPECT_EQ(run<Stale>(ack_of(last_try)), (Stale{"", true}));
    EXPECT_EQ(last("s"), Sequence{2});
  });
  EXPECT_EQ(take().record.payload, "next");
}

TEST_P(Consumers, ALeaseThatRanOutOnTheLastAttemptMakesADeadLetterToo) {
  make_stream("s");
  make_consumer({.attempts_max = 1, .dead_letters = "graves"});
  fill(1);
  const Delivery only = take(Duration{1});
  wait_until(only.lease_until);
  EXPECT_THAT(receive("s", "c"), IsEmpty());
  always([&] {
    const std::vector<Record> dead = records("graves");
    ASSERT_THAT(dead, SizeIs(1));
    ASSERT_TRUE(dead[0].lineage);
    EXPECT_THAT(dead[0].lineage->reason, HasSubstr("lease ran out"));
    EXPECT_EQ(dead[0].lineage->attempts, 1U);
    EXPECT_EQ(stats().floor, Sequence{1});
  });
}

TEST_P(Consumers, TheHistorySurvivesRestartsAndSnapshotsAndARedriveKeepsIt) {
  make_stream("s");
  make_consumer({.attempts_max = 3});
  fill(1);
  const Delivery first = take(Duration{1});
  wait_until(first.lease_until);
  churn();
  reopen();
  run<Done>(nack_of(take(), Duration{0}, "second"));
  churn();
  reopen();
  run<Done>(nack_of(take(), Duration{0}, "third"));
  const std::vector<PastAttempt> history = records("s.dead").at(0).lineage.value().history;
  ASSERT_THAT(history, SizeIs(3));
  EXPECT_EQ(history[0].ending, AttemptEnding::kLeaseRanOut);
  EXPECT_EQ(history[0].ended, first.lease_until);
  EXPECT_EQ(history[1].reason, "second");
  EXPECT_EQ(history[2].attempt, 3U);
  run<Appended>(Redrive{"s.dead", Sequence{1}});
  always([&] { EXPECT_EQ(records("s").back().lineage->history, history); });
  for (int i = 0; i < 3; ++i) run<Done>(nack_of(take(), Duration{0}, "again"));
  const std::vector<PastAttempt> both = records("s.dead").at(0).lineage.value().history;
  ASSERT_THAT(both, SizeIs(6));
  EXPECT_EQ(both[2], history[2]);
  EXPECT_EQ(both[3].attempt, 1U);
  EXPECT_EQ(both[3].redrives, 1U);
}

TEST_P(Consumers, WithTheBlockPolicyTheGroupWaitsForAPerson) {
  make_stream("s");
  make_consumer({.attempts_max = 1, .last_attempt = LastAttempt::kBlock});
  fill(2, "g");
  append("s", "other", {}, "h");
  const std::vector<Delivery> got = receive("s", "c");
  ASSERT_THAT(sequences(got), ElementsAre(1, 3));
  run<Done>(nack_of(got[0]));
  always([&] {
    EXPECT_THAT(receive("s", "c"), IsEmpty());
    EXPECT_EQ(store().describe("s.dead").error().code, Errc::kNotFound);
  });
  run<Done>(Seek{"s", "c", Sequence{1}});
  EXPECT_EQ(take().attempt, 1U);
}

TEST_P(Consumers, TrimmingABlockedRecordLetsItsGroupGoOn) {
  make_stream("s");
  make_consumer({.attempts_max = 1, .last_attempt = LastAttempt::kBlock});
  fill(2, "g");
  run<Done>(nack_of(take()));
  run<Done>(Trim{"s", Sequence{2}});
  reopen();
  EXPECT_EQ(take().record.payload, "p1");
}

TEST_P(Consumers, RedrivingBringsADeadLetterBackWithItsLineage) {
  make_stream("s");
  make_consumer({.attempts_max = 1});
  run<Appended>(Append{.stream = "s", .payload = "p", .id = "id"});
  run<Done>(nack_of(take(), Duration{0}, "why"));
  reopen();
  EXPECT_EQ(run<Appended>(Redrive{"s.dead", Sequence{1}}).sequence, Sequence{2});
  always([&] {
    EXPECT_THAT(records("s.dead"), IsEmpty());
    EXPECT_EQ(refusal(Redrive{"s.dead", Sequence{1}}).code, Errc::kNotFound);
    const Record back = records("s").back();
    EXPECT_EQ(back.payload, "p");
    EXPECT_EQ(back.id, "id");
    ASSERT_TRUE(back.lineage);
    EXPECT_EQ(back.lineage->stream, "s");
    EXPECT_EQ(back.lineage->consumer, "c");
    EXPECT_EQ(back.lineage->to, RedriveTo::kConsumer);
    EXPECT_EQ(back.lineage->sequence, Sequence{1});
    EXPECT_EQ(back.lineage->reason, "why");
    EXPECT_EQ(back.lineage->redrives, 1U);
    // The id still belongs to the first record.
    const Append again{.stream = "s", .payload = "p", .id = "id"};
    EXPECT_EQ(run<Duplicate>(again).sequence, Sequence{1});
  });
  const Delivery again = take();
  EXPECT_EQ(again.record.sequence, Sequence{2});
  EXPECT_EQ(again.attempt, 1U);
  run<Done>(nack_of(again, Duration{0}, "still"));
  EXPECT_EQ(run<Appended>(Redrive{"s.dead", Sequence{2}}).sequence, Sequence{3});
  EXPECT_EQ(records("s").back().lineage->redrives, 2U);
  EXPECT_EQ(records("s").back().lineage->sequence, Sequence{1});
}

TEST_P(Consumers, ARedriveReachesTheConsumerThatGaveUpAndAllOnlyIfAsked) {
  make_stream("s");
  make_consumer({.attempts_max = 1});
  fill(2);
  for (const Delivery& one : receive("s", "other")) {
    run<Done>(Ack{"s", "other", receipt_of(one)});
  }
  for (const Delivery& one : receive("s", "c")) run<Done>(nack_of(one));
  run<Appended>(Redrive{"s.dead", Sequence{1}});
  always([&] { EXPECT_THAT(receive("s", "other"), IsEmpty()); });
  EXPECT_EQ(take().record.sequence, Sequence{3});
  run<Appended>(Redrive{"s.dead", Sequence{2}, RedriveTo::kAll});
  always([&] {
    const Record back = records("s").back();
    ASSERT_TRUE(back.lineage);
    EXPECT_EQ(back.lineage->consumer, "c");
    EXPECT_EQ(back.lineage->to, RedriveTo::kAll);
  });
  EXPECT_THAT(sequences(receive("s", "other")), ElementsAre(4));
  EXPECT_EQ(take().record.sequence, Sequence{4});
}

TEST_P(Consumers, AFailureWithTwoDeadLettersIsPutBackOnce) {
  make_stream("s");
  make_consumer({.attempts_max = 1});
  fill(1);
  run<Done>(nack_of(take()));
  run<Done>(Seek{"s", "c", Sequence{1}});
  run<Done>(nack_of(take()));
  run<Appended>(Redrive{"s.dead", Sequence{1}});
  reopen();
  EXPECT_EQ(run<Duplicate>(Redrive{"s.dead", Sequence{2}}).sequence, Sequence{2});
  EXPECT_THAT(records("s"), SizeIs(2));
  EXPECT_THAT(records("s.dead"), IsEmpty());
}

TEST_P(Consumers, OnlyDeadLettersAreRedriven) {
  make_stream("s");
  fill(1);
  EXPECT_EQ(refusal(Redrive{"s", Sequence{1}}).code, Errc::kInvalidArgument);
  EXPECT_EQ(refusal(Redrive{"s", Sequence{2}}).code, Errc::kNotFound);
  EXPECT_EQ(refusal(Redrive{"nowhere", Sequence{1}}).code, Errc::kNotFound);
}

TEST_P(Consumers, AnyDeadLetterOfSeveralMayBeRedriven) {
  make_stream("s");
  make_consumer({.attempts_max = 1});
  fill(3);
  for (const Delivery& one : receive("s", "c")) run<Done>(nack_of(one));
  run<Appended>(Redrive{"s.dead", Sequence{2}});
  always([&] { EXPECT_THAT(payloads(records("s.dead")), ElementsAre("p0", "p2")); });
  run<Appended>(Redrive{"s.dead", Sequence{1}});
  always([&] { EXPECT_THAT(payloads(records("s.dead")), ElementsAre("p2")); });
  EXPECT_THAT(payloads(records("s")), ElementsAre("p0", "p1", "p2", "p1", "p0"));
}

TEST_P(Consumers, SeekingStartsOverAndOldReceiptsAreStale) {
  make_stream("s");
  fill(4);
  const std::vector<Delivery> got = receive("s", "c");
  for (const Delivery& one : got) run<Done>(ack_of(one));
  run<Done>(Seek{"s", "c", Sequence{3}});
  always([&] {
    EXPECT_EQ(stats().floor, Sequence{2});
    EXPECT_EQ(run<Stale>(nack_of(got[3])), Stale{});
  });
  const std::vector<Delivery> again = receive("s", "c");
  EXPECT_THAT(sequences(again), ElementsAre(3, 4));
  EXPECT_EQ(again[0].attempt, 1U);
  EXPECT_EQ(refusal(Seek{"s", "c", Sequence{6}}).code, Errc::kInvalidArgument);
  run<Done>(Seek{"s", "c", Sequence{5}});
  EXPECT_THAT(receive("s", "c"), IsEmpty());
}

TEST_P(Consumers, ALostReceiveIsRepeatedUnderItsCommitId) {
  make_stream("s");
  fill(3);
  const Op op = Receive{"s", "c", 2, limits::kLeaseDefault, "worker"};
  const Answer first = commit({op}, Mode::kAtomic, "receive 1");
  ASSERT_THAT(as<Received>(first.verdicts[0]).deliveries, SizeIs(2));
  always([&] {
    const Answer again = commit({op}, Mode::kAtomic, "receive 1");
    EXPECT_TRUE(again.repeated);
    EXPECT_EQ(again.verdicts, first.verdicts);
    EXPECT_EQ(stats().in_flight, 2U);
  });
  for (const Delivery& one : as<Received>(first.verdicts[0]).deliveries) run<Done>(ack_of(one));
  EXPECT_THAT(sequences(receive("s", "c")), ElementsAre(3));
}

TEST_P(Consumers, AConsumerAtItsLimitIsHandedNothingNew) {
  make_stream("s");
  make_consumer({.in_flight_max = 2});
  fill(3);
  const std::vector<Delivery> got = receive("s", "c");
  ASSERT_THAT(sequences(got), ElementsAre(1, 2));
  always([&] { EXPECT_THAT(receive("s", "c"), IsEmpty()); });
  run<Done>(ack_of(got[0]));
  EXPECT_THAT(sequences(receive("s", "c")), ElementsAre(3));
}

TEST_P(Consumers, ATrimmedRecordIsNotHandedOutAgain) {
  make_stream("s");
  fill(3);
  const Delivery first = take(Duration{1});
  run<Done>(Trim{"s", Sequence{3}});
  wait_until(first.lease_until);
  reopen();
  EXPECT_THAT(sequences(receive("s", "c")), ElementsAre(3));
}

TEST_P(Consumers, MakingOneAgainIsFineUnlessItsSettingsDiffer) {
  make_stream("s");
  make_consumer({.attempts_max = 3});
  always([&] {
    make_consumer({.attempts_max = 3});
    EXPECT_EQ(refusal(CreateConsumer{"s", "c", {.attempts_max = 4}}).code, Errc::kAlreadyExists);
  });
  run<Done>(DeleteConsumer{"s", "c"});
  EXPECT_EQ(refusal(DeleteConsumer{"s", "c"}).code, Errc::kNotFound);
  EXPECT_EQ(refusal(Seek{"s", "c", Sequence{1}}).code, Errc::kNotFound);
  always([&] { EXPECT_THAT(store().describe("s").value().consumers, IsEmpty()); });
  EXPECT_EQ(refusal(CreateConsumer{"s", "d", {.dead_letters = "s"}}).code, Errc::kInvalidArgument);
}

TEST_P(Consumers, MoreDeadLettersThanACommitHoldsAreRefusedAndNothingIsLost) {
  constexpr std::uint64_t kLarge = std::uint64_t{8} << 20;
  make_stream("s", {.record_bytes_max = kLarge});
  make_consumer({.attempts_max = 1});
  const std::string payload(kLarge, 'l');
  for (int i = 0; i < 9; ++i) append("s", payload);
  std::vector<Op> nacks;
  for (int i = 0; i < 9; ++i) {  // A receive hands out a limited number of bytes.
    for (const Delivery& one : receive("s", "c")) nacks.push_back(nack_of(one));
  }
  ASSERT_THAT(nacks, SizeIs(9));
  make_stream("aged", {.retention = {.age = Duration{1}}});
  append("aged", "p");
  const auto refused = try_commit(nacks);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::kLimitExceeded);
  // What the store does next on its own is not touched by the refusal.
  wait_for([&] { return store().describe("aged").value().first == Sequence{2}; });
  reopen();
  EXPECT_EQ(store().describe("aged").value().first, Sequence{2});
  EXPECT_EQ(store().describe("s.dead").error().code, Errc::kNotFound);
  // Each on its own, those that find no room may be sent again.
  const Answer answer = each(nacks);
  std::size_t again = 0;
  for (std::size_t i = 0; i < nacks.size(); ++i) {
    const auto* full = std::get_if<Refused>(&answer.verdicts[i]);
    if (full == nullptr) continue;
    EXPECT_EQ(full->error.code, Errc::kUnavailable);
    run<Done>(nacks[i]);
    ++again;
  }
  EXPECT_GT(again, 0U);
  EXPECT_LT(again, nacks.size());
  always([&] { EXPECT_EQ(last("s.dead"), Sequence{9}); });
}

INSTANTIATE_TEST_SUITE_P(, Consumers, testing::ValuesIn(all_stores()), name_of);

}  // namespace
}  // namespace hapax::contract
