#include "journal/verify.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "journal/scribe.h"
#include "journal/snapshot_file.h"
#include "sim/disk.h"
#include "sim/entropy.h"

namespace hapax::journal {
namespace {

using sim::Random;
using sim::SimDisk;
using sim::SimEntropy;
using sim::SimFolder;

class Verify : public testing::Test {
 protected:
  void SetUp() override {
    SimFolder folder(disk_);
    Scribe scribe(folder, entropy_, witness_);
    ASSERT_TRUE(scribe.open().ok());
    for (int i = 0; i < 12; ++i) {
      slots_.push_back(scribe.writer().slot());
      ASSERT_TRUE(scribe.write(2, 60).ok());
    }
    identity_ = scribe.identity();
    SnapshotHeader header{SnapshotKind::kSnapshot, identity_.store_id, 1, 10, {}};
    SnapshotWriter snapshot = SnapshotWriter::create(folder, header).value();
    ASSERT_TRUE(snapshot.add(1, "state").ok());
    ASSERT_TRUE(snapshot.finish().ok());
  }
  VerifyReport look() {
    disk_.restart();
    SimFolder folder(disk_);
    return verify(folder).value();
  }

  SimDisk disk_{Random(1)};
  SimEntropy entropy_{Random(2)};
  Witness witness_;
  Identity identity_;
  std::vector<Slot> slots_;
};

TEST_F(Verify, CountsWhatIsIntact) {
  const std::uint64_t calls = disk_.calls();
  const VerifyReport report = look();
  EXPECT_TRUE(report.intact()) << report.problems.front().text;
  EXPECT_EQ(report.facts, 24U);
  EXPECT_EQ(report.batches, 12U);
  EXPECT_EQ(report.last, Lsn{24});
  EXPECT_GT(report.bytes, 12'000U);
  EXPECT_EQ(disk_.calls(), calls) << "it only looks";
}

// Damage below the snapshot does not stop a start, but it is found, and what follows is counted.
TEST_F(Verify, FindsEveryDamagedBatch) {
  for (const std::size_t batch : {0U, 3U, 5U}) {
    const Slot slot = slots_[batch];
    disk_.corrupt(segment_name(slot.segment), slot.offset + 70, 1);
  }
  const VerifyReport report = look();
  ASSERT_EQ(report.problems.size(), 3U);
  EXPECT_EQ(report.problems[0].file, segment_name(slots_[0].segment));
  EXPECT_EQ(report.problems[0].offset, slots_[0].offset);
  EXPECT_NE(report.problems[0].text.find("lsn 1 to 2"), std::string::npos);
  EXPECT_EQ(report.problems[2].offset, slots_[5].offset);
  EXPECT_EQ(report.batches, 9U);
}

TEST_F(Verify, FindsDamageInEveryKindOfFile) {
  disk_.corrupt(snapshot_name(10), 66, 1);
  disk_.corrupt("STORE", 10, 1);
  disk_.truncate_raw("MARKS", 0);
  disk_.corrupt(segment_name(2), 5, 1);
  const VerifyReport report = look();
  std::vector<std::string> files;
  for (const FileProblem& problem : report.problems) files.push_back(problem.file);
  for (const std::string& name :
       {snapshot_name(10), std::string("STORE"), std::string("MARKS"), segment_name(2)}) {
    EXPECT_NE(std::find(files.begin(), files.end(), name), files.end()) << name;
  }
}

// L13: a file that cannot be read is a problem of that file; the others are still looked at.
TEST_F(Verify, GoesOnAfterAReadError) {
  const std::uint64_t looks = disk_.looks();
  EXPECT_TRUE(look().intact());
  const std::uint64_t all = disk_.looks() - looks;
  for (std::uint64_t n = 1; n < all; ++n) {
    disk_.fail_at_look(disk_.looks() + n, Errc::kIo);
    EXPECT_FALSE(look().intact()) << "look " << n;
    disk_.clear_script();
  }
}

TEST_F(Verify, ReportsAMissingSegmentThatIsNeeded) {
  const std::uint32_t number = slots_[8].segment;
  disk_.remove_raw(segment_name(number));
  const VerifyReport report = look();
  ASSERT_FALSE(report.intact());
  EXPECT_NE(report.problems[0].text.find("cannot be read"), std::string::npos);
}

TEST_F(Verify, AllowsASegmentThatTheSnapshotMadeSuperfluous) {
  disk_.remove_raw(segment_name(1));
  EXPECT_TRUE(look().intact()) << look().problems.front().text;
}

// What cleaning left out is not a reason to distrust the disk.
TEST_F(Verify, AllowsAHoleBetweenSegmentsThatTheSnapshotMadeSuperfluous) {
  {
    SimFolder folder(disk_);
    const SnapshotHeader header{SnapshotKind::kSnapshot, identity_.store_id, 1, 20, {}};
    SnapshotWriter snapshot = SnapshotWriter::create(folder, header).value();
    ASSERT_TRUE(snapshot.finish().ok());
  }
  disk_.remove_raw(snapshot_name(10));
  disk_.remove_raw(segment_name(2));
  EXPECT_TRUE(look().intact()) << look().problems.front().text;
  // A cut in front of the hole is not part of it.
  disk_.truncate_raw(segment_name(1), slots_[1].offset + 10);
  EXPECT_FALSE(look().intact());
}

// L20: it may have cost facts, though nothing that is there is damaged.
TEST_F(Verify, NotesThatTheLastFileWasCut) {
  const auto says_cut = [](const VerifyReport& report) {
    return std::any_of(report.notes.begin(), report.notes.end(), [](const std::string& note) {
      return note.find("it was cut") != std::string::npos;
    });
  };
  EXPECT_FALSE(says_cut(look()));
  const Slot last = slots_.back();
  ASSERT_GT(last.offset, kHeaderBytes) << "the first batch of a segment is marked";
  disk_.truncate_raw(segment_name(last.segment), last.offset);
  const VerifyReport report = look();
  EXPECT_TRUE(report.intact()) << report.problems.front().text;
  EXPECT_EQ(report.batches, slots_.size() - 1);
  EXPECT_TRUE(says_cut(report));
}

TEST_F(Verify, NotesWhatIsNotOurs) {
  {
    SimFolder folder(disk_);
    ASSERT_TRUE(folder.open("notes.txt", ports::OpenMode::kCreate).ok());
  }
  const VerifyReport report = look();
  EXPECT_TRUE(report.intact());
  EXPECT_EQ(report.notes.size(), 1U);
}

TEST_F(Verify, ShowsEveryBatchToTheVisitor) {
  disk_.restart();
  SimFolder folder(disk_);
  const auto refuse_third = [](const BatchView& batch) -> Status {
    if (batch.header.first == Lsn{5}) return Error{Errc::kCorruption, "nonsense"};
    return Ok{};
  };
  const VerifyReport report = verify(folder, refuse_third).value();
  ASSERT_EQ(report.problems.size(), 1U);
  EXPECT_EQ(report.problems[0].text, "nonsense");
  EXPECT_EQ(report.problems[0].offset, slots_[2].offset);
}

}  // namespace
}  // namespace hapax::journal
