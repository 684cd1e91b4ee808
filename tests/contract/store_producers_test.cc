// Producers: (name, epoch, sequence) instead of message ids.
#include <array>

#include "base/format.h"
#include "store_contract.h"

namespace hapax::contract {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

class Producers : public StoreContract {
 protected:
  static Append from(std::string_view name, std::uint64_t epoch, std::uint64_t sequence,
                     std::string_view payload = "p") {
    return Append{.stream = "s",
                  .payload = payload,
                  .producer = ProducerMark{name, Epoch{epoch}, ProducerSequence{sequence}}};
  }
  Opened open_writer(std::optional<std::string_view> id = {}) {
    return run<Opened>(OpenProducer{"s", "w"}, id);
  }
  ProducerStatus status(std::string_view name) {
    const auto found = store().find_producer("s", name).value();
    EXPECT_TRUE(found);
    return found.value_or(ProducerStatus{});
  }
};

TEST_P(Producers, EachSequenceIsStoredOnceAndARepeatIsToldItsOwnPlace) {
  make_stream("s");
  append("s", "somebody else");
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(run<Appended>(from("w", 7, i)).sequence, Sequence{i + 2});
  }
  always([&] {
    for (std::uint64_t i = 0; i < 3; ++i) {
      EXPECT_EQ(run<Duplicate>(from("w", 7, i)).sequence, Sequence{i + 2});
    }
    EXPECT_EQ(status("w").epoch, Epoch{7});
    EXPECT_EQ(status("w").next, ProducerSequence{3});
    EXPECT_EQ(last("s"), Sequence{4});
    EXPECT_EQ(store().describe("s").value().producers, 1U);
  });
  EXPECT_EQ(run<Appended>(from("w", 7, 3)).sequence, Sequence{5});
}

TEST_P(Producers, AHoleIsAGapAndNothingIsStored) {
  make_stream("s");
  run<Appended>(from("w", 1, 0));
  always([&] {
    EXPECT_EQ(run<Gap>(from("w", 1, 2)), (Gap{ProducerSequence{1}, ProducerSequence{2}}));
    EXPECT_EQ(last("s"), Sequence{1});
  });
  run<Appended>(from("w", 1, 1));
}

TEST_P(Producers, AnOlderEpochIsFencedAndCounted) {
  make_stream("s");
  run<Appended>(from("w", 5, 0));
  always([&] {
    const std::uint64_t before = fenced();
    EXPECT_EQ(run<Fenced>(from("w", 4, 0)), (Fenced{5, 4}));
    EXPECT_EQ(run<Fenced>(from("w", 4, 1)), (Fenced{5, 4}));
    EXPECT_EQ(fenced(), before + 2);
    EXPECT_EQ(last("s"), Sequence{1});
  });
}

TEST_P(Producers, AHigherEpochStartsAtZero) {
  make_stream("s");
  run<Appended>(from("w", 1, 0));
  run<Appended>(from("w", 1, 1));
  always([&] {
    EXPECT_EQ(run<Gap>(from("w", 2, 2)), (Gap{ProducerSequence{0}, ProducerSequence{2}}));
    EXPECT_EQ(status("w").epoch, Epoch{1});
  });
  EXPECT_EQ(run<Appended>(from("w", 2, 0)).sequence, Sequence{3});
  always([&] {
    run<Fenced>(from("w", 1, 2));
    EXPECT_EQ(run<Duplicate>(from("w", 2, 0)).sequence, Sequence{3});
  });
}

TEST_P(Producers, AProducerNobodyKnowsMustStartAtZero) {
  make_stream("s");
  EXPECT_EQ(run<UnknownProducer>(from("w", 3, 1)),
            (UnknownProducer{Epoch{3}, ProducerSequence{1}}));
  EXPECT_EQ(store().find_producer("s", "w").value(), std::nullopt);
  EXPECT_EQ(store().find_producer("nowhere", "w").error().code, Errc::kNotFound);
  EXPECT_EQ(last("s"), Sequence{0});
  run<Appended>(from("w", 3, 0));
}

TEST_P(Producers, ABatchThatOverlapsKeepsItsNewPart) {
  make_stream("s");
  std::vector<Op> first;
  std::vector<Op> second;
  for (std::uint64_t i = 0; i < 5; ++i) first.push_back(from("w", 1, i));
  for (std::uint64_t i = 3; i < 8; ++i) second.push_back(from("w", 1, i));
  EXPECT_TRUE(commit(first).committed);
  reopen();
  const Answer answer = commit(second);
  EXPECT_TRUE(answer.committed);
  EXPECT_EQ(as<Duplicate>(answer.verdicts[0]).sequence, Sequence{4});
  EXPECT_EQ(as<Duplicate>(answer.verdicts[1]).sequence, Sequence{5});
  for (std::uint64_t i = 2; i < 5; ++i) {
    EXPECT_EQ(as<Appended>(answer.verdicts[i]).sequence, Sequence{i + 4});
  }
  always([&] { EXPECT_EQ(last("s"), Sequence{8}); });
}

TEST_P(Producers, TwoWritersUnderOneNameConflictInsteadOfLosing) {
  make_stream("s");
  run<Appended>(from("w", 1, 0, "of one"));
  always([&] {
    const auto told = run<Conflict>(from("w", 1, 0, "of the other"));
    EXPECT_NE(told.stored, told.received);
    EXPECT_EQ(last("s"), Sequence{1});
  });
  EXPECT_EQ(run<Appended>(from("w", 2, 0, "of the other")).sequence, Sequence{2});
  always([&] { run<Fenced>(from("w", 1, 1, "of one")); });
  EXPECT_EQ(payloads(records("s")), (std::vector<std::string>{"of one", "of the other"}));
}

TEST_P(Producers, TheLastFewAreRememberedAndWhatIsOlderIsNeverStoredAgain) {
  make_stream("s", {.producer_memory = 3});
  for (std::uint64_t i = 0; i < 6; ++i) run<Appended>(from("w", 1, i));
  always([&] {
    for (std::uint64_t i = 3; i < 6; ++i) {
      EXPECT_EQ(run<Duplicate>(from("w", 1, i)).sequence, Sequence{i + 1});
    }
    run<TooOldToKnow>(from("w", 1, 2));
    run<TooOldToKnow>(from("w", 1, 0));
    EXPECT_EQ(last("s"), Sequence{6});
  });
}

TEST_P(Producers, AShorterMemoryIsKeptFromTheNextAppendOn) {
  make_stream("s", {.producer_memory = 5});
  for (std::uint64_t i = 0; i < 5; ++i) run<Appended>(from("w", 1, i));
  run<Done>(ConfigureStream{"s", {.producer_memory = 2}});
  always([&] { EXPECT_EQ(run<Duplicate>(from("w", 1, 0)).sequence, Sequence{1}); });
  const std::uint64_t before = store().statistics().value().memory_bytes;
  run<Appended>(from("w", 1, 5));
  EXPECT_LT(store().statistics().value().memory_bytes, before);
  always([&] {
    run<TooOldToKnow>(from("w", 1, 3));
    EXPECT_EQ(run<Duplicate>(from("w", 1, 4)).sequence, Sequence{5});
    EXPECT_EQ(run<Duplicate>(from("w", 1, 5)).sequence, Sequence{6});
  });
}

TEST_P(Producers, TheyAreRememberedWhenTheirRecordsAreGone) {
  make_stream("s", {.producer_memory = 3});
  const Answer first = commit({from("w", 1, 0)});
  run<Appended>(from("w", 1, 1));
  // It is known until two more were stored, whatever the clock says.
  const Duplicate told{Sequence{1}, first.time, Time::max(), 2};
  EXPECT_EQ(run<Duplicate>(from("w", 1, 0)), told);
  run<Done>(Trim{"s", Sequence{3}});
  always([&] { EXPECT_EQ(run<Duplicate>(from("w", 1, 0)), told); });
  EXPECT_EQ(run<Conflict>(from("w", 1, 0, "other")).first_seen, first.time);
  run<Appended>(from("w", 1, 2));
  EXPECT_EQ(run<Duplicate>(from("w", 1, 0)).forgotten_after, 1U);
  run<Appended>(from("w", 1, 3));
  run<TooOldToKnow>(from("w", 1, 0));
}

TEST_P(Producers, AFullBudgetRefusesANewOneAndEvictsNobody) {
  make_stream("s", {.producers_max = 2});
  run<Appended>(from("a", 1, 0));
  run<Appended>(from("b", 1, 0));
  always([&] {
    const Error full = refusal(from("c", 1, 0));
    EXPECT_EQ(full.code, Errc::kLimitExceeded);
    EXPECT_THAT(full.detail, HasSubstr("knows 2 producers"));
    run<Duplicate>(from("a", 1, 0));
    run<Duplicate>(from("b", 1, 0));
    EXPECT_EQ(store().find_producer("s", "c").value(), std::nullopt);
  });
}

TEST_P(Producers, AKnownMessageIdIsNoWayAroundTheBudget) {
  make_stream("s", {.producers_max = 1});
  run<Appended>(from("a", 1, 0));
  append("s", "p", "id");
  Append op = from("b", 1, 0);
  op.id = "id";
  EXPECT_EQ(refusal(op).code, Errc::kLimitExceeded);
  EXPECT_EQ(store().describe("s").value().producers, 1U);
}

TEST_P(Producers, ARetiredOneFreesItsPlaceAndComesBackOnlyWithAHigherEpoch) {
  make_stream("s", {.producers_max = 1});
  run<Appended>(from("a", 1, 0));
  run<Done>(RetireProducer{"s", "a", "ann", "it was moved"});
  always([&] {
    EXPECT_TRUE(status("a").retired);
    EXPECT_EQ(store().describe("s").value().producers, 0U);
    run<Fenced>(from("a", 1, 0));
    run<Fenced>(from("a", 1, 1));
  });
  run<Appended>(from("b", 1, 0));
  EXPECT_EQ(refusal(from("a", 2, 0)).code, Errc::kLimitExceeded);
  run<Done>(RetireProducer{"s", "b", "ann", "it was moved, too"});
  run<Appended>(from("a", 2, 0));
  EXPECT_FALSE(status("a").retired);
  EXPECT_EQ(refusal(RetireProducer{"s", "nobody", "ann", "why not"}).code, Errc::kNotFound);
}

TEST_P(Producers, RetiringIsAudited) {
  make_stream("s");
  run<Appended>(from("a", 1, 0));
  EXPECT_EQ(refusal(RetireProducer{"s", "a", "", "why"}).code, Errc::kInvalidArgument);
  EXPECT_EQ(refusal(RetireProducer{"s", "a", "ann", ""}).code, Errc::kInvalidArgument);
  run<Done>(RetireProducer{"s", "a", "ann", "it was \"moved\""});
  run<Done>(RetireProducer{"s", "a", "ann", "again"});
  always([&] {
    const std::vector<Record> audit = records("$audit");
    ASSERT_THAT(audit, SizeIs(1));
    EXPECT_EQ(audit[0].payload, R"({"act":"retire-producer","subject":"s/a","actor":"ann",)"
                                R"("reason":"it was \"moved\""})");
  });
}

TEST_P(Producers, AKnownMessageIdCountsAsStored) {
  make_stream("s");
  append("s", "p", "id");
  Append op = from("w", 1, 0);
  op.id = "id";
  const Duplicate by_id = run<Duplicate>(op);
  EXPECT_EQ(by_id.sequence, Sequence{1});
  EXPECT_EQ(by_id.forgotten_after, 0U);
  run<Done>(Trim{"s", Sequence{2}});
  always([&] {
    const Duplicate by_producer = run<Duplicate>(op);
    EXPECT_EQ(by_producer.sequence, Sequence{1});
    EXPECT_EQ(by_producer.first_seen, by_id.first_seen);
    EXPECT_EQ(by_producer.forgotten_after, limits::kProducerMemoryDefault);
  });
  EXPECT_EQ(run<Appended>(from("w", 1, 1)).sequence, Sequence{2});
}

TEST_P(Producers, OpeningANameGivesAnEpochAndFencesTheFormerWriter) {
  make_stream("s");
  const Opened first = open_writer();
  EXPECT_GT(first.epoch, Epoch{0});
  EXPECT_EQ(first, (Opened{first.epoch, Epoch{0}, ProducerSequence{0}, Sequence{0}}));
  run<Appended>(from("w", first.epoch.value, 0, "a"));
  run<Appended>(from("w", first.epoch.value, 1, "b"));
  const Opened second = open_writer();
  EXPECT_GT(second.epoch, first.epoch);
  // P5: fenced at once, before the new writer has stored anything.
  always([&] {
    const Fenced told{second.epoch.value, first.epoch.value};
    EXPECT_EQ(run<Fenced>(from("w", first.epoch.value, 2, "late")), told);
    EXPECT_EQ(run<Fenced>(from("w", first.epoch.value, 1, "b")), told);
    EXPECT_EQ(status("w").epoch, second.epoch);
    EXPECT_EQ(status("w").next, ProducerSequence{0});
    const Gap hole{ProducerSequence{0}, ProducerSequence{2}};
    EXPECT_EQ(run<Gap>(from("w", second.epoch.value, 2)), hole);
  });
  EXPECT_EQ(second, (Opened{second.epoch, first.epoch, ProducerSequence{2}, Sequence{2}}));
  run<Appended>(from("w", second.epoch.value, 0, "c"));
  EXPECT_EQ(payloads(records("s")), (std::vector<std::string>{"a", "b", "c"}));
}

TEST_P(Producers, RepeatingAnOpenUnderItsCommitIdGivesTheSameEpoch) {
  make_stream("s");
  const Opened first = open_writer("open-1");
  always([&] { EXPECT_EQ(open_writer("open-1"), first); });
  run<Appended>(from("w", first.epoch.value, 0));
  EXPECT_EQ(open_writer("open-1"), first);
  run<Appended>(from("w", first.epoch.value, 1));
}

TEST_P(Producers, WhatTheFormerWriterStoredIsToldUntilAnotherOneStoresSomething) {
  make_stream("s");
  const Opened first = open_writer();
  run<Appended>(from("w", first.epoch.value, 0));
  for (int i = 0; i < 3; ++i) {  // Writers that died before they heard or did anything.
    reopen();
    const Opened next = open_writer();
    EXPECT_EQ(next, (Opened{next.epoch, first.epoch, ProducerSequence{1}, Sequence{1}}));
    churn();
  }
}

TEST_P(Producers, TwoWritersThatOpenOneNameNeitherLoseNorDouble) {
  make_stream("s");
  std::vector<std::string> sent;
  std::array<Opened, 2> writers{};
  std::array<std::uint64_t, 2> next{};
  for (int turn = 0; turn < 40; ++turn) {
    const std::size_t who = static_cast<std::size_t>(turn * 7 % 5) % 2;
    const std::string payload = base::format("w{}-{}", who, turn);
    if (writers[who].epoch == Epoch{0}) writers[who] = open_writer();
    Verdict told = commit({from("w", writers[who].epoch.value, next[who], payload)}).verdicts[0];
    if (std::holds_alternative<Fenced>(told)) {
      writers[who] = open_writer();
      next[who] = 0;
      told = commit({from("w", writers[who].epoch.value, 0, payload)}).verdicts[0];
    }
    as<Appended>(told);
    ++next[who];
    sent.push_back(payload);
    // A repeat by the current writer is recognised; the other one can do nothing.
    run<Duplicate>(from("w", writers[who].epoch.value, next[who] - 1, payload));
    if (turn % 10 == 9) reopen();
  }
  EXPECT_EQ(payloads(records("s")), sent);
}

TEST_P(Producers, OpeningTakesAPlaceAndBringsARetiredOneBack) {
  make_stream("s", {.producers_max = 1});
  EXPECT_EQ(refusal(OpenProducer{"nowhere", "w"}).code, Errc::kNotFound);
  EXPECT_EQ(refusal(OpenProducer{"s", ""}).code, Errc::kInvalidArgument);
  const Opened first = open_writer();
  EXPECT_EQ(refusal(OpenProducer{"s", "other"}).code, Errc::kLimitExceeded);
  run<Appended>(from("w", first.epoch.value, 0));
  run<Done>(RetireProducer{"s", "w", "ann", "it was moved"});
  run<Fenced>(from("w", first.epoch.value, 1));
  const Opened again = open_writer();
  EXPECT_EQ(again.former_next, ProducerSequence{1});
  EXPECT_FALSE(status("w").retired);
  run<Appended>(from("w", again.epoch.value, 0));
}

TEST_P(Producers, AnEpochOfItsOwnChoiceHasALimitAndNeverBlocksTheStoresOwn) {
  make_stream("s");
  EXPECT_EQ(refusal(from("w", limits::kEpochMax + 1, 0)).code, Errc::kLimitExceeded);
  run<Appended>(from("w", limits::kEpochMax, 0));
  EXPECT_EQ(refusal(from("w", limits::kEpochMax + 1, 0)).code, Errc::kLimitExceeded);
  const Opened opened = open_writer();
  EXPECT_GT(opened.epoch.value, limits::kEpochMax);
  always([&] { EXPECT_EQ(status("w").epoch, opened.epoch); });
  run<Appended>(from("w", opened.epoch.value, 0));
  run<Opened>(OpenProducer{"s", "another"});
}

INSTANTIATE_TEST_SUITE_P(, Producers, testing::ValuesIn(all_stores()), name_of);

}  // namespace
}  // namespace hapax::contract
