// The rules of streams, producers, transactions and registers, one commit at a time.
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/format.h"
#include "core/test_store.h"
#include "core/text_bytes.h"

namespace hapax::core {
namespace {

using rig::MemoryStore;
using std::chrono::seconds;

class Rules : public testing::Test {
 protected:
  Rules() {
    store.begin(Duration{1});
    EXPECT_EQ(run(CreateStream{"orders", {}}), Verdict{Done{}});
  }

  Verdict run(const Op& op) {
    const Executed executed = store.commit({.ops = {&op, 1}});
    return std::get<Answer>(executed).verdicts.front();
  }
  void pass(Duration span) {
    store.keep();
    store.begin(span);
  }
  static Append record(std::string_view payload, std::optional<std::string_view> id = {}) {
    Append op;
    op.stream = "orders";
    op.payload = payload;
    op.id = id;
    return op;
  }
  static Append produced(std::uint64_t epoch, std::uint64_t sequence, std::string_view payload) {
    Append op = record(payload);
    op.producer = ProducerMark{"till", Epoch{epoch}, ProducerSequence{sequence}};
    return op;
  }
  Duplicate known(const Op& op) { return std::get<Duplicate>(run(op)); }

  MemoryStore store;
};

TEST_F(Rules, ToExpectTheLastOfAGroupTheRecordNeedsAGroup) {
  Append op = record("tea");
  op.expect = ExpectLast{ExpectLast::Of::kGroup, Sequence{0}};
  const Verdict verdict = run(op);
  ASSERT_TRUE(std::holds_alternative<Refused>(verdict)) << word_of(verdict);
  EXPECT_EQ(std::get<Refused>(verdict).error.code, Errc::kInvalidArgument);
  op.group = "g";
  EXPECT_EQ(run(op), Verdict{Appended{Sequence{1}}});
}

// T5: a stream that was made later under the same name is another one.
TEST_F(Rules, AnAppendStagedForAStreamThatIsGoneDoesNotLandInItsSuccessor) {
  const auto began = std::get<Began>(run(Begin{.transaction = "t"}));
  const std::vector<Op> ops = {Set{.name = "r", .value = "v"}, record("tea")};
  const TransactionRef t{"t", began.epoch};
  const Executed staged = store.commit({.ops = ops, .transaction = t});
  ASSERT_TRUE(std::get<Answer>(staged).committed);
  run(DeleteStream{"orders"});
  const Op end = End{.transaction = "t", .epoch = began.epoch};
  run(CreateStream{"orders", {}});
  const Executed ended = store.commit({.ops = {&end, 1}});
  const auto& answer = std::get<Answer>(ended);
  EXPECT_FALSE(answer.committed);
  ASSERT_EQ(answer.verdicts.size(), 3U);
  EXPECT_EQ(answer.verdicts[0], Verdict{NotApplied{}});
  EXPECT_EQ(answer.verdicts[1], Verdict{NotApplied{}});
  ASSERT_TRUE(std::holds_alternative<Refused>(answer.verdicts[2]));
  EXPECT_EQ(std::get<Refused>(answer.verdicts[2]).error.code, Errc::kNotFound);
  EXPECT_EQ(store.state.find_stream("orders")->last, Sequence{0});
}

// One that was not there when it was staged may be made until the end.
TEST_F(Rules, AnAppendMayBeStagedBeforeItsStreamIsMade) {
  run(DeleteStream{"orders"});
  const auto began = std::get<Began>(run(Begin{.transaction = "t"}));
  const std::vector<Op> ops = {record("tea")};
  const TransactionRef t{"t", began.epoch};
  const Executed staged = store.commit({.ops = ops, .transaction = t});
  ASSERT_TRUE(std::get<Answer>(staged).committed);
  run(CreateStream{"orders", {}});
  EXPECT_EQ(run(End{.transaction = "t", .epoch = began.epoch}), Verdict{Done{}});
  EXPECT_EQ(store.state.find_stream("orders")->last, Sequence{1});
}

TEST_F(Rules, AStreamNeverHoldsMoreThanItsQuota) {
  constexpr std::uint64_t kQuota = 1'000;
  run(ConfigureStream{"orders", {.quota_bytes = kQuota}});
  const Stream& stream = *store.state.find_stream("orders");
  Verdict verdict;
  do {
    verdict = run(record("x", std::to_string(stream.last.value)));
    ASSERT_LE(stream.bytes, kQuota);
  } while (std::holds_alternative<Appended>(verdict));
  const Error& error = std::get<Refused>(verdict).error;
  EXPECT_EQ(error.code, Errc::kQuotaExceeded);
  EXPECT_NE(error.detail.find(base::format("holds {} of 1000 bytes, and", stream.bytes)),
            std::string::npos)
      << error.detail;
}

// --- message ids -----------------------------------------------------------------------------

TEST_F(Rules, ARepeatGetsTheFirstSequenceAndOtherContentIsAConflict) {
  EXPECT_EQ(run(record("tea", "1")), Verdict{Appended{Sequence{1}}});
  EXPECT_EQ(known(record("tea", "1")).sequence, Sequence{1});
  EXPECT_TRUE(std::holds_alternative<Conflict>(run(record("gin", "1"))));
  EXPECT_EQ(run(record("gin", "2")), Verdict{Appended{Sequence{2}}});
}

// D6: never less than the window from the latest repeat, and memory by ids, not by repeats.
TEST_F(Rules, ASlidingWindowTakesEntriesByIdsNotByRepeats) {
  constexpr seconds kWindow{80};
  run(ConfigureStream{"orders",
                      {.window = Window{kWindow}, .window_start = WindowStart::kLastSeen}});
  EXPECT_EQ(run(record("tea", "1")), Verdict{Appended{Sequence{1}}});
  const std::size_t uid = store.state.find_stream("orders")->uid.value;
  for (int repeat = 0; repeat < 1'000; ++repeat) {
    pass(Duration{777});
    const Time end = known(record("tea", "1")).expires_at;
    EXPECT_GE(end, store.now + kWindow);
    EXPECT_LE(end, store.now + kWindow + kWindow / 8 + seconds{1});
    store.state.ids.expire(store.now, 100);
    ASSERT_LE(store.state.ids.count_of(static_cast<std::uint32_t>(uid)), 12U);
  }
}

TEST_F(Rules, ARepeatThatMustRenewIsRefusedWhenMemoryIsFull) {
  run(ConfigureStream{"orders", {.window_start = WindowStart::kLastSeen}});
  run(record("tea", "1"));
  pass(seconds{1});
  const Time end = known(record("tea", "1")).expires_at;
  store.state.memory_max = store.state.memory_bytes() - 1;
  EXPECT_EQ(known(record("tea", "1")).expires_at, end) << "far enough: nothing is renewed";
  pass(std::chrono::hours{4});
  const Verdict verdict = run(record("tea", "1"));
  ASSERT_TRUE(std::holds_alternative<Refused>(verdict)) << word_of(verdict);
  EXPECT_EQ(std::get<Refused>(verdict).error.code, Errc::kMemoryBudget);
}

// D4: a shorter window forgets nothing early, a longer one does not claim to know what is gone.
TEST_F(Rules, ChangingTheWindowNeverForgetsSilently) {
  EXPECT_EQ(run(record("tea", "1")), Verdict{Appended{Sequence{1}}});
  const Time promised = known(record("tea", "1")).expires_at;
  EXPECT_EQ(promised, store.now + seconds{86'400});
  EXPECT_EQ(run(ConfigureStream{"orders", {.window = Window{seconds{10}}}}), Verdict{Done{}});
  pass(seconds{60});
  EXPECT_EQ(known(record("tea", "1")).expires_at, promised);

  const Time horizon = store.now - seconds{10};
  EXPECT_EQ(run(ConfigureStream{"orders", {.window = Window::forever()}}), Verdict{Done{}});
  Append late = record("gin", "2");
  late.first_sent = horizon - Duration{1};
  EXPECT_EQ(run(late), Verdict{TooOldToKnow{horizon}});
  late.first_sent = horizon;
  EXPECT_EQ(run(late), Verdict{Appended{Sequence{2}}});
}

// D5: a redriven dead letter is not swallowed by dedup, and its id is still that of the first.
TEST_F(Rules, ACopyIsNeitherANewAcceptanceNorARepeat) {
  EXPECT_EQ(run(record("tea", "1")), Verdict{Appended{Sequence{1}}});
  CreateConsumer once{"orders", "c", {}};
  once.settings.attempts_max = 1;
  EXPECT_EQ(run(once), Verdict{Done{}});
  const auto held = std::get<Received>(run(Receive{.stream = "orders", .consumer = "c"}));
  Nack nack{.stream = "orders", .consumer = "c", .receipt = {}, .reason = "bad"};
  nack.receipt = {Sequence{1}, held.deliveries.at(0).token};
  EXPECT_EQ(run(nack), Verdict{Done{}});
  EXPECT_EQ(run(Redrive{"orders.dead", Sequence{1}}), Verdict{Appended{Sequence{2}}});
  EXPECT_EQ(known(record("tea", "1")).sequence, Sequence{1});
}

// --- producers -------------------------------------------------------------------------------

// P1.
TEST_F(Rules, AProducerNobodyKnowsStartsAtZero) {
  EXPECT_EQ(run(produced(1, 5, "a")), (Verdict{UnknownProducer{Epoch{1}, ProducerSequence{5}}}));
  EXPECT_EQ(run(produced(1, 0, "a")), Verdict{Appended{Sequence{1}}});
}

// P2.
TEST_F(Rules, AHoleIsRefusedAndAnOlderEpochIsFenced) {
  run(produced(2, 0, "a"));
  EXPECT_EQ(run(produced(2, 2, "c")), (Verdict{Gap{ProducerSequence{1}, ProducerSequence{2}}}));
  EXPECT_EQ(run(produced(3, 1, "b")), (Verdict{Gap{ProducerSequence{0}, ProducerSequence{1}}}));
  EXPECT_EQ(run(produced(1, 1, "b")), (Verdict{Fenced{2, 1}}));
  EXPECT_EQ(run(produced(2, 1, "b")), Verdict{Appended{Sequence{2}}});
  EXPECT_EQ(store.state.counters.fenced, 1U);
}

// P3.
TEST_F(Rules, WhatIsOlderThanTheMemoryOfAProducerIsTooOldToKnow) {
  EXPECT_EQ(run(ConfigureStream{"orders", {.producer_memory = 2}}), Verdict{Done{}});
  run(produced(1, 0, "a"));
  run(produced(1, 1, "b"));
  run(produced(1, 2, "c"));
  EXPECT_EQ(known(produced(1, 1, "b")).sequence, Sequence{2});
  EXPECT_TRUE(std::holds_alternative<TooOldToKnow>(run(produced(1, 0, "a"))));
}

// P4.
TEST_F(Rules, TwoWritersUnderOneNameAreAConflict) {
  run(produced(1, 0, "a"));
  EXPECT_EQ(known(produced(1, 0, "a")).sequence, Sequence{1});
  EXPECT_TRUE(std::holds_alternative<Conflict>(run(produced(1, 0, "b"))));
}

// A repair lost three facts, each of which may have opened the producer.
TEST_F(Rules, AfterALossNoEpochIsGivenOutTwice) {
  run(produced(1'000, 0, "a"));
  store.emit(JournalGap{7, 9});
  EXPECT_GT(std::get<Opened>(run(OpenProducer{"orders", "till"})).epoch, Epoch{1'003});
}

// --- transactions ----------------------------------------------------------------------------

class Transactions : public Rules {
 protected:
  Epoch begin(Duration timeout = seconds{60}) {
    return std::get<Began>(run(Begin{"t", timeout})).epoch;
  }
  Verdict stage(Epoch epoch, const Op& op) {
    const Commit commit{.ops = {&op, 1}, .transaction = TransactionRef{"t", epoch}};
    const Executed executed = store.commit(commit);
    if (const auto* error = std::get_if<Error>(&executed)) return Refused{*error};
    return std::get<Answer>(executed).verdicts.front();
  }
  Errc refusal(const Verdict& verdict) { return std::get<Refused>(verdict).error.code; }
  [[nodiscard]] Sequence last() const { return store.state.find_stream("orders")->last; }
};

// T1.
TEST_F(Transactions, ADelayedEndCannotTouchALaterOne) {
  const Epoch first = begin();
  EXPECT_EQ(stage(first, record("tea")), Verdict{Staged{}});
  const Epoch second = begin();
  EXPECT_EQ(run(End{"t", first, Finish::kCommit}), (Verdict{Fenced{second.value, first.value}}));
  EXPECT_EQ(stage(second, record("gin")), Verdict{Staged{}});
  EXPECT_EQ(last(), Sequence{0});
  EXPECT_EQ(run(End{"t", second, Finish::kCommit}), Verdict{Done{}});
  EXPECT_EQ(last(), Sequence{1});
  EXPECT_EQ(run(End{"t", second, Finish::kCommit}), Verdict{Done{}});
  EXPECT_EQ(last(), Sequence{1});
}

// T4.
TEST_F(Transactions, AllThatWaitIsNoMoreThanACommitMayHave) {
  const Epoch epoch = begin();
  const std::vector<Op> many(limits::kCommitOpsMax, Set{.name = "r"});
  const Commit commit{.ops = many, .transaction = TransactionRef{"t", epoch}};
  EXPECT_TRUE(std::get<Answer>(store.commit(commit)).committed);
  EXPECT_EQ(refusal(stage(epoch, Set{.name = "r"})), Errc::kLimitExceeded);
  EXPECT_EQ(run(End{"t", epoch, Finish::kAbort}), Verdict{Done{}});
  EXPECT_EQ(stage(begin(), Set{.name = "r"}), Verdict{Staged{}});
}

// The store's own stream: what a person wrote is kept as it is, and for as long as somebody says.
TEST_F(Transactions, TheAuditStreamKeepsTextAndCanBeTrimmed) {
  run(OpenProducer{"orders", "w"});
  run(RetireProducer{"orders", "w", "J\u00fcrgen", "\u20ac \xff"});
  const Stream& audit = *store.state.find_stream(kAuditStream);
  const std::string bytes = store.turn().read_record(audit, Sequence{1}).value();
  const std::string payload(std::get<RecordAppended>(decode_fact(bytes).value()).payload);
  EXPECT_NE(payload.find("\"J\u00fcrgen\""), std::string::npos) << payload;
  EXPECT_NE(payload.find("\"\u20ac \\u00ff\""), std::string::npos) << payload;
  EXPECT_EQ(run(ConfigureStream{"$audit", {.retention = {.count = 10}}}), Verdict{Done{}});
  EXPECT_EQ(run(Trim{"$audit", Sequence{2}}), Verdict{Done{}});
  EXPECT_EQ(audit.first, Sequence{2});
  EXPECT_TRUE(std::holds_alternative<Refused>(run(DeleteStream{"$audit"})));
  EXPECT_TRUE(std::holds_alternative<Refused>(run(Append{.stream = "$audit", .payload = "x"})));
}

// T2.
TEST_F(Transactions, OneThatTimedOutIsOver) {
  const Epoch epoch = begin(seconds{1});
  EXPECT_EQ(stage(epoch, record("tea")), Verdict{Staged{}});
  pass(seconds{1});
  EXPECT_EQ(refusal(stage(epoch, record("gin"))), Errc::kPreconditionFailed);
  EXPECT_EQ(refusal(run(End{"t", epoch, Finish::kCommit})), Errc::kPreconditionFailed);
  EXPECT_EQ(run(End{"t", epoch, Finish::kAbort}), Verdict{Done{}});
  EXPECT_EQ(last(), Sequence{0});
}

// T3.
TEST_F(Transactions, TheNameOfOneThatIsOverIsForgottenAndStartsAnewWithAHigherEpoch) {
  const Epoch first = begin();
  EXPECT_EQ(stage(first, record("tea")), Verdict{Staged{}});
  pass(seconds{10});
  EXPECT_EQ(run(End{"t", first, Finish::kCommit}), Verdict{Done{}});
  pass(limits::kTransactionRetention - Duration{1});
  EXPECT_EQ(run(End{"t", first, Finish::kCommit}), Verdict{Done{}});  // A repeat.
  const std::uint64_t text = store.state.text_bytes;
  pass(Duration{1});
  // Whether it was collected or not.
  for (const bool collected : {false, true}) {
    SCOPED_TRACE(collected);
    if (collected) collect(store.state, store.now, 1);
    EXPECT_EQ(store.state.transactions.size(), collected ? 0U : 1U);
    EXPECT_EQ(run(End{"t", first, Finish::kCommit}), (Verdict{Fenced{0, first.value}}));
    EXPECT_EQ(stage(first, record("late")), (Verdict{Fenced{0, first.value}}));
  }
  EXPECT_LT(store.state.text_bytes, text);
  const Epoch second = begin();
  EXPECT_GT(second, first);
  EXPECT_EQ(stage(first, record("late")), (Verdict{Fenced{second.value, first.value}}));
  EXPECT_EQ(run(End{"t", first, Finish::kCommit}), (Verdict{Fenced{second.value, first.value}}));
  EXPECT_EQ(last(), Sequence{1});
}

TEST_F(Transactions, CollectingCostsWhatIsDue) {
  for (const char* name : {"a", "b", "c"}) run(Begin{name, seconds{1}});
  run(Begin{"open", seconds{60}});
  EXPECT_EQ(store.state.transactions_open, 4U);
  pass(seconds{1});
  collect(store.state, store.now, 2);
  EXPECT_EQ(store.state.transactions_open, 2U);
  collect(store.state, store.now, 100);
  EXPECT_EQ(store.state.transactions_open, 1U);
  EXPECT_EQ(store.state.transactions.size(), 4U);
  EXPECT_EQ(store.state.transactions_due.size(), 4U);
  // Forgotten that long after its time-out, though it was collected later.
  pass(limits::kTransactionRetention - seconds{1});
  collect(store.state, store.now, 100);
  EXPECT_EQ(store.state.transactions.size(), 4U);
  pass(seconds{1});
  collect(store.state, store.now, 100);
  EXPECT_EQ(store.state.transactions.size(), 1U);
  EXPECT_EQ(store.state.transactions_open, 0U);
  EXPECT_EQ(store.state.transactions_due.size(), 1U);
}

// --- what is forgotten -----------------------------------------------------------------------

// D7.
TEST_F(Rules, AGroupKeyIsForgottenWhenItsLastRecordIsGoneAndItsWindowIsOver) {
  run(ConfigureStream{"orders", {.window = Window{seconds{160}}}});
  Append op = record("tea");
  op.group = "gone";
  run(op);
  op.group = "kept";
  run(op);
  const std::uint64_t both = store.state.text_bytes;
  run(Trim{"orders", Sequence{2}});
  op.group = "gone";
  op.expect = ExpectLast{ExpectLast::Of::kGroup, Sequence{0}};
  pass(seconds{159});
  collect(store.state, store.now, 100);
  EXPECT_EQ(run(op), Verdict{(ExpectationFailed{Sequence{1}, {}})});
  pass(seconds{11});  // The window and a sixteenth of it.
  op.group = "kept";
  EXPECT_EQ(run(op), Verdict{(ExpectationFailed{Sequence{2}, {}})});
  // It counts as forgotten before anything was cleared away, and a roll-back brings nothing back.
  op.group = "gone";
  EXPECT_EQ(run(op), Verdict{Appended{Sequence{3}}});
  store.roll_back();
  store.begin(Duration{0});
  collect(store.state, store.now, 100);
  EXPECT_LT(store.state.text_bytes, both);
  EXPECT_EQ(store.state.find_stream("orders")->group_last.size(), 1U);
  EXPECT_EQ(run(op), Verdict{Appended{Sequence{3}}});
}

TEST_F(Rules, GroupKeysOfAWindowWithoutEndAreNeverForgotten) {
  run(ConfigureStream{"orders", {.window = Window::forever()}});
  Append op = record("tea");
  op.group = "g";
  run(op);
  run(Trim{"orders", Sequence{2}});
  pass(std::chrono::days{1'000});
  collect(store.state, store.now, 100);
  op.expect = ExpectLast{ExpectLast::Of::kGroup, Sequence{0}};
  EXPECT_EQ(run(op), Verdict{(ExpectationFailed{Sequence{1}, {}})});
}

TEST_F(Rules, ForgettingManyGroupKeysTakesManyCollections) {
  run(ConfigureStream{"orders", {.window = Window{seconds{16}}}});
  Append op = record("tea");
  std::vector<std::string> groups;
  for (int i = 0; i < 1'000; ++i) groups.push_back("g" + std::to_string(i));
  for (const std::string& group : groups) {
    op.group = group;
    run(op);
  }
  run(Trim{"orders", Sequence{901}});
  pass(seconds{18});
  const auto& known = store.state.find_stream("orders")->group_last;
  EXPECT_TRUE(collect(store.state, store.now, 10).claims);
  EXPECT_GE(known.size(), 990U);
  for (int i = 0; i < 200; ++i) collect(store.state, store.now, 10);
  EXPECT_EQ(known.size(), 100U);
  EXPECT_FALSE(collect(store.state, store.now, 10).claims);
}

// They end before what was added at their end.
TEST(Facts, OfFormat1ForgetNothing) {
  const Time soon = time_from_ms(5);
  const auto as_before = [](const Fact& fact) {
    std::string bytes;
    encode(fact, bytes);
    bytes.resize(bytes.size() - sizeof(std::int64_t));
    return bytes;
  };
  const std::string trim = as_before(RecordsTrimmed{StreamUid{1}, Sequence{2}, soon});
  const std::string retire = as_before(ProducerRetired{StreamUid{1}, "p", soon});
  EXPECT_EQ(std::get<RecordsTrimmed>(decode_fact(trim).value()).groups_end, Time::max());
  EXPECT_EQ(std::get<ProducerRetired>(decode_fact(retire).value()).forgotten_at, Time::max());
}

// P6.
TEST_F(Rules, ARetiredProducerIsForgottenAfterTheWindow) {
  run(ConfigureStream{"orders", {.window = Window{seconds{100}}}});
  run(produced(3, 0, "tea"));
  run(RetireProducer{"orders", "till", "ann", "closed"});
  pass(seconds{99});
  collect(store.state, store.now, 100);
  EXPECT_EQ(run(produced(3, 0, "tea")), Verdict{(Fenced{3, 3})});
  pass(seconds{1});
  EXPECT_EQ(run(produced(2, 1, "tea")), Verdict{(UnknownProducer{Epoch{2}, ProducerSequence{1}})});
  EXPECT_EQ(run(produced(2, 0, "tea")), Verdict{Appended{Sequence{2}}});
  store.roll_back();
  store.begin(Duration{0});
  EXPECT_EQ(store.state.find_stream("orders")->producers_active, 0U);
  const std::uint64_t before = store.state.text_bytes;
  collect(store.state, store.now, 100);
  EXPECT_EQ(before - store.state.text_bytes, kProducerBytes + 4);
  EXPECT_TRUE(store.state.find_stream("orders")->producers.empty());
  EXPECT_TRUE(store.state.producers_due.empty());
  EXPECT_EQ(run(produced(2, 0, "tea")), Verdict{Appended{Sequence{2}}});
}

// A stream that was never kept leaves nothing that collect() would look for it by.
TEST_F(Rules, ARefusedCommitTakesBackWhatWouldBeForgottenLater) {
  pass(seconds{1});
  Append op = produced(3, 0, "tea");
  op.stream = "fresh";
  op.group = "g";
  const std::vector<Op> ops = {
      CreateStream{"fresh", {.window = Window{seconds{16}}}}, op, Trim{"fresh", Sequence{2}},
      RetireProducer{"fresh", "till", "ann", "closed"}, Trim{"unheard of", Sequence{2}}};
  const Executed executed = store.commit({.ops = ops});
  const auto& answer = std::get<Answer>(executed);
  EXPECT_FALSE(answer.committed);
  EXPECT_TRUE(std::holds_alternative<Refused>(answer.verdicts.back()));
  EXPECT_EQ(store.state.streams.size(), 1U);
  EXPECT_TRUE(store.state.groups_due.empty());
  EXPECT_TRUE(store.state.producers_due.empty());
  pass(seconds{20});
  EXPECT_FALSE(collect(store.state, store.now, 100).claims);
}

// --- registers -------------------------------------------------------------------------------

// H1.
TEST_F(Rules, AWriteBehindWhatWasSeenLosesAndTheStoresOwnNeverDoes) {
  Set ahead{.name = "r", .value = "a", .mode = SetMode::kLastWriter};
  ahead.at = HybridTime{to_ms(store.now) + 50'000, 0, 1};
  EXPECT_TRUE(std::holds_alternative<Registered>(run(ahead)));
  Set behind = ahead;
  behind.at = HybridTime{to_ms(store.now), 0, 2};
  EXPECT_TRUE(std::holds_alternative<Superseded>(run(behind)));
  Set own{.name = "r", .value = "b", .mode = SetMode::kLastWriter};
  EXPECT_EQ(std::get<Registered>(run(own)).version, Version{2});
  ahead.at = HybridTime{to_ms(store.now) + 60'001, 0, 1};
  EXPECT_TRUE(std::holds_alternative<Refused>(run(ahead)));
}

TEST_F(Rules, NamesAreTextAndWhatTellsThingsApartIsAnyBytes) {
  ConsumerSettings elsewhere;
  elsewhere.dead_letters = "dead\xc3";
  const std::vector<Op> refused{CreateStream{"str\xff", {}},
                                OpenProducer{"orders", "\xed\xa0\x80"},
                                CreateConsumer{"orders", "c", elsewhere},
                                Receive{.stream = "orders", .consumer = "\xc0\x80"},
                                Begin{"t\x80"},
                                Advance{.source = "\xf5", .to = "1"}};
  for (const Op& op : refused) {
    const Verdict verdict = run(op);
    ASSERT_TRUE(std::holds_alternative<Refused>(verdict)) << op.index();
    const Error& error = std::get<Refused>(verdict).error;
    EXPECT_EQ(error.code, Errc::kInvalidArgument);
    EXPECT_NE(error.detail.find("is not UTF-8"), std::string::npos) << error.detail;
  }
  EXPECT_EQ(run(CreateStream{"\x01t\x01stra\xc3\x9f", {}}), Verdict{Done{}});
  EXPECT_TRUE(std::holds_alternative<Appended>(run(record("x", "\xff"))));
  EXPECT_TRUE(std::holds_alternative<Claimed>(run(Claim{.scope = "\xff", .key = "\xfe"})));
}

}  // namespace
}  // namespace hapax::core
