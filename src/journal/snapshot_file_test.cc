#include "journal/snapshot_file.h"

#include <gtest/gtest.h>

#include "journal/names.h"
#include "sim/disk.h"
#include "sim/entropy.h"

namespace hapax::journal {
namespace {

using sim::Random;
using sim::SimDisk;
using sim::SimEntropy;
using sim::SimFolder;

using Content = std::vector<std::pair<std::uint32_t, std::string>>;

const Content kContent{{1, "one"}, {7, ""}, {7, std::string(5'000, 'x')}, {2, "last!"}};

class SnapshotFile : public testing::Test {
 protected:
  SnapshotFile() { identity_ = draw_identity(entropy_, 5); }

  SnapshotHeader header(std::uint64_t number, SnapshotKind kind = SnapshotKind::kSnapshot) const {
    return {kind, identity_.store_id, identity_.history, number, time_from_ms(77)};
  }
  Status write(ports::Folder& folder, const SnapshotHeader& header, const Content& content) {
    HAPAX_TRY(SnapshotWriter writer, SnapshotWriter::create(folder, header));
    for (const auto& [tag, bytes] : content) HAPAX_CHECK(writer.add(tag, bytes));
    return writer.finish();
  }
  Result<Content> read(ports::Folder& folder, std::uint64_t number) {
    HAPAX_TRY(const SnapshotReader reader,
              SnapshotReader::open(folder, identity_, SnapshotKind::kSnapshot, number));
    Content content;
    for (const SnapshotSection& section : reader.sections()) {
      HAPAX_TRY(std::string bytes, reader.read(section));
      content.emplace_back(section.tag, std::move(bytes));
    }
    return content;
  }

  SimDisk disk_{Random(1)};
  SimEntropy entropy_{Random(2)};
  Identity identity_;
};

TEST_F(SnapshotFile, GivesBackItsSections) {
  SimFolder folder(disk_);
  ASSERT_TRUE(write(folder, header(42), kContent).ok());
  EXPECT_EQ(read(folder, 42).value(), kContent);
  const auto reader = SnapshotReader::open(folder, identity_, SnapshotKind::kSnapshot, 42);
  EXPECT_EQ(reader->header(), header(42));
}

TEST_F(SnapshotFile, MayBeEmptyOrLarge) {
  SimFolder folder(disk_);
  ASSERT_TRUE(write(folder, header(1), {}).ok());
  EXPECT_EQ(read(folder, 1).value(), Content{});
  const Content large{{1, std::string(3'000'000, 'a')}, {2, std::string(9'000'001, 'b')}};
  ASSERT_TRUE(write(folder, header(2), large).ok());
  EXPECT_EQ(read(folder, 2).value(), large);
}

// Golden: these bytes are on users' disks.
TEST_F(SnapshotFile, HasTheseBytes) {
  SimFolder folder(disk_);
  identity_.store_id.fill('s');
  ASSERT_TRUE(write(folder, header(42), {{9, "abc"}}).ok());
  const std::string bytes = disk_.durable(snapshot_name(42)).value();
  ASSERT_EQ(bytes.size(), 64U + 32U + 8U + 32U);
  EXPECT_EQ(bytes.substr(0, 8), "HAPAXSNP");
  EXPECT_EQ(bytes.substr(16, 16), std::string(16, 's'));
  EXPECT_EQ(bytes.substr(40, 8), std::string("\x2a\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(bytes.substr(64, 4), "HXS1");
  EXPECT_EQ(bytes.substr(96, 3), "abc");
  EXPECT_EQ(bytes.substr(104, 4), "HXF1");
}

// L15: no flipped bit of a snapshot is ever handed out, nor does it hide.
TEST_F(SnapshotFile, EveryFlippedBitIsFound) {
  {
    SimFolder folder(disk_);
    ASSERT_TRUE(write(folder, header(42), {{1, "one"}, {2, "section two"}, {3, ""}}).ok());
  }
  const sim::DiskImage image = disk_.copy();
  const std::uint64_t bits = disk_.cached(snapshot_name(42))->size() * 8;
  for (std::uint64_t bit = 0; bit < bits; ++bit) {
    disk_.restore(image);
    disk_.flip_bit(snapshot_name(42), bit);
    SimFolder folder(disk_);
    const auto content = read(folder, 42);
    ASSERT_FALSE(content.ok()) << "bit " << bit;
    EXPECT_EQ(content.error().code, Errc::kCorruption) << content.error().text();
  }
}

TEST_F(SnapshotFile, EveryTruncationIsFound) {
  {
    SimFolder folder(disk_);
    ASSERT_TRUE(write(folder, header(42), kContent).ok());
  }
  const sim::DiskImage image = disk_.copy();
  const std::uint64_t size = disk_.cached(snapshot_name(42))->size();
  for (std::uint64_t keep = 0; keep < size; ++keep) {
    disk_.restore(image);
    disk_.truncate_raw(snapshot_name(42), keep);
    SimFolder folder(disk_);
    ASSERT_EQ(read(folder, 42).error().code, Errc::kCorruption) << "cut to " << keep;
  }
}

TEST_F(SnapshotFile, OfAnotherStoreOrHistoryIsRefused) {
  SimFolder folder(disk_);
  SnapshotHeader foreign = header(1);
  foreign.store_id[3] = static_cast<char>(foreign.store_id[3] + 1);
  ASSERT_TRUE(write(folder, foreign, kContent).ok());
  EXPECT_EQ(read(folder, 1).error().code, Errc::kCorruption);
  SnapshotHeader later = header(2);
  later.history = identity_.history + 1;
  ASSERT_TRUE(write(folder, later, kContent).ok());
  EXPECT_EQ(read(folder, 2).error().code, Errc::kCorruption);
  ASSERT_TRUE(write(folder, header(3), kContent).ok());
  ASSERT_TRUE(folder.rename(snapshot_name(3), snapshot_name(4)).ok());
  EXPECT_EQ(read(folder, 4).error().code, Errc::kCorruption);
  EXPECT_EQ(read(folder, 5).error().code, Errc::kNotFound);
}

// L15, L4: at every crash the snapshot is whole or not there.
TEST_F(SnapshotFile, IsWholeOrAbsentAtEveryCrash) {
  for (std::uint64_t call = 0;; ++call) {
    bool crashed = false;
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
      SimDisk disk{Random(seed)};
      disk.crash_at_call(call, sim::When::kAfter, sim::Crash::Kind::kPowerLoss);
      bool finished = false;
      try {
        SimFolder folder(disk);
        finished = write(folder, header(42), kContent).ok();
      } catch (const sim::Crash&) {
        crashed = true;
      }
      disk.power_loss();
      disk.restart();
      SimFolder folder(disk);
      const auto content = read(folder, 42);
      if (content.ok()) {
        EXPECT_EQ(*content, kContent);
      } else {
        ASSERT_FALSE(finished) << content.error().text();
        ASSERT_EQ(content.error().code, Errc::kNotFound) << content.error().text();
      }
    }
    if (!crashed) break;
  }
}

TEST_F(SnapshotFile, EveryFailureIsNoticed) {
  for (std::uint64_t call = 0;; ++call) {
    SimDisk disk{Random(call)};
    disk.fail_at_call(call, call % 2 == 0 ? Errc::kIo : Errc::kNoSpace);
    SimFolder folder(disk);
    const Status written = write(folder, header(42), kContent);
    if (disk.calls() <= call) break;
    const bool removing_nothing = call == 0;  // There was no unfinished file to remove.
    EXPECT_FALSE(written.ok()) << (removing_nothing ? "the first call" : "") << " call " << call;
  }
}

// A snapshot that did not fit leaves nothing behind.
TEST_F(SnapshotFile, GivesTheSpaceBackWhenTheDiskIsFull) {
  SimDisk disk(Random(1), {.space_limit = 4'000});
  SimFolder folder(disk);
  EXPECT_EQ(write(folder, header(42), kContent).error().code, Errc::kNoSpace);
  EXPECT_TRUE(folder.list().value().empty());
}

TEST_F(SnapshotFile, AreListedNewestFirstAndPruned) {
  SimFolder folder(disk_);
  for (const std::uint64_t lsn : {5U, 300U, 20U, 90U}) {
    ASSERT_TRUE(write(folder, header(lsn), kContent).ok());
  }
  for (const std::uint64_t part : {3U, 1U, 2U}) {
    ASSERT_TRUE(write(folder, header(part, SnapshotKind::kPart), kContent).ok());
  }
  ASSERT_TRUE(folder.open("snapshot-of-mine", ports::OpenMode::kCreate).ok());
  const SnapshotFiles files = list_snapshots(folder).value();
  EXPECT_EQ(files.snapshots, (std::vector<Lsn>{Lsn{300}, Lsn{90}, Lsn{20}, Lsn{5}}));
  EXPECT_EQ(files.parts, (std::vector<std::uint64_t>{1, 2, 3}));

  ASSERT_TRUE(remove_snapshots_below(folder, Lsn{90}).ok());
  const std::vector<std::uint64_t> referenced{2, 9};
  ASSERT_TRUE(remove_parts_except(folder, referenced).ok());
  const SnapshotFiles left = list_snapshots(folder).value();
  EXPECT_EQ(left.snapshots, (std::vector<Lsn>{Lsn{300}, Lsn{90}}));
  EXPECT_EQ(left.parts, (std::vector<std::uint64_t>{2}));
  EXPECT_TRUE(disk_.cached("snapshot-of-mine").has_value());  // L10.
}

}  // namespace
}  // namespace hapax::journal
