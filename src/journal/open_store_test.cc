#include "journal/open_store.h"

#include <gtest/gtest.h>

#include "base/format.h"
#include "journal/marks.h"
#include "journal/moving.h"
#include "journal/names.h"
#include "journal/segment_files.h"
#include "journal/snapshot_file.h"
#include "sim/disk.h"
#include "sim/entropy.h"

namespace hapax::journal {
namespace {

using sim::Random;
using sim::SimDisk;
using sim::SimEntropy;
using sim::SimFolder;

class OpenStore : public testing::Test {
 protected:
  Result<Identity> open() {
    disk_.restart();
    SimFolder folder(disk_);
    return open_store(folder, entropy_, 1'234);
  }
  SimDisk disk_{Random(1)};
  SimEntropy entropy_{Random(2)};
};

TEST_F(OpenStore, DrawsAnIdentityOnce) {
  const Identity identity = open().value();
  EXPECT_EQ(identity.created_ms, 1'234);
  EXPECT_NE(identity.store_id, identity.hash_key);
  EXPECT_EQ(open().value(), identity);
  disk_.power_loss();
  EXPECT_EQ(open().value(), identity);
}

TEST_F(OpenStore, IgnoresWhatIsNotOurs) {
  {
    SimFolder folder(disk_);
    ASSERT_TRUE(folder.open("notes.txt", ports::OpenMode::kCreate).ok());
    ASSERT_TRUE(folder.lock(kLockName).ok());
  }
  EXPECT_TRUE(open().ok());
}

// M14: an identity is never made up beside facts.
TEST_F(OpenStore, RefusesFactsWithoutStore) {
  ASSERT_TRUE(open().ok());
  disk_.remove_raw("STORE");
  {
    SimFolder folder(disk_);
    const auto file = folder.open(segment_name(1), ports::OpenMode::kReadWrite).value();
    ASSERT_TRUE(file->write_at(64, "facts").ok());
  }
  const auto refused = open();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::kCorruption);
  EXPECT_NE(refused.error().detail.find("journal-0000000000000001.log"), std::string::npos);
}

// J1, J2: neither what is being copied nor what was moved is started from.
TEST_F(OpenStore, RefusesANoteOfAMove) {
  const Identity identity = open().value();
  const Cargo cargo{identity, Lsn{7}, 0x1f, Lsn{3}};
  const MoveNote note = note_of(cargo, "ticket", {"there", "here", "hapax copy there here"});
  for (const std::string_view name : {kCopyingName, kMovedName}) {
    SimFolder folder(disk_);
    ASSERT_TRUE(write_note(folder, name, note).ok());
    EXPECT_EQ(read_note(folder, name).value(), note);
    const auto refused = open();
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, Errc::kPreconditionFailed);
    const bool copying = name == kCopyingName;
    EXPECT_NE(refused.error().detail.find(copying ? "hapax copy there here" : "moved to here"),
              std::string::npos);
    SimFolder again(disk_);
    ASSERT_TRUE(remove_note(again, name).ok());
    EXPECT_EQ(open().value(), identity);
  }
  // A copy that was cut short has no STORE yet.
  SimFolder folder(disk_);
  ASSERT_TRUE(write_note(folder, kCopyingName, note).ok());
  ASSERT_TRUE(folder.remove(kStoreName).ok());
  EXPECT_EQ(open().error().code, Errc::kPreconditionFailed);
  SimFolder looked(disk_);
  EXPECT_EQ(check_store_file(looked).error().code, Errc::kPreconditionFailed);
}

TEST_F(OpenStore, BeginsACutShortCreationAgain) {
  for (std::uint64_t call = 0;; ++call) {
    bool crashed = false;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      SimDisk disk{Random(seed)};
      disk.crash_at_call(call, sim::When::kAfter, sim::Crash::Kind::kPowerLoss);
      try {
        SimFolder folder(disk);
        EXPECT_TRUE(open_store(folder, entropy_, 1).ok());
      } catch (const sim::Crash&) {
        crashed = true;
      }
      disk.restart();
      disk.clear_script();
      SimFolder folder(disk);
      const auto identity = open_store(folder, entropy_, 1);
      ASSERT_TRUE(identity.ok()) << identity.error().text();
    }
    if (!crashed) break;
  }
}

// L4: names whose sync failed are given once more before anything rests on them.
TEST_F(OpenStore, DoesNotTrustNamesThatNobodySynced) {
  for (std::uint64_t call = 0;; ++call) {
    SimDisk disk{Random(call)};
    disk.fail_at_call(call, Errc::kIo);
    Identity identity;
    {
      SimFolder folder(disk);
      const auto first = open_store(folder, entropy_, 1);
      if (disk.calls() <= call) break;
      disk.restart();
    }
    {
      SimFolder folder(disk);
      identity = open_store(folder, entropy_, 1).value();
    }
    disk.power_loss();
    disk.restart();
    SimFolder folder(disk);
    EXPECT_EQ(read_identity(folder).value(), identity) << "call " << call;
  }
}

// L4: the same for a snapshot that later work will rest on; and a start that dies while it renews
// the name loses nothing.
TEST_F(OpenStore, GivesSnapshotsTheirNamesOnceMore) {
  for (std::uint64_t call = 0; call < 8; ++call) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      SCOPED_TRACE(base::format("call {} seed {}", call, seed));
      SimDisk disk{Random(seed)};
      {
        SimFolder folder(disk);
        const Identity identity = open_store(folder, entropy_, 1).value();
        ASSERT_TRUE(folder.sync().ok());
        const SnapshotHeader header{SnapshotKind::kSnapshot, identity.store_id, 1, 7, {}};
        SnapshotWriter writer = SnapshotWriter::create(folder, header).value();
        disk.fail_at_call(disk.calls() + 3, Errc::kIo);  // Behind write, sync and rename.
        ASSERT_FALSE(writer.finish().ok());
      }
      ASSERT_TRUE(disk.cached(snapshot_name(7)).has_value());
      disk.restart();
      disk.crash_at_call(disk.calls() + call, sim::When::kAfter, sim::Crash::Kind::kKill);
      try {
        SimFolder folder(disk);
        ASSERT_TRUE(open_store(folder, entropy_, 1).ok());
      } catch (const sim::Crash&) {
      }
      disk.restart();
      disk.clear_script();
      {
        SimFolder folder(disk);
        ASSERT_TRUE(open_store(folder, entropy_, 1).ok());
      }
      disk.power_loss();
      EXPECT_TRUE(disk.cached(snapshot_name(7)).has_value());
    }
  }
}

TEST_F(OpenStore, EitherBlockOfTheIdentityCanBeSalvaged) {
  const Identity identity = open().value();
  const sim::DiskImage image = disk_.copy();
  for (const std::uint64_t offset : {20U, 4096U + 40U}) {
    disk_.restore(image);
    disk_.corrupt("STORE", offset, 1);
    SimFolder folder(disk_);
    EXPECT_EQ(read_identity(folder).error().code, Errc::kCorruption);
    EXPECT_EQ(salvage_identity(folder).value(), identity);
  }
  disk_.corrupt("STORE", 20, 1);
  SimFolder folder(disk_);
  EXPECT_EQ(salvage_identity(folder).error().code, Errc::kCorruption);
}

// L11: at every crash of every write one mark is intact: the newest or the one before it.
TEST_F(OpenStore, OneMarkIsAlwaysIntact) {
  for (std::uint64_t call = 0; call < 14; ++call) {
    for (const auto kind : {sim::Crash::Kind::kKill, sim::Crash::Kind::kPowerLoss}) {
      for (std::uint64_t seed = 0; seed < 30; ++seed) {
        SimDisk disk{Random(seed)};
        Lsn written;
        {
          SimFolder folder(disk);
          ASSERT_TRUE(Marks::create(folder, {}).ok());
          ASSERT_TRUE(folder.sync().ok());
        }
        disk.crash_at_call(disk.calls() + call, sim::When::kMiddle, kind);
        for (int process = 0; process < 2; ++process) {
          try {
            disk.restart();
            SimFolder folder(disk);
            Marks marks = Marks::open(folder).value();
            ASSERT_GE(marks.newest().durable.next(), written);
            ASSERT_TRUE(marks.settle().ok());
            for (int i = 0; i < 3; ++i) {
              Mark mark;
              mark.durable = marks.newest().durable.next();
              ASSERT_TRUE(marks.write(mark).ok());
              written = mark.durable;
            }
          } catch (const sim::Crash&) {
          }
        }
        disk.power_loss();
        disk.restart();
        SimFolder folder(disk);
        const auto marks = Marks::open(folder);
        ASSERT_TRUE(marks.ok()) << marks.error().text();
        ASSERT_GE(marks->newest().durable.next(), written);
      }
    }
  }
}

TEST(SegmentFilesTest, OpensEachSegmentOnceAndForgetsTheOldest) {
  SimDisk disk{Random(1)};
  SimFolder folder(disk);
  const auto count = static_cast<std::uint32_t>(SegmentFiles::kOpenMax + 1);
  for (std::uint32_t number = 1; number <= count; ++number) {
    ASSERT_TRUE(folder.open(segment_name(number), ports::OpenMode::kCreate).ok());
  }
  SegmentFiles files(folder);
  const auto first = files.open(1).value();
  EXPECT_EQ(files.open(1).value(), first);
  const auto second = files.open(2).value();
  for (std::uint32_t number = 1; number <= count; ++number) {
    ASSERT_TRUE(number == 2 || files.open(number).ok());
  }
  EXPECT_EQ(files.open(1).value(), first);
  EXPECT_NE(files.open(2).value(), second);
  files.drop(1);
  EXPECT_NE(files.open(1).value(), first);
  EXPECT_EQ(files.open(9'999).error().code, Errc::kNotFound);
}

TEST(SegmentFilesTest, ARemovedSegmentStaysReadableForItsReaders) {
  SimDisk disk{Random(1)};
  SimFolder folder(disk);
  ASSERT_EQ(
      folder.open(segment_name(1), ports::OpenMode::kCreate).value()->write_at(0, "x").value(), 1U);
  SegmentFiles files(folder);
  const auto file = files.open(1).value();
  ASSERT_TRUE(remove_segment(folder, files, 1).ok());
  EXPECT_EQ(files.open(1).error().code, Errc::kNotFound);
  char byte = 0;
  EXPECT_EQ(file->read_at(0, {&byte, 1}).value(), 1U);
  EXPECT_EQ(disk.durable(segment_name(1)), std::nullopt);
}

}  // namespace
}  // namespace hapax::journal
