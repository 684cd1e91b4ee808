#include "sim/disk.h"

#include <set>

#include <gtest/gtest.h>

namespace hapax::sim {
namespace {

using ports::OpenMode;

const LossOdds kDropEverything{.sectors = {0, 1, 0}, .name_kept = kNever};

std::string read_all(const ports::File& file) {
  std::string bytes(file.size().value(), '?');
  bytes.resize(file.read_at(0, bytes).value());
  return bytes;
}

TEST(SimDisk, UnsyncedWritesSurviveAKillAndMayNotSurviveAPowerLoss) {
  SimDisk disk(Random(1), {.at_power_loss = kDropEverything});
  SimFolder folder(disk);
  const auto file = folder.open("a", OpenMode::kCreate).value();
  ASSERT_TRUE(folder.sync().ok());
  ASSERT_EQ(file->write_at(0, "unsynced").value(), 8U);
  disk.process_kill();
  disk.restart();
  EXPECT_EQ(disk.cached("a"), "unsynced");
  disk.power_loss();
  disk.restart();
  EXPECT_EQ(disk.cached("a"), "");
}

TEST(SimDisk, SyncedBytesWithASyncedNameSurvive) {
  SimDisk disk(Random(1), {.at_power_loss = kDropEverything});
  SimFolder folder(disk);
  const auto file = folder.open("a", OpenMode::kCreate).value();
  ASSERT_EQ(file->write_at(0, "synced").value(), 6U);
  ASSERT_TRUE(file->sync().ok());
  EXPECT_EQ(disk.durable("a"), std::nullopt);  // Its name is not.
  ASSERT_TRUE(folder.sync().ok());
  disk.power_loss();
  disk.restart();
  EXPECT_EQ(disk.cached("a"), "synced");
}

TEST(SimDisk, ARenameWithoutAFolderSyncMayBeLost) {
  SimDisk disk(Random(1), {.at_power_loss = kDropEverything});
  SimFolder folder(disk);
  ASSERT_TRUE(folder.open("a", OpenMode::kCreate).ok());
  ASSERT_TRUE(folder.sync().ok());
  ASSERT_TRUE(folder.rename("a", "b").ok());
  disk.power_loss();
  EXPECT_TRUE(disk.cached("a"));
  EXPECT_FALSE(disk.cached("b"));
}

// S5, through the ports.
TEST(SimDisk, ASyncAfterAFailedSyncLies) {
  SimDisk disk(Random(1), {.at_failed_sync = kDropEverything});
  SimFolder folder(disk);
  const auto file = folder.open("a", OpenMode::kCreate).value();
  ASSERT_TRUE(folder.sync().ok());
  ASSERT_EQ(file->write_at(0, "gone").value(), 4U);
  disk.fail_at_call(disk.calls(), Errc::kNoSpace);
  const Status first = file->sync();
  ASSERT_FALSE(first.ok());
  EXPECT_EQ(first.error().code, Errc::kIo);  // Whatever was asked for: a failed sync is final.
  EXPECT_TRUE(file->sync().ok());
  EXPECT_EQ(read_all(*file), "gone");
  disk.power_loss();
  disk.restart();
  EXPECT_EQ(disk.cached("a"), "");
}

TEST(SimDisk, ADroppedCacheShowsAfterAKillWhatAFailedSyncDid) {
  SimDisk disk(Random(1), {.cache_dropped = kAlways, .at_failed_sync = kDropEverything});
  SimFolder folder(disk);
  const auto file = folder.open("a", OpenMode::kCreate).value();
  ASSERT_TRUE(folder.sync().ok());
  ASSERT_EQ(file->write_at(0, "gone").value(), 4U);
  disk.fail_at_call(disk.calls(), Errc::kIo);
  ASSERT_FALSE(file->sync().ok());
  disk.process_kill();
  disk.restart();
  EXPECT_EQ(disk.cached("a"), "");
  EXPECT_EQ(disk.stats()[InjectedFault::kCacheDropped], 1U);
}

TEST(SimDisk, ADeadProcessChangesNothingMore) {
  SimDisk disk(Random(1));
  SimFolder folder(disk);
  const auto file = folder.open("a", OpenMode::kCreate).value();
  const auto lock = folder.lock("lock").value();
  disk.crash_at_call(disk.calls(), When::kBefore, Crash::Kind::kKill);
  EXPECT_THROW((void)file->write_at(0, "x"), Crash);
  EXPECT_TRUE(disk.dead());
  EXPECT_THROW((void)file->write_at(0, "x"), Crash);
  EXPECT_THROW((void)folder.list(), Crash);
  disk.restart();
  EXPECT_THROW((void)file->sync(), Crash);
  EXPECT_THROW((void)folder.sync(), Crash);
  EXPECT_EQ(disk.cached("a"), "");

  SimFolder next(disk);
  EXPECT_TRUE(next.list().ok());
  EXPECT_TRUE(next.lock("lock").ok());
}

TEST(SimDisk, ALockOfADeadProcessIsFreeAndItsOldHandleReleasesNothing) {
  SimDisk disk(Random(1));
  SimFolder folder(disk);
  auto old = folder.lock("lock").value();
  EXPECT_EQ(folder.lock("lock").error().code, Errc::kLocked);
  disk.process_kill();
  disk.restart();
  SimFolder next(disk);
  const auto held = next.lock("lock").value();
  old.reset();
  EXPECT_EQ(next.lock("lock").error().code, Errc::kLocked);
}

TEST(SimDisk, ACrashAfterAWriteLeavesItACrashBeforeDoesNot) {
  for (const When when : {When::kBefore, When::kAfter}) {
    SimDisk disk(Random(1));
    SimFolder folder(disk);
    const auto file = folder.open("a", OpenMode::kCreate).value();
    disk.crash_at_call(disk.calls(), when, Crash::Kind::kKill);
    try {
      (void)file->write_at(0, "x");
      FAIL() << "it did not die";
    } catch (const Crash& crash) {
      EXPECT_EQ(crash.kind, Crash::Kind::kKill);
      EXPECT_EQ(crash.call, 1U);
    }
    EXPECT_EQ(disk.cached("a"), when == When::kAfter ? "x" : "");
  }
}

TEST(SimDisk, ACrashInTheMiddleOfAWriteLeavesAPrefix) {
  std::set<std::string> left;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SimDisk disk{Random(seed)};
    SimFolder folder(disk);
    const auto file = folder.open("a", OpenMode::kCreate).value();
    disk.crash_at_call(disk.calls(), When::kMiddle, Crash::Kind::kKill);
    EXPECT_THROW((void)file->write_at(0, "xyz"), Crash);
    left.insert(*disk.cached("a"));
  }
  EXPECT_EQ(left, (std::set<std::string>{"", "x", "xy", "xyz"}));
}

TEST(SimDisk, AFullDiskWritesWhatFitsAndThenNothing) {
  SimDisk disk(Random(1), {.space_limit = 10});
  SimFolder folder(disk);
  const auto file = folder.open("a", OpenMode::kCreate).value();
  EXPECT_EQ(file->write_at(0, "1234567").value(), 7U);
  EXPECT_EQ(file->write_at(7, "8901").value(), 3U);  // Short, not yet an error.
  EXPECT_EQ(file->write_at(10, "1").error().code, Errc::kNoSpace);
  EXPECT_EQ(file->write_at(0, "over").value(), 4U);  // Overwriting needs no space.
  EXPECT_EQ(file->reserve(11).error().code, Errc::kNoSpace);
  EXPECT_TRUE(file->truncate(5).ok());
  EXPECT_TRUE(file->reserve(8).ok());
  EXPECT_EQ(read_all(*file), std::string("over5\0\0\0", 8));
  EXPECT_EQ(disk.stats()[InjectedFault::kDiskFull], 3U);
}

TEST(SimDisk, ASuddenNoSpaceMayHaveWrittenAPart) {
  std::set<std::size_t> parts;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SimDisk disk{Random(seed)};
    SimFolder folder(disk);
    const auto file = folder.open("a", OpenMode::kCreate).value();
    disk.set_faults({.no_space = kAlways});
    EXPECT_EQ(file->write_at(0, "xyz").error().code, Errc::kNoSpace);
    parts.insert(disk.cached("a")->size());
  }
  EXPECT_EQ(parts, (std::set<std::size_t>{0, 1, 2, 3}));
}

TEST(SimDisk, ReservationsMayBeIgnored) {
  SimDisk disk(Random(1), {.reserve_ignored = {1, 2}});
  SimFolder folder(disk);
  std::set<std::uint64_t> sizes;
  for (int i = 0; i < 50; ++i) {
    const auto file = folder.open("a" + std::to_string(i), OpenMode::kCreate).value();
    ASSERT_TRUE(file->reserve(100).ok());
    sizes.insert(file->size().value());
  }
  EXPECT_EQ(sizes, (std::set<std::uint64_t>{0, 100}));
}

TEST(SimDisk, LooksFailByNumberToo) {
  SimDisk disk(Random(1));
  SimFolder folder(disk);
  const auto file = folder.open("a", OpenMode::kCreate).value();
  char byte = 0;
  disk.fail_at_look(disk.looks() + 1, Errc::kIo, Lasting::kForever);
  EXPECT_TRUE(file->read_at(0, {&byte, 1}).ok());
  EXPECT_EQ(file->read_at(0, {&byte, 1}).error().code, Errc::kIo);
  EXPECT_EQ(folder.list().error().code, Errc::kIo);
  disk.clear_script();
  EXPECT_TRUE(folder.list().ok());
}

TEST(SimDisk, ARemovedFileIsReadableThroughAnOpenHandle) {
  SimDisk disk(Random(1));
  SimFolder folder(disk);
  const auto file = folder.open("a", OpenMode::kCreate).value();
  ASSERT_EQ(file->write_at(0, "still").value(), 5U);
  ASSERT_TRUE(folder.remove("a").ok());
  ASSERT_TRUE(folder.sync().ok());
  EXPECT_EQ(read_all(*file), "still");
  EXPECT_EQ(folder.open("a", OpenMode::kRead).error().code, Errc::kNotFound);
}

class DamagedDisk : public ::testing::Test {
 protected:
  DamagedDisk() {
    SimFolder folder(disk);
    const auto file = folder.open("a", OpenMode::kCreate).value();
    EXPECT_TRUE(folder.sync().ok());
    append(*file, std::string(kSectorBytes, 'x'));
    append(*file, std::string(kSectorBytes, 'y'));
  }

  static void append(ports::File& file, std::string_view bytes) {
    EXPECT_EQ(file.write_at(file.size().value(), bytes).value(), bytes.size());
    EXPECT_TRUE(file.sync().ok());
  }
  std::string content() { return *disk.cached("a"); }

  SimDisk disk{Random(1)};
};

TEST_F(DamagedDisk, OneBitIsFlippedCacheAndAll) {
  disk.flip_bit("a", 8 * 3 + 1);
  EXPECT_EQ(content()[3], 'x' ^ 2);
  EXPECT_EQ(disk.durable("a"), content());
  disk.flip_bit("a", 8 * 3 + 1);
  EXPECT_EQ(content()[3], 'x');
}

TEST_F(DamagedDisk, EveryCorruptedByteChanges) {
  const std::string before = content();
  disk.corrupt("a", 100, 300);
  for (std::size_t i = 0; i < before.size(); ++i) {
    ASSERT_EQ(content()[i] == before[i], i < 100 || i >= 400) << i;
  }
}

TEST_F(DamagedDisk, FilesAreCutAndRemovedUnderneath) {
  disk.truncate_raw("a", 5);
  EXPECT_EQ(content(), "xxxxx");
  disk.remove_raw("a");
  EXPECT_FALSE(disk.cached("a"));
  disk.power_loss();
  EXPECT_FALSE(disk.cached("a"));
}

TEST_F(DamagedDisk, ALostWriteLeavesOldBytesAndTheNewSize) {
  disk.lose_last_write("a");
  EXPECT_EQ(content(), std::string(kSectorBytes, 'x') + std::string(kSectorBytes, '\0'));
  EXPECT_EQ(disk.durable("a"), content());
}

TEST_F(DamagedDisk, AMisdirectedWriteHitsAnotherSectorBehindTheCachesBack) {
  disk.misdirect_next_write("a", 0);
  SimFolder folder(disk);
  append(*folder.open("a", OpenMode::kReadWrite).value(), std::string(kSectorBytes, 'z'));
  const std::string tail(kSectorBytes, 'y');
  EXPECT_EQ(content(), std::string(kSectorBytes, 'x') + tail + std::string(kSectorBytes, 'z'));
  disk.drop_caches();
  EXPECT_EQ(content(), std::string(kSectorBytes, 'z') + tail + std::string(kSectorBytes, '\0'));
}

TEST_F(DamagedDisk, AnOldImageComesBackWhole) {
  const DiskImage backup = disk.copy();
  const std::string before = content();
  SimFolder folder(disk);
  append(*folder.open("a", OpenMode::kReadWrite).value(), "later");
  ASSERT_TRUE(folder.rename("a", "b").ok());
  disk.restore(backup);
  EXPECT_THROW((void)folder.list(), Crash);
  EXPECT_EQ(content(), before);
  EXPECT_FALSE(disk.cached("b"));
}

// A fault that is switched off leaves the dice of the others alone.
TEST(SimDisk, SwitchingOneFaultOffKeepsTheOthers) {
  const auto crash_call = [](Rate short_write) {
    SimDisk disk(Random(5), {.short_write = short_write, .crash_before = {1, 50}});
    SimFolder folder(disk);
    try {
      const auto file = folder.open("a", OpenMode::kCreate).value();
      for (;;) (void)file->write_at(0, "ab");
    } catch (const Crash& crash) {
      return crash.call;
    }
  };
  EXPECT_EQ(crash_call(kNever), crash_call({1, 2}));
}

TEST(SimDisk, AWatcherSeesEveryCall) {
  SimDisk disk(Random(1));
  std::vector<std::string> lines;
  disk.watch([&](std::string_view line) { lines.emplace_back(line); });
  SimFolder folder(disk);
  const auto file = folder.open("a", OpenMode::kCreate).value();
  ASSERT_TRUE(file->write_at(0, "abc").ok());
  disk.process_kill();
  EXPECT_EQ(lines, (std::vector<std::string>{"0 create a 0+0: ok", "1 write a 0+3: ok 3", "kill"}));
}

}  // namespace
}  // namespace hapax::sim
