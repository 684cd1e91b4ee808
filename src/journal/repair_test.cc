#include "journal/repair.h"

#include <gtest/gtest.h>

#include "base/format.h"
#include "journal/scribe.h"
#include "journal/snapshot_file.h"
#include "journal/verify.h"
#include "sim/disk.h"
#include "sim/entropy.h"

namespace hapax::journal {
namespace {

using sim::Random;
using sim::SimDisk;
using sim::SimEntropy;
using sim::SimFolder;

std::string gap_text(Lsn first, Lsn last) {
  return base::format("lost {}..{}", first.value, last.value);
}
const RepairHooks kHooks{gap_text, {}, {}};

class Repair : public testing::Test {
 protected:
  // Twelve facts in several segments, and a clean end.
  void SetUp() override {
    Scribe& scribe = start();
    ASSERT_TRUE(scribe.open().ok());
    for (int i = 0; i < 12; ++i) {
      slots_.push_back(scribe.writer().slot());
      ASSERT_TRUE(scribe.write(1, 100).ok());
    }
    ASSERT_TRUE(scribe.mark(MarkKind::kClean).ok());
    identity_ = scribe.identity();
    disk_.restart();
    ASSERT_GT(slots_.back().segment, 3U);
  }
  Scribe& start() {
    scribe_.reset();
    disk_.restart();
    folder_ = std::make_unique<SimFolder>(disk_);
    scribe_ = std::make_unique<Scribe>(*folder_, entropy_, witness_);
    return *scribe_;
  }
  Result<RepairReport> repair_now(RepairMode mode = RepairMode::kAcceptLoss,
                                  const RepairHooks& hooks = kHooks) {
    disk_.restart();
    folder_ = std::make_unique<SimFolder>(disk_);
    return repair(*folder_, entropy_, mode, hooks);
  }
  // What a repair that gave up [first, …] leaves to be found.
  void expect_facts_before(Lsn first, const std::string& gap) {
    witness_.acknowledged.resize(first.value - 1);
    witness_.acknowledged.push_back(gap);
    const Status opened = start().open();
    ASSERT_TRUE(opened.ok()) << opened.error().text();
    ASSERT_TRUE(scribe_->write(1, 60).ok());
    ASSERT_TRUE(start().open().ok());
  }
  void damage_fact(Lsn lsn) {
    const Slot slot = slots_.at(lsn.value - 1);
    disk_.corrupt(segment_name(slot.segment), slot.offset + kHeaderBytes + 5, 2);
  }

  SimDisk disk_{Random(1)};
  SimEntropy entropy_{Random(2)};
  Witness witness_;
  Identity identity_;
  std::vector<Slot> slots_;
  std::unique_ptr<SimFolder> folder_;
  std::unique_ptr<Scribe> scribe_;
};

TEST_F(Repair, DoesNothingToAnIntactStore) {
  const std::uint64_t calls = disk_.calls();
  const RepairReport report = repair_now().value();
  EXPECT_FALSE(report.needed);
  EXPECT_TRUE(report.steps.empty());
  EXPECT_EQ(disk_.calls(), calls);
  EXPECT_TRUE(start().open().ok());
}

// L14: keeps what is before the damage, says what is lost, grows the history.
TEST_F(Repair, GivesUpWhatIsBehindTheDamage) {
  for (std::uint64_t lsn = 1; lsn <= 12; ++lsn) {
    SCOPED_TRACE("damage at lsn " + std::to_string(lsn));
    const sim::DiskImage image = disk_.copy();
    const Witness witness = witness_;
    damage_fact(Lsn{lsn});
    EXPECT_EQ(start().open().error().code, Errc::kCorruption);
    const auto report = repair_now();
    ASSERT_TRUE(report.ok()) << report.error().text();
    EXPECT_EQ(report->lost_first, Lsn{lsn});
    EXPECT_EQ(report->lost_last, Lsn{12});
    EXPECT_EQ(report->history, 2U);
    expect_facts_before(Lsn{lsn}, gap_text(Lsn{lsn}, Lsn{12}));
    EXPECT_EQ(scribe_->identity().history, 2U);
    EXPECT_EQ(scribe_->identity().hash_key, identity_.hash_key);
    EXPECT_FALSE(repair_now()->needed);
    EXPECT_TRUE(verify(*folder_)->intact());
    if (HasFatalFailure()) return;
    disk_.restore(image);
    witness_ = witness;
  }
}

// L14: every byte that was there is still there, under its name or in quarantine.
TEST_F(Repair, KeepsTheOldFiles) {
  damage_fact(Lsn{5});
  std::vector<std::string> contents;
  start();
  const std::vector<std::string> names = folder_->list().value();
  for (const std::string& name : names) {
    if (parse_name(name).kind == FileName::Kind::kSegment) contents.push_back(*disk_.cached(name));
  }
  ASSERT_TRUE(repair_now().ok());
  const std::vector<std::string> names_now = folder_->list().value();
  for (const std::string& content : contents) {
    const bool kept = std::any_of(names_now.begin(), names_now.end(), [&](const std::string& name) {
      return disk_.durable(name) == content;
    });
    EXPECT_TRUE(kept);
  }
  ASSERT_TRUE(disk_.cached(quarantine_name(segment_name(slots_.back().segment))).has_value());
}

TEST_F(Repair, ADryRunOnlyTells) {
  damage_fact(Lsn{5});
  const std::uint64_t calls = disk_.calls();
  const RepairReport report = repair_now(RepairMode::kDryRun).value();
  EXPECT_TRUE(report.needed);
  EXPECT_EQ(report.lost_first, Lsn{5});
  EXPECT_GE(report.steps.size(), 3U);
  EXPECT_EQ(disk_.calls(), calls);
}

TEST_F(Repair, RestoresStoreFromItsOtherBlockWithoutLoss) {
  for (const std::uint64_t offset : {30U, 4096U + 30U}) {
    disk_.corrupt("STORE", offset, 4);
    EXPECT_EQ(start().open().error().code, Errc::kCorruption);
    const RepairReport report = repair_now().value();
    EXPECT_EQ(report.lost_first, Lsn{});
    EXPECT_EQ(report.history, 1U);
    ASSERT_TRUE(start().open().ok());
    EXPECT_EQ(scribe_->identity(), identity_);
  }
}

TEST_F(Repair, MakesMarksAgain) {
  disk_.remove_raw("MARKS");
  EXPECT_EQ(start().open().error().code, Errc::kCorruption);
  const RepairReport report = repair_now().value();
  EXPECT_EQ(report.lost_first, Lsn{});
  EXPECT_TRUE(start().open().ok());
}

// A segment without a readable header takes the facts behind it along.
TEST_F(Repair, QuarantinesASegmentWithoutAHeader) {
  const std::uint32_t number = slots_[6].segment;
  disk_.corrupt(segment_name(number), 20, 1);
  const auto report = repair_now();
  ASSERT_TRUE(report.ok()) << report.error().text();
  EXPECT_LE(report->lost_first, Lsn{7});
  EXPECT_EQ(report->lost_last, Lsn{12});
  EXPECT_TRUE(disk_.cached(quarantine_name(segment_name(number))).has_value());
  expect_facts_before(report->lost_first, gap_text(report->lost_first, Lsn{12}));
}

Status write_snapshot(ports::Folder& folder, const Identity& identity, std::uint64_t lsn) {
  const SnapshotHeader header{SnapshotKind::kSnapshot, identity.store_id, identity.history, lsn,
                              time_from_ms(static_cast<std::int64_t>(lsn))};
  HAPAX_TRY(SnapshotWriter writer, SnapshotWriter::create(folder, header));
  HAPAX_CHECK(writer.add(1, "state"));
  return writer.finish();
}

// Old payloads are lost, but the snapshot and all facts behind it are not.
TEST_F(Repair, KeepsEverythingBehindASnapshot) {
  start();
  ASSERT_TRUE(write_snapshot(*folder_, identity_, 8).ok());
  disk_.corrupt(segment_name(1), 20, 1);
  EXPECT_EQ(start().open(Lsn{8}).error().code, Errc::kCorruption);
  const auto report = repair_now();
  ASSERT_TRUE(report.ok()) << report.error().text();
  EXPECT_LT(report->lost_last, Lsn{8});
  witness_.acknowledged.push_back(gap_text(report->lost_first, report->lost_last));
  const Status opened = start().open(Lsn{8});
  EXPECT_TRUE(opened.ok()) << opened.error().text();
  EXPECT_EQ(scribe_->found().size(), 5U);
}

TEST_F(Repair, GoesOnFromASnapshotThatIsAheadOfTheJournal) {
  start();
  ASSERT_TRUE(write_snapshot(*folder_, identity_, 12).ok());
  damage_fact(Lsn{5});
  for (std::uint32_t number = slots_[4].segment + 1; number <= slots_.back().segment; ++number) {
    disk_.remove_raw(segment_name(number));
  }
  EXPECT_EQ(start().open(Lsn{12}).error().code, Errc::kCorruption);
  const auto report = repair_now();
  ASSERT_TRUE(report.ok()) << report.error().text();
  EXPECT_EQ(report->lost_first, Lsn{5});
  EXPECT_EQ(report->lost_last, Lsn{12});
  witness_.acknowledged.push_back(gap_text(Lsn{5}, Lsn{12}));
  const Status opened = start().open(Lsn{12});
  EXPECT_TRUE(opened.ok()) << opened.error().text();
  EXPECT_EQ(scribe_->found().size(), 1U);
}

TEST_F(Repair, PutsDamagedAndUnusableSnapshotsAside) {
  start();
  for (const std::uint64_t lsn : {4U, 8U, 10U}) {
    ASSERT_TRUE(write_snapshot(*folder_, identity_, lsn).ok());
  }
  disk_.corrupt(snapshot_name(10), 70, 1);
  const auto refuse_eight = [](const Identity&, Lsn snapshot) -> Status {
    if (snapshot == Lsn{8}) return Error{Errc::kCorruption, "a part is missing"};
    return Ok{};
  };
  const RepairReport report =
      repair_now(RepairMode::kAcceptLoss, {gap_text, refuse_eight, {}}).value();
  EXPECT_EQ(report.lost_first, Lsn{});
  EXPECT_EQ(list_snapshots(*folder_)->snapshots, (std::vector<Lsn>{Lsn{4}}));
  EXPECT_TRUE(disk_.cached(quarantine_name(snapshot_name(10))).has_value());
}

TEST_F(Repair, GivesUpWhenNothingCanBeRebuilt) {
  disk_.remove_raw(segment_name(1));
  const auto report = repair_now();
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, Errc::kCorruption);
  EXPECT_NE(report.error().detail.find("backup"), std::string::npos);
}

// L14: a repair that dies leaves a store that refuses to start, or is done.
// More than a batch can hold.
TEST_F(Repair, TellsOfVeryManyLosses) {
  RepairHooks hooks = kHooks;
  hooks.check_payloads = [](const Kept&) -> Result<PayloadLoss> {
    PayloadLoss loss;
    loss.facts.assign(680, std::string(100'010, 'l'));
    return loss;
  };
  const auto report = repair_now(RepairMode::kAcceptLoss, hooks);
  ASSERT_TRUE(report.ok()) << report.error().text();
}

TEST_F(Repair, CanDieAtAnyPoint) {
  damage_fact(Lsn{5});
  const sim::DiskImage image = disk_.copy();
  for (std::uint64_t call = 0;; ++call) {
    bool crashed = false;
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      SCOPED_TRACE(base::format("call {} seed {}", call, seed));
      SimDisk disk{Random(seed)};
      disk.restore(image);
      const auto kind = seed % 4 == 0 ? sim::Crash::Kind::kKill : sim::Crash::Kind::kPowerLoss;
      disk.crash_at_call(disk.calls() + call, sim::When::kAfter, kind);
      try {
        SimFolder folder(disk);
        EXPECT_TRUE(repair(folder, entropy_, RepairMode::kAcceptLoss, kHooks).ok());
      } catch (const sim::Crash&) {
        crashed = true;
      }
      disk.restart();
      disk.clear_script();
      SimFolder folder(disk);
      const Identity identity = read_identity(folder).value();
      std::vector<std::string> found;
      const auto visit = [&](const BatchView& batch) {
        return for_each_fact(batch, [&](Lsn, base::Where, std::string_view fact) -> Status {
          found.emplace_back(fact);
          return Ok{};
        });
      };
      auto recovered = recover(folder, entropy_, identity, {}, visit);
      if (!recovered.ok()) {
        ASSERT_EQ(recovered.error().code, Errc::kCorruption) << recovered.error().text();
        const auto again = repair(folder, entropy_, RepairMode::kAcceptLoss, kHooks);
        ASSERT_TRUE(again.ok()) << again.error().text();
        found.clear();
        recovered = recover(folder, entropy_, *read_identity(folder), {}, visit);
        ASSERT_TRUE(recovered.ok()) << recovered.error().text();
      }
      ASSERT_GE(found.size(), 5U);
      EXPECT_EQ(found[4], gap_text(Lsn{5}, Lsn{12}));
    }
    if (!crashed) break;
  }
}

}  // namespace
}  // namespace hapax::journal
