// Repair of a whole store: what it gives up is gone from reads and consumers, what it keeps goes
// on, and it says so.
#include "engine/offline.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "digest/crc32c.h"
#include "engine/rig_test.h"

namespace hapax::engine {
namespace {

using journal::FileName;
using journal::RepairMode;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class OfflineTest : public EngineRig {
 protected:
  // A record, a result and an answer in a segment each, all below a snapshot, and nothing read of
  // it at the next start.
  void fill(std::uint32_t attempts_max = 10) {
    const ConsumerSettings settings{.attempts_max = attempts_max,
                                    .last_attempt = LastAttempt::kBlock};
    commit({CreateStream{"s", {}}, CreateConsumer{"s", "c", settings}});
    for (int i = 0; i < kRecords; ++i) {
      texts_.push_back(std::to_string(i) + std::string(900, 'x'));
      names_.push_back("id " + std::to_string(i));
      const std::string_view name = names_.back();
      const Fence fence =
          std::get<Claimed>(commit({Claim{.scope = "k", .key = name, .owner = "o"}}).verdict())
              .fence;
      commit(
          {Append{.stream = "s",
                  .payload = texts_.back(),
                  .id = name,
                  .group = base::if_filled(i % 2 == 0 ? "g" : "")},
           Settle{.scope = "k", .key = name, .fence = fence, .result = {200, "", texts_.back()}}},
          "commit " + std::string(name));
    }
  }
  void repair_store() {
    engine_.reset();
    disk_.restart();
    sim::SimFolder folder(disk_);
    const auto report = repair(folder, entropy_, RepairMode::kAcceptLoss);
    ASSERT_TRUE(report.ok()) << report.error().text();
    report_ = *report;
    disk_.restart();
    open();
  }
  journal::VerifyReport verify_store() {
    sim::SimFolder folder(disk_);
    return verify(folder).value();
  }
  base::Where place_of(Sequence sequence) { return state().find_stream("s")->run_of(sequence)->at; }
  // Everything the consumer is handed until nothing is left.
  std::vector<std::uint64_t> consume() {
    std::vector<std::uint64_t> seen;
    for (int rounds = 0; rounds < 3 * kRecords; ++rounds) {
      clock_.advance(10'000);
      Call& call = commit({Receive{"s", "c", 10, Duration{1'000}, "o"}});
      Result<Answer> answer = complete(*std::move(call.finished));
      EXPECT_TRUE(answer.ok()) << answer.error().text();
      if (!answer.ok()) break;
      for (const Delivery& delivery : std::get<Received>(answer->verdicts.front()).deliveries) {
        seen.push_back(delivery.record.sequence.value);
        EXPECT_EQ(delivery.record.payload, texts_[seen.back() - 1]);
        commit({Ack{"s", "c", {delivery.record.sequence, delivery.token}}});
      }
    }
    std::sort(seen.begin(), seen.end());
    return seen;
  }
  std::vector<std::uint64_t> kept() {
    std::vector<std::uint64_t> sequences;
    for (const Record& record : records("s")) sequences.push_back(record.sequence.value);
    return sequences;
  }
  static std::vector<std::uint64_t> all_but(const std::vector<std::uint64_t>& lost) {
    std::vector<std::uint64_t> sequences;
    for (std::uint64_t i = 1; i <= kRecords; ++i) {
      if (std::find(lost.begin(), lost.end(), i) == lost.end()) sequences.push_back(i);
    }
    return sequences;
  }
  // Nothing that the store still refers to is missing, also to its own housekeeping.
  void expect_sound(const std::vector<std::uint64_t>& lost,
                    const std::vector<std::uint64_t>& acked = {}) {
    EXPECT_EQ(kept(), all_but(lost));
    EXPECT_EQ(machine().statistics().gaps, 1U);
    EXPECT_EQ(machine().statistics().records_lost, lost.size());
    std::vector<std::uint64_t> consumed = consume();
    consumed.insert(consumed.end(), acked.begin(), acked.end());
    std::sort(consumed.begin(), consumed.end());
    EXPECT_EQ(consumed, all_but(lost));
    for (const std::uint64_t sequence : lost) {
      const std::string& name = names_[sequence - 1];
      Call& again = commit({Append{.stream = "s",
                                   .payload = texts_[sequence - 1],
                                   .id = name,
                                   .group = base::if_filled((sequence - 1) % 2 == 0 ? "g" : "")}});
      EXPECT_EQ(std::get<Duplicate>(again.verdict()).sequence.value, sequence);
    }
    snapshot();
    snapshot();
    const Time now = machine().decided_at();
    const std::string before = canonical(now);
    kill();
    open();
    EXPECT_TRUE(canonical(now) == before);
    EXPECT_EQ(kept(), all_but(lost));
    engine_.reset();
    disk_.restart();
    sim::SimFolder folder(disk_);
    EXPECT_FALSE(repair(folder, entropy_, RepairMode::kDryRun)->needed);
    EXPECT_EQ(inspect(folder)->figures.records_lost, lost.size());
  }
  std::vector<std::uint64_t> in_segment(std::uint32_t segment) {
    std::vector<std::uint64_t> sequences;
    for (std::uint64_t i = 1; i <= kRecords; ++i) {
      if (place_of(Sequence{i}).segment == segment) sequences.push_back(i);
    }
    return sequences;
  }

  static constexpr int kRecords = 12;
  std::deque<std::string> names_;
  journal::RepairReport report_;
};

// G1
TEST_F(OfflineTest, ASegmentBelowTheSnapshotIsGivenUpWithItsRecordsAndTheirConsumersGoOn) {
  fill();
  // Records of the segment are in flight, parked, and not handed out yet.
  commit({Receive{"s", "c", 3, Duration{1'000}, "o"}});
  snapshot();
  const std::uint32_t middle = place_of(Sequence{4}).segment;
  const std::vector<std::uint64_t> lost = in_segment(middle);
  ASSERT_GE(lost.size(), 1U);
  ASSERT_GT(lost.front(), 1U);
  kill();
  disk_.corrupt(journal::segment_name(middle), 3, 1);  // Its header: a start refuses.
  ASSERT_FALSE(try_open().ok());
  repair_store();
  EXPECT_THAT(report_.steps, Contains(HasSubstr("records of stream 's'")));
  expect_sound(lost);
}

TEST_F(OfflineTest, AFolderWithoutSTOREIsRefusedInTheSameWordsByAll) {
  fill();
  engine_.reset();
  disk_.restart();
  sim::SimFolder folder(disk_);
  ASSERT_TRUE(folder.remove(journal::kStoreName).ok());
  const std::string said = try_open().error().text();
  EXPECT_THAT(said, HasSubstr("HX1021"));
  EXPECT_EQ(inspect(folder).error().text(), said);
  EXPECT_EQ(verify(folder).error().text(), said);
  EXPECT_EQ(repair(folder, entropy_, RepairMode::kDryRun).error().text(), said);
}

TEST_F(OfflineTest, ANewerFormatIsNoDamage) {
  fill();
  engine_.reset();
  disk_.restart();
  sim::SimFolder folder(disk_);
  {
    auto file = folder.open(journal::kStoreName, ports::OpenMode::kReadWrite);
    std::string block(72, '\0');
    ASSERT_EQ((*file)->read_at(0, block).value(), block.size());
    block[8] = 9;
    const std::uint32_t crc = digest::crc32c(std::string_view(block).substr(0, 68));
    for (std::size_t i = 0; i < 4; ++i) block[68 + i] = static_cast<char>(crc >> (8 * i));
    ASSERT_TRUE((*file)->write_at(0, block).ok());
  }
  const std::string said = try_open().error().text();
  EXPECT_THAT(said, HasSubstr("HX1022"));
  EXPECT_EQ(inspect(folder).error().text(), said);
  EXPECT_EQ(verify(folder).error().text(), said);
  EXPECT_EQ(repair(folder, entropy_, RepairMode::kDryRun).error().text(), said);
}

// G2: a start reads nothing below its snapshot, and still notices what is missing there.
TEST_F(OfflineTest, AMissingOrCutSegmentBelowTheSnapshotIsNoticedAndGivenUp) {
  for (const bool cut : {false, true}) {
    SCOPED_TRACE(cut);
    if (!cut) fill();
    snapshot();
    snapshot();
    const std::vector<std::uint64_t> before = kept();
    const base::Where gone = place_of(Sequence{before.front()});
    engine_.reset();
    disk_.restart();
    sim::SimFolder folder(disk_);
    const std::string name = journal::segment_name(gone.segment);
    if (cut) {
      auto file = folder.open(name, ports::OpenMode::kReadWrite);
      ASSERT_TRUE((*file)->truncate(gone.offset + gone.length - 1).ok());
    } else {
      ASSERT_TRUE(folder.remove(name).ok());
    }
    const auto verified = verify(folder);
    ASSERT_TRUE(verified.ok());
    EXPECT_FALSE(verified->intact());
    const auto inspected = inspect(folder);
    ASSERT_TRUE(inspected.ok() && inspected->refusal);
    EXPECT_THAT(*inspected->refusal, HasSubstr(name));
    const auto opened = try_open();
    ASSERT_FALSE(opened.ok());
    EXPECT_EQ(opened.error().code, Errc::kCorruption);
    EXPECT_THAT(opened.error().text(), HasSubstr("hapax repair --accept-loss"));
    repair_store();
    EXPECT_TRUE(report_.needed);
    EXPECT_LT(kept().size(), before.size());
    kill();
    open();
  }
}

// L20: what is there is intact, and yet facts may be lost.
TEST_F(OfflineTest, InspectTellsThatTheLastFileWasCut) {
  const auto lines = [this] {
    sim::SimFolder folder(disk_);
    const auto inspected = inspect(folder);
    EXPECT_TRUE(inspected.ok() && !inspected->refusal);
    return inspected->lines;
  };
  commit({CreateStream{"s", {}}});
  const journal::Slot last = machine().next_slot();
  ASSERT_GT(last.offset, journal::kHeaderBytes);
  commit({Append{.stream = "s", .payload = "p"}});
  kill();
  EXPECT_THAT(lines(), Not(Contains(HasSubstr("it was cut"))));
  disk_.truncate_raw(journal::segment_name(last.segment), last.offset);
  EXPECT_THAT(lines(), Contains(HasSubstr("it was cut")));
}

TEST_F(OfflineTest, ABitBelowALiveRecordCostsThatRecordOnly) {
  fill(1);
  commit({Receive{"s", "c", 1, Duration{1'000}, "o"}});
  clock_.advance(5'000);
  // Its last attempt is over: record 1 blocks its group for good. Record 2 is handed out, and
  // acked.
  Call& second = commit({Receive{"s", "c", 1, Duration{1'000}, "o"}});
  const Delivery& delivery = std::get<Received>(second.verdict()).deliveries.front();
  commit({Ack{"s", "c", {delivery.record.sequence, delivery.token}}});
  snapshot();
  const base::Where place = place_of(Sequence{1});
  kill();
  disk_.corrupt(journal::segment_name(place.segment), place.offset + 500, 1);
  repair_store();
  EXPECT_EQ(report_.lost_last, journal::Lsn{});
  expect_sound({1}, {2});
}

TEST_F(OfflineTest, AResultAndAnAnswerThatAreGivenUpStayKnownAsDone) {
  fill();
  snapshot();
  const auto claim =
      state().settled.find(claim_hash(engine_->key(), "k", names_[3]), machine().decided_at());
  const base::Where result = claim->where;
  const std::string id = "commit " + names_[5];
  Commit repeated;
  repeated.id = id;
  const std::vector<Op> any = {CreateStream{"s", {}}};
  repeated.ops = any;
  const auto answer =
      state().settled.find(prepare(repeated, engine_->key())->id, machine().decided_at());
  const base::Where answered = answer->where;
  kill();
  disk_.corrupt(journal::segment_name(result.segment), result.offset + 500, 1);
  disk_.corrupt(journal::segment_name(answered.segment), answered.offset + 8, 1);
  repair_store();
  EXPECT_EQ(machine().statistics().results_lost, 2U);
  Call& again = commit({Claim{.scope = "k", .key = names_[3], .owner = "o"}});
  const auto completed = complete(*std::move(again.finished));
  ASSERT_TRUE(completed.ok());
  EXPECT_EQ(std::get<DuplicateClaim>(completed->verdicts.front()).result, std::nullopt);
  expect_sound({});
}

// G3
// G3: a start that was killed while it gave files their names once more.
TEST_F(OfflineTest, ANameThatIsBeingRenewedIsNoDamage) {
  fill();
  snapshot();
  const std::string newest = journal::snapshot_name(files(FileName::Kind::kSnapshot).back());
  kill();
  {
    sim::SimFolder folder(disk_);
    ASSERT_TRUE(folder.rename(newest, newest + std::string(journal::kRenewedSuffix)).ok());
    ASSERT_TRUE(folder.sync().ok());
  }
  sim::SimFolder folder(disk_);
  const auto inspected = inspect(folder);
  ASSERT_TRUE(inspected.ok()) << inspected.error().text();
  EXPECT_FALSE(inspected->refusal);
  const auto verified = verify(folder);
  ASSERT_TRUE(verified.ok()) << verified.error().text();
  EXPECT_TRUE(verified->intact());
}

TEST_F(OfflineTest, DamageThatNothingNeedsIsToldApart) {
  fill();
  snapshot();
  snapshot();
  const base::Where dead = place_of(Sequence{2});
  commit({Trim{.stream = "s", .before = Sequence{3}}});
  snapshot();
  engine_.reset();
  disk_.restart();
  disk_.corrupt(journal::segment_name(dead.segment), dead.offset + 500, 1);
  sim::SimFolder folder(disk_);
  const auto verified = verify(folder);
  ASSERT_TRUE(verified.ok());
  EXPECT_TRUE(verified->intact());
  ASSERT_EQ(verified->unneeded.size(), 1U);
  EXPECT_EQ(verified->unneeded[0].file, journal::segment_name(dead.segment));
  EXPECT_FALSE(repair(folder, entropy_, RepairMode::kDryRun)->needed);
}

// G3
TEST_F(OfflineTest, VerifyAndRepairAgreeBeforeAndAfterTheRepair) {
  fill();
  snapshot();
  const base::Where place = place_of(Sequence{2});
  kill();
  disk_.corrupt(journal::segment_name(place.segment), place.offset + 500, 1);
  EXPECT_FALSE(verify_store().intact());
  repair_store();
  EXPECT_TRUE(report_.needed);
  const std::uint64_t newest = files(FileName::Kind::kSnapshot).back();
  engine_.reset();
  disk_.restart();
  const journal::VerifyReport repaired = verify_store();
  EXPECT_TRUE(repaired.intact());
  EXPECT_EQ(repaired.unneeded.size(), 1U);
  // Whole by its checksums, and yet of no use.
  rewrite_snapshot(newest, kTagIds, [](std::string& bytes) { bytes[0] = 63; });
  EXPECT_FALSE(verify_store().intact());
}

TEST_F(OfflineTest, DamageBehindTheSnapshotGivesUpWhatFollowsItAndNothingElse) {
  fill();
  snapshot();
  const std::vector<std::uint64_t> before = kept();
  const journal::Slot slot = engine_->writer().slot();
  commit({Append{.stream = "s", .payload = "later"}});
  commit({Append{.stream = "s", .payload = "last"}});
  kill();
  disk_.corrupt(journal::segment_name(slot.segment), slot.offset + 70, 1);
  ASSERT_FALSE(try_open().ok());
  repair_store();
  EXPECT_GT(report_.lost_last, journal::Lsn{});
  EXPECT_EQ(kept(), before);
  EXPECT_EQ(machine().statistics().records_lost, 0U);
  EXPECT_EQ(consume(), all_but({}));
  EXPECT_EQ(
      std::get<Appended>(commit({Append{.stream = "s", .payload = "new"}}).verdict()).sequence,
      (Sequence{kRecords + 1}));
}

TEST_F(OfflineTest, ADamagedNewestSnapshotCostsNothing) {
  fill();
  snapshot();
  commit({Append{.stream = "s", .payload = "x"}});
  snapshot();
  // A start after a kill writes the last batch again, elsewhere: no place of it is compared.
  commit({Set{.name = "last", .mode = SetMode::kLastWriter}});
  const std::uint64_t newest = files(FileName::Kind::kSnapshot).back();
  const Time now = machine().decided_at();
  const std::string before = canonical(now);
  kill();
  // Whole by its checksums, and yet of no use: only the engine can tell.
  rewrite_snapshot(newest, kTagIds, [](std::string& bytes) { bytes[0] = 63; });
  repair_store();
  EXPECT_THAT(report_.steps, ElementsAre(HasSubstr(journal::snapshot_name(newest))));
  EXPECT_EQ(machine().statistics().gaps, 0U);
  EXPECT_TRUE(canonical(now) == before);
}

}  // namespace
}  // namespace hapax::engine
