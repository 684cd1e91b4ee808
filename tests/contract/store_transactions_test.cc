// Transactions over several commits: invisible until the end, fenced by name.
#include <array>

#include "store_contract.h"

namespace hapax::contract {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class Transactions : public StoreContract {
 protected:
  Epoch begin(std::string_view name = "t", Duration timeout = limits::kTransactionTimeoutDefault) {
    return run<Began>(Begin{name, timeout}).epoch;
  }
  Result<Answer> stage(Epoch epoch, const std::vector<Op>& ops,
                       std::optional<std::string_view> id = {}) {
    Commit commit;
    commit.ops = ops;
    commit.id = id;
    commit.transaction = TransactionRef{"t", epoch};
    return store().commit(commit);
  }
  void staged(Epoch epoch, const std::vector<Op>& ops) {
    const auto answer = stage(epoch, ops);
    ASSERT_TRUE(answer.ok()) << answer.error().text();
    for (const Verdict& verdict : answer->verdicts) as<Staged>(verdict);
  }
  Answer end(Epoch epoch, Finish finish = Finish::kCommit) {
    return commit({End{"t", epoch, finish}});
  }
  std::uint64_t open_ones() { return store().statistics().value().transactions_open; }
};

TEST_P(Transactions, WhatIsStagedIsInvisibleUntilTheEnd) {
  make_stream("s");
  const auto claim = run<Claimed>(Claim{.scope = "c", .key = "k", .owner = "one"});
  append("s", "first");
  const Delivery got = receive("s", "consumer").front();
  const Epoch epoch = begin();
  const std::array headers{Header{"h", "v"}};
  staged(epoch, {Append{.stream = "s", .payload = "a", .id = "id", .headers = headers}});
  staged(epoch, {Append{.stream = "s", .payload = "b"}, Set{.name = "r", .value = "v"},
                 Advance{"source", "", "1", Epoch{1}}, Ack{"s", "consumer", receipt_of(got)},
                 Settle{.scope = "c", .key = "k", .fence = claim.fence, .result = {200, "", "x"}}});
  always([&] {
    EXPECT_THAT(payloads(records("s")), ElementsAre("first"));
    EXPECT_EQ(store().find_register("r").value(), std::nullopt);
    EXPECT_EQ(store().find_position("source").value(), std::nullopt);
    EXPECT_EQ(store().find_id("s", "id", std::nullopt).value(), std::nullopt);
    EXPECT_EQ(store().find_claim("c", "k").value()->state, ClaimState::kProcessing);
    EXPECT_EQ(open_ones(), 1U);
  });
  const Answer answer = end(epoch);
  EXPECT_TRUE(answer.committed);
  ASSERT_EQ(answer.verdicts.size(), 7U);
  as<Done>(answer.verdicts[0]);
  EXPECT_EQ(as<Appended>(answer.verdicts[1]).sequence, Sequence{2});
  EXPECT_EQ(as<Appended>(answer.verdicts[2]).sequence, Sequence{3});
  always([&] {
    EXPECT_THAT(payloads(records("s")), ElementsAre("first", "a", "b"));
    EXPECT_THAT(records("s")[1].headers,
                ElementsAre(std::pair<std::string, std::string>("h", "v")));
    EXPECT_EQ(store().find_register("r").value()->value, "v");
    EXPECT_EQ(store().find_position("source").value()->value, "1");
    EXPECT_EQ(store().find_claim("c", "k").value()->result->body, "x");
    EXPECT_EQ(store().describe("s").value().consumers[0].floor, Sequence{1});
    EXPECT_EQ(open_ones(), 0U);
  });
}

TEST_P(Transactions, AnAbortedOneLeavesNothing) {
  make_stream("s");
  const Epoch epoch = begin();
  staged(epoch, {Append{.stream = "s", .payload = "p", .id = "id"}});
  EXPECT_TRUE(end(epoch, Finish::kAbort).committed);
  always([&] {
    EXPECT_THAT(records("s"), IsEmpty());
    EXPECT_EQ(store().find_id("s", "id", std::nullopt).value(), std::nullopt);
    EXPECT_EQ(stage(epoch, {Append{.stream = "s", .payload = "p"}}).error().code,
              Errc::kPreconditionFailed);
  });
}

TEST_P(Transactions, RepeatingTheEndIsDoneAndTheOppositeIsRefused) {
  make_stream("s");
  const Epoch committed = begin();
  staged(committed, {Append{.stream = "s", .payload = "p"}});
  end(committed);
  always([&] {
    const Answer again = end(committed);
    EXPECT_TRUE(again.committed);
    as<Done>(again.verdicts[0]);
    EXPECT_EQ(as<Refused>(end(committed, Finish::kAbort).verdicts[0]).error.code,
              Errc::kPreconditionFailed);
    EXPECT_EQ(last("s"), Sequence{1});
  });
  const Epoch aborted = begin();
  end(aborted, Finish::kAbort);
  always([&] {
    as<Done>(end(aborted, Finish::kAbort).verdicts[0]);
    EXPECT_EQ(as<Refused>(end(aborted).verdicts[0]).error.code, Errc::kPreconditionFailed);
  });
}

TEST_P(Transactions, RepeatingTheEndUnderACommitIdReturnsAllVerdicts) {
  make_stream("s");
  const Epoch epoch = begin();
  staged(epoch, {Append{.stream = "s", .payload = "p"}});
  const Answer first = commit({End{"t", epoch}}, Mode::kAtomic, "end");
  ASSERT_EQ(first.verdicts.size(), 2U);
  always([&] {
    const Answer again = commit({End{"t", epoch}}, Mode::kAtomic, "end");
    EXPECT_TRUE(again.repeated);
    EXPECT_EQ(again.verdicts, first.verdicts);
  });
}

TEST_P(Transactions, ARepeatedStageUnderACommitIdIsStagedOnce) {
  make_stream("s");
  const Epoch epoch = begin();
  const std::vector<Op> ops{Append{.stream = "s", .payload = "p"}};
  ASSERT_TRUE(stage(epoch, ops, "stage 1").ok());
  reopen();
  EXPECT_TRUE(stage(epoch, ops, "stage 1").value().repeated);
  end(epoch);
  EXPECT_EQ(last("s"), Sequence{1});
}

TEST_P(Transactions, OneThatTimedOutIsOver) {
  make_stream("s");
  const Answer began = commit({Begin{"t", Duration{50}}});
  const Epoch epoch = as<Began>(began.verdicts[0]).epoch;
  EXPECT_EQ(as<Began>(began.verdicts[0]).expires_at, began.time + Duration{50});
  const auto in_time = stage(epoch, {Append{.stream = "s", .payload = "p"}});
  wait_until(began.time + Duration{50});
  always([&] {
    EXPECT_EQ(stage(epoch, {Append{.stream = "s", .payload = "p"}}).error().code,
              Errc::kPreconditionFailed);
    EXPECT_EQ(as<Refused>(end(epoch).verdicts[0]).error.code, Errc::kPreconditionFailed);
    EXPECT_THAT(records("s"), IsEmpty());
    as<Done>(end(epoch, Finish::kAbort).verdicts[0]);
  });
}

TEST_P(Transactions, ANewOneOfTheNameFencesTheOldOne) {
  make_stream("s");
  const Epoch old = begin();
  staged(old, {Append{.stream = "s", .payload = "old"}});
  const Epoch current = begin();
  EXPECT_GT(current, old);
  staged(current, {Append{.stream = "s", .payload = "new"}});
  always([&] {
    const std::uint64_t before = fenced();
    const Fenced told{current.value, old.value};
    const Answer late = stage(old, {Append{.stream = "s", .payload = "late"}}).value();
    EXPECT_FALSE(late.committed);
    EXPECT_EQ(as<Fenced>(late.verdicts[0]), told);
    // A delayed end of the old one touches nothing, whichever way it wants it to end.
    for (const Finish finish : {Finish::kCommit, Finish::kAbort}) {
      const Answer answer = end(old, finish);
      EXPECT_FALSE(answer.committed);
      EXPECT_EQ(as<Fenced>(answer.verdicts[0]), told);
    }
    EXPECT_EQ(fenced(), before + 3);
    EXPECT_THAT(records("s"), IsEmpty());
    EXPECT_EQ(open_ones(), 1U);
  });
  EXPECT_TRUE(end(current).committed);
  EXPECT_THAT(payloads(records("s")), ElementsAre("new"));
  EXPECT_EQ(as<Fenced>(end(old).verdicts[0]).current, current.value);
}

TEST_P(Transactions, ANameNobodyBeganIsFenced) {
  EXPECT_EQ(as<Fenced>(end(Epoch{1}).verdicts[0]), (Fenced{0, 1}));
  const Answer answer = stage(Epoch{1}, {Set{.name = "r", .value = "v"}}).value();
  EXPECT_EQ(as<Fenced>(answer.verdicts[0]), (Fenced{0, 1}));
}

TEST_P(Transactions, AnOperationThatDoesNotHoldAppliesNoneAndTheTransactionStaysOpen) {
  make_stream("s");
  append("s", "p", "id");
  const Epoch epoch = begin();
  staged(epoch, {Append{.stream = "s", .payload = "a"}});
  staged(epoch, {Append{.stream = "s", .payload = "other", .id = "id"}});
  always([&] {
    const Answer answer = end(epoch);
    EXPECT_FALSE(answer.committed);
    ASSERT_EQ(answer.verdicts.size(), 3U);
    as<NotApplied>(answer.verdicts[0]);
    as<NotApplied>(answer.verdicts[1]);
    as<Conflict>(answer.verdicts[2]);
    EXPECT_EQ(last("s"), Sequence{1});
    EXPECT_EQ(open_ones(), 1U);
  });
  EXPECT_TRUE(end(epoch, Finish::kAbort).committed);
}

TEST_P(Transactions, OnlySomeOperationsCanWait) {
  const Epoch epoch = begin();
  EXPECT_EQ(stage(epoch, {Receive{"s", "c", 1}}).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(stage(epoch, {Begin{"u"}}).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(stage(epoch, {Set{.name = ""}}).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(as<Refused>(each({Set{.name = "r"}, End{"t", epoch}}).verdicts[1]).error.code,
            Errc::kInvalidArgument);
  EXPECT_EQ(end(epoch).verdicts.size(), 1U);
}

TEST_P(Transactions, NamesAreIndependent) {
  make_stream("s");
  const Epoch epoch = begin("t");
  begin("u");
  staged(epoch, {Append{.stream = "s", .payload = "p"}});
  begin("u");
  EXPECT_EQ(open_ones(), 2U);
  EXPECT_TRUE(end(epoch).committed);
}

INSTANTIATE_TEST_SUITE_P(, Transactions, testing::ValuesIn(all_stores()), name_of);

}  // namespace
}  // namespace hapax::contract
