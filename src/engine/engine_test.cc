// The embedded store without threads, on a simulated disk: when answers leave, what a full disk
// undoes, what snapshots keep and remove, and what a start accepts.
#include "engine/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/claims.h"
#include "engine/embedded_store.h"
#include "engine/rig_test.h"

namespace hapax::engine {
namespace {

using journal::FileName;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

class EngineTest : public EngineRig {};

// --- E1: when answers leave ----------------------------------------------------------------------

TEST_F(EngineTest, NothingIsAnsweredBeforeItIsDurable) {
  Call& made = submit({CreateStream{"s", {}}});
  Call& stored = submit({Append{.stream = "s", .payload = "p", .id = "id"}});
  Call& repeat = submit({Append{.stream = "s", .payload = "p", .id = "id"}});
  bool looked = false;
  machine().look([&](const core::State& seen, Time) {
    EXPECT_NE(seen.find_stream("s"), nullptr);
    return [&looked] { looked = true; };
  });
  EXPECT_FALSE(made.answered() || stored.answered() || repeat.answered() || looked);

  journal::Batch& batch = machine().seal();
  EXPECT_TRUE(machine().in_flight());
  // Decided while the batch is on its way: it saw what is not durable yet, so it waits, too.
  Call& late = submit({Append{.stream = "s", .payload = "p", .id = "id"}});
  Call& next = submit({Append{.stream = "s", .payload = "q"}});
  Call& after = submit({Append{.stream = "s", .payload = "p", .id = "id"}});
  const journal::Durable proof = engine_->writer().write(batch).value();
  EXPECT_FALSE(made.answered() || stored.answered() || repeat.answered() || looked);
  machine().completed(proof);
  EXPECT_TRUE(made.answered() && stored.answered() && repeat.answered() && looked);
  EXPECT_TRUE(late.answered());
  EXPECT_FALSE(next.answered() || after.answered());
  EXPECT_TRUE(write().ok());
  EXPECT_TRUE(next.answered() && after.answered());
  EXPECT_EQ(std::get<Duplicate>(after.verdict()).sequence, Sequence{1});
}

// The disk need not wait for the answers.
TEST_F(EngineTest, TheNextBatchMayBeSealedBeforeTheAnswersOfADurableOneLeave) {
  Call& first = submit({CreateStream{"s", {}}});
  const journal::Durable proof = engine_->writer().write(machine().seal()).value();
  Call& next = submit({Append{.stream = "s", .payload = "p"}});
  machine().retire(proof);
  journal::Batch& batch = machine().seal();
  EXPECT_FALSE(first.answered() || next.answered());
  machine().answer();
  EXPECT_TRUE(first.answered());
  EXPECT_FALSE(next.answered());
  machine().completed(engine_->writer().write(batch).value());
  EXPECT_TRUE(next.answered());
  EXPECT_TRUE(machine().quiescent());
}

TEST_F(EngineTest, WhatSeesOnlyDurableThingsIsAnsweredAtOnce) {
  commit({CreateStream{"s", {}}, Append{.stream = "s", .payload = "p", .id = "id"}});
  EXPECT_TRUE(machine().quiescent());
  EXPECT_TRUE(submit({Append{.stream = "s", .payload = "p", .id = "id"}}).answered());
  EXPECT_TRUE(submit({Append{.stream = "s", .payload = "other", .id = "id"}}).answered());
  EXPECT_TRUE(submit({Append{.stream = "nowhere", .payload = "p"}}).answered());
  bool looked = false;
  machine().look([&](const core::State&, Time) { return [&looked] { looked = true; }; });
  EXPECT_TRUE(looked);
  EXPECT_FALSE(machine().has_facts());
}

// E1: appends that may still be lost change nothing of what was stored before them.
TEST_F(EngineTest, AnIdThatWasStoredBeforeIsAnsweredBesideABatchOfAppends) {
  commit({CreateStream{"s", {}}, Append{.stream = "s", .payload = "p", .id = "old"}});
  clock_.advance(1'000);
  submit({Append{.stream = "s", .payload = "q", .id = "new"}});
  const auto repeats = [&](std::string_view id, std::string_view payload) -> Call& {
    return submit({Append{.stream = "s", .payload = payload, .id = id}});
  };
  EXPECT_TRUE(repeats("old", "p").answered());
  journal::Batch& batch = machine().seal();
  clock_.advance(1'000);
  Call& old = repeats("old", "p");
  EXPECT_TRUE(old.answered());
  EXPECT_EQ(std::get<Duplicate>(old.verdict()).sequence, Sequence{1});
  EXPECT_FALSE(repeats("new", "q").answered());
  EXPECT_FALSE(submit({Append{.stream = "s", .payload = "p", .id = "old"},
                       Append{.stream = "s", .payload = "q", .id = "new"}})
                   .answered());
  submit({Append{.stream = "s", .payload = "r"}});
  EXPECT_TRUE(repeats("old", "p").answered());
  machine().completed(engine_->writer().write(batch).value());
}

// E1: how many records push it out of memory is part of the answer, and appends change that.
TEST_F(EngineTest, ARepeatOfAProducerWaitsForTheBatchBesideIt) {
  const ProducerMark mark{"p", Epoch{1}, ProducerSequence{0}};
  const Append first{.stream = "s", .payload = "p", .producer = mark};
  commit({CreateStream{"s", {}}, first});
  clock_.advance(1'000);
  submit({Append{.stream = "s", .payload = "q"}});
  EXPECT_FALSE(submit({first}).answered());
  EXPECT_TRUE(write().ok());
}

// How long an id is remembered is a setting of its stream, and part of the answer.
TEST_F(EngineTest, AnIdThatWasStoredBeforeWaitsForABatchThatMayChangeItsStream) {
  commit({CreateStream{"s", {}}, Append{.stream = "s", .payload = "p", .id = "old"}});
  clock_.advance(1'000);
  submit({ConfigureStream{"s", {.window = Window{std::chrono::seconds{60}}}}});
  EXPECT_FALSE(submit({Append{.stream = "s", .payload = "p", .id = "old"}}).answered());
  journal::Batch& batch = machine().seal();
  EXPECT_FALSE(submit({Append{.stream = "s", .payload = "p", .id = "old"}}).answered());
  machine().completed(engine_->writer().write(batch).value());
}

TEST_F(EngineTest, ABatchHasOneLogTime) {
  Call& first = submit({CreateStream{"s", {}}});
  clock_.advance(1'000);
  Call& second = submit({Append{.stream = "s", .payload = "p"}});
  EXPECT_TRUE(write().ok());
  EXPECT_EQ(first.finished->answer->time, second.finished->answer->time);
  Call& third = commit({Append{.stream = "s", .payload = "q"}});
  EXPECT_EQ(third.finished->answer->time, first.finished->answer->time + Duration{1'000});
}

// --- E2: a full disk -----------------------------------------------------------------------------

TEST_F(EngineTest, AFullDiskUndoesEverythingAndDecidesLookersAgain) {
  commit({CreateStream{"s", {}}, Append{.stream = "s", .payload = "old", .id = "old"}});
  const Time now = machine().decided_at();
  const std::string before = canonical(now);
  fill_disk();
  Call& stored = submit({Append{.stream = "s", .payload = "p", .id = "id"}});
  journal::Batch& batch = machine().seal();
  Call& repeat = submit({Append{.stream = "s", .payload = "p", .id = "id"}});
  Call& next = submit({Append{.stream = "s", .payload = "q", .id = "next"}});
  Call& known = submit({Append{.stream = "s", .payload = "old", .id = "old"}});
  std::vector<std::uint64_t> seen;
  bool delivered = false;
  machine().look([&](const core::State& look, Time) {
    seen.push_back(look.find_stream("s")->last.value);
    return [&delivered] { delivered = true; };
  });
  const Error full = engine_->writer().write(batch).error();
  ASSERT_EQ(full.code, Errc::kNoSpace);
  machine().refused(full);

  EXPECT_EQ(stored.finished->answer.error().code, Errc::kNoSpace);
  EXPECT_EQ(next.finished->answer.error().code, Errc::kNoSpace);
  EXPECT_FALSE(repeat.answered()) << "it is a new record now and waits for the disk";
  EXPECT_FALSE(known.answered()) << "it saw the new one before it";
  EXPECT_THAT(seen, ElementsAre(3, 2));
  EXPECT_TRUE(machine().statistics().writes_refused);

  EXPECT_EQ(write().error().code, Errc::kNoSpace);
  EXPECT_EQ(repeat.finished->answer.error().code, Errc::kNoSpace);
  EXPECT_EQ(std::get<Duplicate>(known.verdict()).sequence, Sequence{1});
  EXPECT_THAT(seen, ElementsAre(3, 2, 1));
  EXPECT_TRUE(delivered);
  EXPECT_TRUE(canonical(now) == before);

  free_disk();
  EXPECT_EQ(
      std::get<Appended>(commit({Append{.stream = "s", .payload = "p", .id = "id"}}).verdict())
          .sequence,
      Sequence{2});
  EXPECT_FALSE(machine().statistics().writes_refused);
  commit({Set{.name = "last"}});  // A start after a kill writes the last batch again, elsewhere.
  const std::string after = canonical(now);
  kill();
  open();
  EXPECT_TRUE(canonical(now) == after);
}

TEST_F(EngineTest, AFullDiskDuringASnapshotCostsTheSnapshotOnly) {
  live_a_little(10);
  fill_disk();
  engine_->begin_snapshot();
  Status stepped = Ok{};
  while (engine_->snapshotter().busy()) stepped = engine_->snapshotter().step();
  EXPECT_EQ(stepped.error().code, Errc::kNoSpace);
  EXPECT_EQ(engine_->snapshotter().finished(), 0U);
  free_disk();
  snapshot();
  EXPECT_EQ(engine_->snapshotter().finished(), 1U);
}

// --- starts --------------------------------------------------------------------------------------

TEST_F(EngineTest, AReplayedJournalGivesTheSameState) {
  live_a_little(30);
  const Time now = machine().decided_at();
  const std::string before = canonical(now);
  kill();
  open();
  EXPECT_EQ(engine_->report().snapshot_lsn, 0U);
  EXPECT_TRUE(canonical(now) == before);
}

TEST_F(EngineTest, ASnapshotAndWhatFollowedGiveTheSameState) {
  live_a_little(20);
  snapshot();
  live_a_little(40);
  for (int i = 0; i < 3; ++i) {
    // A start after a kill writes the last batch again, elsewhere: no place of it is compared.
    commit({Set{.name = "last", .mode = SetMode::kLastWriter}});
    const Time now = machine().decided_at();
    const std::string before = canonical(now);
    kill();
    open();
    EXPECT_GT(engine_->report().snapshot_lsn, 0U);
    EXPECT_TRUE(canonical(now) == before);
    snapshot();
  }
}

// R1
TEST_F(EngineTest, ADamagedNewestSnapshotCostsTimeNotData) {
  live_a_little(20);
  snapshot();
  live_a_little(30);
  snapshot();
  live_a_little(35);
  const Time now = machine().decided_at();
  const std::string before = canonical(now);
  const std::vector<std::uint64_t> kept = files(FileName::Kind::kSnapshot);
  ASSERT_THAT(kept, SizeIs(2));
  kill();
  disk_.flip_bit(journal::snapshot_name(kept[1]), 8 * 200);
  open();
  EXPECT_EQ(engine_->report().snapshot_lsn, kept[0]);
  EXPECT_THAT(engine_->report().lines, Contains(HasSubstr(journal::snapshot_name(kept[1]))));
  EXPECT_TRUE(canonical(now) == before);
}

// B2: a checksum proves that bytes are as they were written, not that they make sense.
TEST_F(EngineTest, ASnapshotWithImpossibleContentIsNamedAndPassedOver) {
  live_a_little(20);
  snapshot();
  live_a_little(30);
  const Time now = machine().decided_at();
  const std::string before = canonical(now);
  const std::uint64_t lsn = files(FileName::Kind::kSnapshot).front();
  kill();
  rewrite_snapshot(lsn, kTagIds, [](std::string& bytes) { bytes[0] = 63; });
  open();
  EXPECT_EQ(engine_->report().snapshot_lsn, 0U);
  EXPECT_THAT(engine_->report().lines,
              Contains(AllOf(HasSubstr("HX1021"), HasSubstr("slice of time"))));
  EXPECT_TRUE(canonical(now) == before);
}

TEST_F(EngineTest, AFolderIsOpenedByOneAtATime) {
  sim::SimFolder again(disk_);
  const auto second = Engine::open(again, clock_, entropy_, tiny());
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, Errc::kLocked);
  engine_.reset();
  open();
}

// H2
TEST_F(EngineTest, RegistersSurviveAWallClockThatJumps) {
  const std::int64_t hour = 3'600'000;
  const auto set_at = [&](std::int64_t ms) {
    const Set op{.name = "r", .mode = SetMode::kLastWriter, .at = HybridTime{ms, 0, 1}};
    return std::string(word_of(commit({op}).verdict()));
  };
  EXPECT_EQ(set_at(clock_.wall_ms()), "done");
  clock_.jump(hour);
  EXPECT_EQ(set_at(clock_.wall_ms()), "done") << "log time follows within ten hours";
  EXPECT_EQ(set_at(clock_.wall_ms() + 60'001), "refused");
  clock_.jump(-hour);
  clock_.advance(1);
  EXPECT_EQ(set_at(clock_.wall_ms()), "superseded");
  const Set own{.name = "r", .mode = SetMode::kLastWriter};
  EXPECT_EQ(word_of(commit({own}).verdict()), "done");
  clock_.jump(1'000 * 24 * hour);
  EXPECT_EQ(set_at(clock_.wall_ms()), "refused") << "a clock that is not believed";
}

// --- snapshots and segments ----------------------------------------------------------------------

TEST_F(EngineTest, DeadSegmentsLeaveWithTheSecondSnapshotThatKnowsThemDead) {
  commit({CreateStream{"s", {}}});
  const std::string payload(1'000, 'p');
  for (int i = 0; i < 30; ++i) commit({Append{.stream = "s", .payload = payload}});
  ASSERT_THAT(files(FileName::Kind::kSegment), Contains(2));
  const Sequence last = state().find_stream("s")->last;
  commit({Trim{"s", last}});
  snapshot();
  EXPECT_THAT(files(FileName::Kind::kSegment), Contains(2)) << "R1: the facts are still needed";
  for (int i = 0; i < 8; ++i) commit({Append{.stream = "s", .payload = payload}});
  snapshot();
  EXPECT_THAT(files(FileName::Kind::kSegment), Not(Contains(2)));
  EXPECT_THAT(files(FileName::Kind::kSnapshot), SizeIs(2));
  EXPECT_THAT(records("s"), SizeIs(9));
  const Time now = machine().decided_at();
  const std::string before = canonical(now);
  kill();
  open();
  EXPECT_TRUE(canonical(now) == before);
  EXPECT_THAT(records("s"), SizeIs(9));
  // The figures are those of the disk, not of the numbers given out.
  Statistics stats;
  ASSERT_TRUE(engine_->add_disk_figures(stats).ok());
  std::uint64_t bytes = 0;
  for (const std::uint64_t number : files(FileName::Kind::kSegment)) {
    bytes += disk_.cached(journal::segment_name(static_cast<std::uint32_t>(number)))->size();
  }
  EXPECT_EQ(stats.segments, files(FileName::Kind::kSegment).size());
  EXPECT_LT(stats.segments, files(FileName::Kind::kSegment).back());
  EXPECT_EQ(stats.journal_bytes, bytes);
}

// R2: the older snapshot still lists the records, so a start from it must find their segment.
TEST_F(EngineTest, ASegmentThatDiedBetweenTheSnapshotsStaysForTheOlderOne) {
  commit({CreateStream{"s", {}}});
  const std::string payload(1'000, 'p');
  for (int i = 0; i < 12; ++i) commit({Append{.stream = "s", .payload = payload}});
  snapshot();
  const std::vector<std::uint64_t> then = files(FileName::Kind::kSegment);
  commit({Trim{"s", Sequence{12}}});
  snapshot();
  for (const std::uint64_t number : then) {
    EXPECT_THAT(files(FileName::Kind::kSegment), Contains(number));
  }
  const std::uint64_t newest = files(FileName::Kind::kSnapshot).back();
  kill();
  disk_.flip_bit(journal::snapshot_name(newest), 8 * 200);
  open();
  EXPECT_THAT(records("s"), SizeIs(1));
  // A third one knows that the older of the two kept ones has them dead.
  snapshot();
  commit({Append{.stream = "s", .payload = payload}});
  snapshot();
  EXPECT_THAT(files(FileName::Kind::kSegment), Not(Contains(then.front())));
  EXPECT_THAT(records("s"), SizeIs(2));
}

TEST_F(EngineTest, WhatIsLeftOfAMostlyDeadSegmentMoves) {
  const std::string payload(1'000, 'p');
  commit({CreateStream{"kept", {}}, CreateStream{"s", {}},
          Append{.stream = "kept", .payload = "small", .id = "id"},
          Claim{.scope = "c", .key = "k"}});
  commit({Settle{.scope = "c", .key = "k", .fence = Fence{1}, .result = {200, "h", "result"}}});
  const std::vector<std::uint64_t> first = files(FileName::Kind::kSegment);
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 12; ++i) {
      commit({Trim{"s", Sequence{1'000'000}}, Append{.stream = "s", .payload = payload}});
    }
    snapshot();
  }
  EXPECT_THAT(files(FileName::Kind::kSegment), Not(Contains(first.front())));
  for (int i = 0; i < 2; ++i) {
    const std::vector<Record> found = records("kept");
    ASSERT_THAT(found, SizeIs(1));
    EXPECT_EQ(found[0].payload, "small");
    Call& repeat = commit({Claim{.scope = "c", .key = "k"}});
    const Answer answer = complete(std::move(*repeat.finished)).value();
    EXPECT_EQ(std::get<DuplicateClaim>(answer.verdicts[0]).result,
              (StoredResult{200, "h", "result"}));
    Call& known = commit({Append{.stream = "kept", .payload = "small", .id = "id"}});
    EXPECT_EQ(std::get<Duplicate>(known.verdict()).sequence, Sequence{1});
    kill();
    open();
  }
}

TEST_F(EngineTest, ASnapshotIsDueAfterSoMuchJournal) {
  commit({CreateStream{"s", {}}});
  EXPECT_FALSE(engine_->snapshot_due());
  const std::string payload(1'000, 'p');
  for (int i = 0; i < 8; ++i) commit({Append{.stream = "s", .payload = payload}});
  EXPECT_TRUE(engine_->snapshot_due());
  snapshot();
  EXPECT_FALSE(engine_->snapshot_due());
}

// --- what must end the process -------------------------------------------------------------------

// E3: what is remembered follows the windows, however large the batches are.
TEST_F(EngineTest, ExpiredIdsLeaveFasterThanNewOnesArrive) {
  commit({CreateStream{"s", {.window = Window{std::chrono::seconds{1}}}}});
  constexpr std::size_t kPerBatch = 1'000;
  std::vector<std::string> ids(kPerBatch);
  std::size_t most = 0;
  for (std::size_t round = 0; round < 60; ++round) {
    std::vector<Op> ops;
    for (std::size_t i = 0; i < kPerBatch; ++i) {
      ids[i] = std::to_string(round * kPerBatch + i);
      ops.emplace_back(Append{.stream = "s", .payload = "p", .id = ids[i]});
    }
    commit(std::move(ops));
    machine().expire(1);
    clock_.advance(200);
    most = std::max(most, state().ids.live());
  }
  // A window of five batches, a slice of as many, and half a slice to clear it.
  EXPECT_LE(most, 16 * kPerBatch);
}

TEST_F(EngineTest, AfterAFailedSyncNothingIsAnswered) {
  Call& call = submit({CreateStream{"s", {}}});
  disk_.set_faults({.sync_error = sim::kAlways});
  EXPECT_EQ(write().error().code, Errc::kIo);
  EXPECT_FALSE(call.answered());
  disk_.set_faults({});
  kill();
  open();  // Whatever the disk has kept, it is a sound store.
}

// E5
class DamageWhileRunning : public EngineTest {
 protected:
  // Record 1 of stream "s", acked by nobody, and a result, lie in a segment that is not written to.
  void SetUp() override {
    commit({CreateStream{"s", {}}, CreateConsumer{"s", "c", {.attempts_max = 1}},
            Append{.stream = "s", .payload = "first", .id = "id"}});
    commit({Claim{.scope = "k", .key = "k", .owner = "o"}}, "answered");
    commit({Settle{.scope = "k", .key = "k", .fence = Fence{1}, .result = {200, "", "result"}}});
    const std::string payload(1'000, 'p');
    for (int i = 0; i < 8; ++i) commit({Append{.stream = "s", .payload = payload}});
    record_ = state().find_stream("s")->runs.front().at;
    result_ =
        core::find_settled(state(), claim_hash(engine_->key(), "k", "k"), machine().decided_at())
            ->where;
    store_.emplace(
        nullptr, std::move(engine_), [](const Error&) { std::abort(); },
        [this](const std::string& line) { lines_.push_back(line); });
  }
  void flip(base::Where where) {
    disk_.flip_bit(journal::segment_name(where.segment), 8 * (where.offset + where.length / 2));
  }
  Result<Answer> try_commit(const std::vector<Op>& ops, std::optional<std::string_view> id = {}) {
    Commit commit;
    commit.ops = ops;
    commit.id = id;
    return store_->commit(commit);
  }
  // Everything but the figures is refused, with the place of the damage.
  void expect_stopped(const std::string& place) {
    const auto refused = [&](const auto& result) {
      return !result.ok() && result.error().code == Errc::kCorruption &&
             result.error().detail.find(place) != std::string::npos;
    };
    // What a decision finds is told by the state thread, at its next turn.
    while (!store_->statistics()->damaged) {
    }
    EXPECT_TRUE(refused(try_commit({Set{.name = "r"}})));
    EXPECT_TRUE(refused(store_->read({.stream = "s", .from = Sequence{5}})));
    EXPECT_TRUE(refused(store_->find_id("s", "id", std::nullopt)));
    EXPECT_TRUE(refused(store_->find_claim("k", "k")));
    EXPECT_TRUE(refused(store_->find_register("r")));
    EXPECT_TRUE(refused(store_->streams()));
    store_.reset();
    EXPECT_THAT(lines_, ElementsAre(AllOf(HasSubstr(place), HasSubstr("serves nothing more"))));
  }

  base::Where record_;
  base::Where result_;
  std::vector<std::string> lines_;
  std::optional<EmbeddedStore> store_;
};

TEST_F(DamageWhileRunning, FoundByAReadEndsTheService) {
  flip(record_);
  const auto read = store_->read({.stream = "s"});
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, Errc::kCorruption);
  for (const char* part : {"stream 's'", "record 1", "journal-0000000000000001.log offset "}) {
    EXPECT_THAT(read.error().detail, HasSubstr(part));
  }
  expect_stopped("journal-0000000000000001.log offset ");
}

TEST_F(DamageWhileRunning, FoundByADeliveryEndsTheService) {
  flip(record_);
  const auto received = try_commit({Receive{"s", "c", 1, Duration{1}, "w"}});
  ASSERT_FALSE(received.ok());
  EXPECT_EQ(received.error().code, Errc::kOutcomeUnknown) << "it was handed out";
  expect_stopped("stream 's', record 1 in journal-0000000000000001.log offset ");
}

TEST_F(DamageWhileRunning, FoundByADecisionEndsTheService) {
  const auto received = try_commit({Receive{"s", "c", 1, Duration{60'000}, "w"}});
  const Delivery& delivery = std::get<Received>(received->verdicts.front()).deliveries.front();
  flip(record_);
  // Its last attempt failed: it would be copied to the dead letters.
  ignore(try_commit({Nack{"s", "c", {delivery.record.sequence, delivery.token}}}), "see below");
  expect_stopped("stream 's', record 1 in journal-0000000000000001.log offset ");
}

TEST_F(DamageWhileRunning, FoundInAResultEndsTheService) {
  flip(result_);
  EXPECT_EQ(store_->find_claim("k", "k").error().code, Errc::kCorruption);
  expect_stopped("result in journal-0000000000000001.log offset ");
}

TEST_F(DamageWhileRunning, AMissingSegmentEndsTheService) {
  disk_.remove_raw(journal::segment_name(1));
  EXPECT_EQ(store_->read({.stream = "s"}).error().code, Errc::kCorruption);
  expect_stopped("stream 's'");
}

using FatalDeathTest = EngineTest;

TEST_F(FatalDeathTest, AFailedSyncEndsTheProcessThroughOnFatal) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto lose_the_disk = [this] {
    const auto fatal = [](const Error& error) {
      std::fprintf(stderr, "fatal: %s\n", error.text().c_str());
      std::_Exit(kExitSyncFailed);
    };
    EmbeddedStore store(nullptr, std::move(engine_), fatal, [](const std::string&) {});
    disk_.set_faults({.sync_error = sim::kAlways});
    const std::vector<Op> ops{CreateStream{"s", {}}};
    Commit commit;
    commit.ops = ops;
    ignore(store.commit(commit), "it never answers");
  };
  EXPECT_EXIT(lose_the_disk(), testing::ExitedWithCode(kExitSyncFailed), "fatal: HX1020");
}

}  // namespace
}  // namespace hapax::engine
