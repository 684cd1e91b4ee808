// What a snapshot moves out of segments that are mostly dead, and what it leaves alone.
#include <deque>
#include <string>

#include <gtest/gtest.h>

#include "engine/offline.h"
#include "engine/rig_test.h"

namespace hapax::engine {
namespace {

class MovesTest : public EngineRig {
 protected:
  void reopen(const EngineOptions& options) {
    engine_.reset();
    disk_.restart();
    auto opened = try_open(options);
    ASSERT_TRUE(opened.ok()) << opened.error().text();
    engine_ = *std::move(opened);
  }
  static EngineOptions by_hand() {
    EngineOptions options = tiny();
    options.segment_bytes = 16'384;
    options.snapshot_every_bytes = std::uint64_t{1} << 40;
    return options;
  }
  // A snapshot and what follows from it, some times.
  void snapshots(int count) {
    for (int i = 0; i < count; ++i) {
      clock_.advance(1'000);
      snapshot();
      commit({Set{.name = "r", .value = "x", .mode = SetMode::kLastWriter}});
    }
  }
  void settle(std::string_view key, std::string_view body) {
    const Fence fence =
        std::get<Claimed>(commit({Claim{.scope = "k", .key = key, .owner = "o"}}).verdict()).fence;
    commit({Settle{.scope = "k", .key = key, .fence = fence, .result = {200, "", body}}});
  }
  void append(std::string_view stream, std::string_view payload, int count) {
    for (int i = 0; i < count; ++i) commit({Append{.stream = stream, .payload = payload}});
  }
  // Nothing is left of the stream, so that the first segment is worth emptying.
  void trim_all(std::string_view stream) {
    commit({Trim{.stream = stream, .before = Sequence{1'000'000}}});
    machine().collect(100'000);
  }
  void repair_store() {
    engine_.reset();
    disk_.restart();
    sim::SimFolder folder(disk_);
    const auto report = repair(folder, entropy_, journal::RepairMode::kAcceptLoss);
    ASSERT_TRUE(report.ok()) << report.error().text();
    reopen(by_hand());
  }
  void damage(base::Where where, std::uint32_t at) {
    engine_.reset();
    disk_.restart();
    disk_.corrupt(journal::segment_name(where.segment), where.offset + at, 1);
  }

  const std::string body_ = std::string(300, 'r');
  const std::string filling_ = std::string(2'000, 'f');
};

TEST_F(MovesTest, AResultThatARepairGaveUpEndsNoService) {
  reopen(by_hand());
  commit({CreateStream{"s", {}}});
  settle("a", body_);
  settle("b", body_);
  append("s", filling_, 40);
  snapshots(1);
  const base::Hash128 key = claim_hash(engine_->key(), "k", "a");
  const base::Where where = state().settled.find(key, machine().decided_at())->where;
  ASSERT_TRUE(engine_->writer().write_mark(journal::MarkKind::kClean).ok());
  damage(where, 150);
  repair_store();
  ASSERT_EQ(machine().statistics().results_lost, 1U);
  trim_all("s");
  snapshots(5);
  EXPECT_FALSE(machine().damage());
}

TEST_F(MovesTest, ARecordThatARepairGaveUpEndsNoService) {
  reopen(by_hand());
  commit({CreateStream{"s", {}}, CreateStream{"t", {}}});
  const Append record{.stream = "s", .payload = body_};
  commit({record, record, record});
  append("t", filling_, 40);
  snapshots(1);
  const base::Where run = state().find_stream("s")->run_of(Sequence{1})->at;
  ASSERT_TRUE(engine_->writer().write_mark(journal::MarkKind::kClean).ok());
  damage(run, run.length / 2);
  repair_store();
  ASSERT_EQ(machine().statistics().records_lost, 1U);
  trim_all("t");
  snapshots(5);
  EXPECT_FALSE(machine().damage());
  EXPECT_EQ(records("s").size(), 2U);
}

TEST_F(MovesTest, DamageInATrimmedPartOfARunEndsNoService) {
  reopen(by_hand());
  commit({CreateStream{"s", {}}, CreateStream{"t", {}}});
  const Append record{.stream = "s", .payload = body_};
  commit({record, record, record});
  append("t", filling_, 40);
  commit({Trim{.stream = "s", .before = Sequence{3}}});
  snapshots(1);
  const base::Where run = state().find_stream("s")->run_of(Sequence{3})->at;
  ASSERT_TRUE(engine_->writer().write_mark(journal::MarkKind::kClean).ok());
  damage(run, 150);
  reopen(by_hand());
  trim_all("t");
  snapshots(3);
  EXPECT_FALSE(machine().damage());
  EXPECT_EQ(records("s").size(), 1U);
}

// E5: what somebody needs is another matter.
TEST_F(MovesTest, DamageOfAKeptRecordIsNoted) {
  reopen(by_hand());
  commit({CreateStream{"s", {}}, CreateStream{"t", {}}});
  commit({Append{.stream = "s", .payload = body_}});
  append("t", filling_, 40);
  snapshots(1);
  const base::Where run = state().find_stream("s")->run_of(Sequence{1})->at;
  ASSERT_TRUE(engine_->writer().write_mark(journal::MarkKind::kClean).ok());
  damage(run, 150);
  reopen(by_hand());
  trim_all("t");
  snapshots(3);
  EXPECT_TRUE(machine().damage());
}

// The first results found are those that were moved before; they must not use up every snapshot.
TEST_F(MovesTest, ASegmentWithManyResultsIsEmptiedInTheEnd) {
  EngineOptions options = by_hand();
  options.segment_bytes = std::uint32_t{64} << 20;
  options.reserve_step = std::uint32_t{1} << 20;
  reopen(options);
  commit({CreateStream{"s", {}}});
  const std::string large(std::size_t{1} << 20, 'r');
  std::deque<std::string> keys;
  for (int i = 0; i < 13; ++i) settle(keys.emplace_back("k" + std::to_string(i)), large);
  append("s", large, 120);
  trim_all("s");
  const std::uint32_t first = state().live_bytes.begin()->first;
  snapshots(4);
  EXPECT_FALSE(state().live_bytes.contains(first));
}

class FullBatch : public MovesTest {
 protected:
  // Nacks that write as many dead letters as do not fit one batch.
  std::vector<Op> too_many_letters() {
    EngineOptions options = by_hand();
    options.segment_bytes = std::uint32_t{128} << 20;
    options.reserve_step = std::uint32_t{1} << 20;
    reopen(options);
    StreamSettings large;
    large.record_bytes_max = std::uint32_t{8} << 20;
    commit({CreateStream{"s", large}, CreateConsumer{"s", "c", {.attempts_max = 1}}});
    append("s", std::string(std::size_t{8} << 20, 'p'), 9);
    std::vector<Op> ops;
    for (int i = 0; i < 9; ++i) {
      Call& received = commit({Receive{"s", "c", 1, Duration{60'000}, "o"}});
      const Delivery& one = std::get<Received>(received.verdict()).deliveries.at(0);
      ops.emplace_back(Nack{"s", "c", {one.record.sequence, one.token}, Duration{0}, "no good"});
    }
    return ops;
  }
};

// What found no room in its batch lies nowhere, and is not asked for.
TEST_F(FullBatch, ACommitThatDoesNotFitItsBatchIsNoDamage) {
  std::vector<Op> ops = too_many_letters();
  ops.emplace_back(Redrive{.dead_letters = "s.dead", .sequence = Sequence{9}});
  const Call& call = submit(ops);
  ASSERT_TRUE(call.answered());
  ASSERT_FALSE(call.finished->answer.ok());
  EXPECT_EQ(call.finished->answer.error().code, Errc::kLimitExceeded);
  EXPECT_FALSE(machine().damage());
}

// Each on its own: somebody else may have asked for the others.
TEST_F(FullBatch, AnOperationThatDoesNotFitCostsNoOtherItsPlace) {
  std::vector<Op> ops = too_many_letters();
  ops.emplace_back(Set{.name = "r", .value = "x", .mode = SetMode::kAlways});
  Call& call = commit(ops, {}, Mode::kEach);
  const std::vector<Verdict>& verdicts = call.finished->answer->verdicts;
  ASSERT_EQ(verdicts.size(), 10U);
  for (std::size_t i = 0; i < 7; ++i) EXPECT_TRUE(holds(verdicts[i])) << i;
  for (std::size_t i = 7; i < 9; ++i) {
    EXPECT_EQ(std::get<Refused>(verdicts[i]).error.code, Errc::kUnavailable) << i;
  }
  EXPECT_TRUE(std::get<Held>(verdicts[9]).applied);
  // It may be sent again, and everything is as it was said after a restart, too.
  EXPECT_TRUE(holds(commit({ops[7]}).verdict()));
  EXPECT_TRUE(holds(commit({ops[8]}).verdict()));
  EXPECT_EQ(state().find_stream("s.dead")->last, Sequence{9});
  reopen(by_hand());
  EXPECT_EQ(state().find_stream("s.dead")->last, Sequence{9});
}

}  // namespace
}  // namespace hapax::engine
