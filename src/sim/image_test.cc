#include "sim/image.h"

#include <set>

#include <gtest/gtest.h>

namespace hapax::sim {
namespace {

const LossOdds kLoseEverything{.sectors = {0, 1, 0}, .name_kept = kNever};
const LossOdds kKeepEverything{.sectors = {1, 0, 0}, .name_kept = kAlways};
const LossOdds kGarbleEverything{.sectors = {0, 0, 1}};
const LossOdds kAnything{.sectors = {2, 1, 1}, .all_dropped = {1, 8}, .all_kept = {1, 8}};

class Image : public ::testing::Test {
 protected:
  Loss loss(const LossOdds& odds) { return {random, odds, stale, tally}; }

  Random random{1};
  std::string stale;
  Losses tally;
};

TEST_F(Image, UnsyncedBytesMayVanishWholly) {
  FileImage file;
  file.write(0, "synced");
  file.sync();
  file.write(6, " and not");
  EXPECT_EQ(file.cached(), "synced and not");
  file.lose_power(loss(kLoseEverything));
  EXPECT_EQ(file.cached(), "synced");
  EXPECT_EQ(file.durable(), "synced");
}

TEST_F(Image, UnsyncedBytesMayAllStay) {
  FileImage file;
  file.write(0, std::string(5000, 'x'));
  file.resize(4000);
  file.lose_power(loss(kKeepEverything));
  EXPECT_EQ(file.durable(), std::string(4000, 'x'));
}

// S1, S2: whatever the odds and however writes share sectors with synced bytes.
TEST_F(Image, SyncedBytesNeverChange) {
  for (int round = 0; round < 3000; ++round) {
    FileImage file;
    std::string synced(random.below(1500), 's');
    file.write(0, synced);
    file.sync();
    std::uint64_t end = synced.size();
    for (int i = 0; i < 3; ++i) {
      const std::string bytes(1 + random.below(1200), 'u');
      file.write(end, bytes);
      end += bytes.size();
    }
    file.lose_power(loss(round % 2 == 0 ? kAnything : kGarbleEverything));
    ASSERT_EQ(file.cached().substr(0, synced.size()), synced) << "round " << round;
    ASSERT_LE(file.cached().size(), end);
    ASSERT_EQ(file.cached(), file.durable());
  }
  EXPECT_GT(tally.writes_torn, 0U);
  EXPECT_GT(tally.sectors_kept, 0U);
  EXPECT_GT(tally.sectors_dropped, 0U);
  EXPECT_GT(tally.sectors_garbled, 0U);
  EXPECT_GT(tally.sizes_lost, 0U);
}

// S2: sectors of one write end independently: every pattern of three sectors occurs.
TEST_F(Image, SectorsAreTornInEveryPattern) {
  std::set<std::string> patterns;
  for (int round = 0; round < 200; ++round) {
    FileImage file;
    file.write(0, std::string(3 * kSectorBytes, '.'));
    file.sync();
    file.write(0, std::string(3 * kSectorBytes, 'x'));
    file.lose_power(loss(LossOdds{.sectors = {1, 1, 0}}));
    const std::string& left = file.cached();
    patterns.insert({left[0], left[kSectorBytes], left[2 * kSectorBytes]});
    ASSERT_EQ(left[0], left[kSectorBytes - 1]);  // A sector is not torn without garbage.
  }
  EXPECT_EQ(patterns.size(), 8U);
}

// S2: what a sector shows was in the cache at some moment; bytes of a later write never appear
// without those of an earlier one beside them in the same sector.
TEST_F(Image, ASectorShowsAMomentOfTheCache) {
  std::set<std::string> moments;
  for (int round = 0; round < 200; ++round) {
    FileImage file;
    file.write(0, "....");
    file.sync();
    file.write(0, "ab");
    file.write(2, "cd");
    file.lose_power(loss(LossOdds{.sectors = {1, 1, 0}}));
    moments.insert(file.cached());
  }
  EXPECT_EQ(moments, (std::set<std::string>{"....", "ab..", "abcd"}));
}

// S3.
TEST_F(Image, AKeptSizeWithoutItsBytesReadsZeros) {
  std::set<std::string> ends;
  for (int round = 0; round < 200; ++round) {
    FileImage file;
    file.write(0, "ab");
    file.lose_power(loss(LossOdds{.sectors = {1, 1, 0}}));
    ends.insert(file.cached());
  }
  EXPECT_EQ(ends, (std::set<std::string>{"", std::string(2, '\0'), "ab"}));
}

TEST_F(Image, AnUnsyncedTruncationMayBeUndone) {
  std::set<std::string> ends;
  for (int round = 0; round < 100; ++round) {
    FileImage file;
    file.write(0, "abcdef");
    file.sync();
    file.resize(3);
    file.lose_power(loss(LossOdds{.sectors = {1, 1, 0}}));
    ends.insert(file.cached());
  }
  EXPECT_EQ(ends, (std::set<std::string>{"abc", "abcdef"}));
}

TEST_F(Image, GarbageIsZerosTornStaleOrRandom) {
  stale = std::string(kSectorBytes, 'o');
  std::set<std::string> kinds;
  for (int round = 0; round < 200; ++round) {
    FileImage file;
    file.write(0, "....");
    file.sync();
    file.write(0, "abcd");
    file.lose_power(loss(kGarbleEverything));
    kinds.insert(file.cached());
  }
  EXPECT_TRUE(kinds.contains(std::string(4, '\0')));
  EXPECT_TRUE(kinds.contains("ab.."));
  EXPECT_TRUE(kinds.contains("oooo"));
  EXPECT_GT(kinds.size(), 20U);
}

// S5, the trap: the second sync says Ok, the cache shows the bytes, the disk never has them.
TEST_F(Image, AfterAFailedSyncALaterOneStoresNothing) {
  FileImage file;
  file.write(0, "old");
  file.sync();
  file.write(0, "new!");
  file.fail_sync(loss(kLoseEverything));
  file.sync();
  EXPECT_EQ(file.cached(), "new!");
  EXPECT_EQ(file.durable(), "old");
  FileImage powerless = file;
  powerless.lose_power(loss(kKeepEverything));
  EXPECT_EQ(powerless.cached(), "old");
  file.drop_cache();
  EXPECT_EQ(file.cached(), "old");
}

TEST_F(Image, AfterAFailedSyncRewritingStoresAgain) {
  FileImage file;
  file.write(0, "bytes");
  file.fail_sync(loss(kLoseEverything));
  file.write(0, "bytes");
  file.sync();
  EXPECT_EQ(file.durable(), "bytes");
}

TEST_F(Image, DirtyPagesAreNotDropped) {
  FileImage file;
  file.write(0, "dirty");
  file.drop_cache();
  EXPECT_EQ(file.cached(), "dirty");
}

TEST_F(Image, ASyncBringsDurableAndCachedTogether) {
  for (int round = 0; round < 300; ++round) {
    FileImage file;
    for (int i = 0; i < 10; ++i) {
      if (random.chance(1, 4)) {
        file.resize(random.below(3000));
      } else {
        const char letter = static_cast<char>('a' + i);
        file.write(random.below(2000), std::string(random.below(1500), letter));
      }
      if (random.chance(1, 4)) file.sync();
    }
    file.sync();
    ASSERT_EQ(file.durable(), file.cached());
  }
}

TEST_F(Image, NamesAreDurableOnlyAfterASync) {
  FolderImage folder;
  folder.create("a", 1);
  folder.sync();
  folder.rename("a", "b");
  folder.create("c", 2);
  FolderImage lost = folder;
  lost.lose_power(loss(kLoseEverything));
  EXPECT_EQ(lost.cached(), (FileNames{{"a", 1}}));
  folder.sync();
  folder.lose_power(loss(kLoseEverything));
  EXPECT_EQ(folder.cached(), (FileNames{{"b", 1}, {"c", 2}}));
}

// S4: the file "precious" never loses all its names and never has two, whatever else is going on.
TEST_F(Image, ARenamedFileHasExactlyOneNameAfterwards) {
  std::set<std::string> names;
  for (int round = 0; round < 2000; ++round) {
    FolderImage folder;
    folder.create("a", 1);
    folder.create("old", 9);
    folder.sync();
    folder.rename("a", "b");
    folder.create("a", 2);
    folder.rename("b", "old");
    folder.rename("a", "b");
    folder.create("a", 3);
    folder.lose_power(loss(kAnything));
    std::string found;
    for (const auto& [name, id] : folder.cached()) {
      if (id == 1) found += name;
    }
    names.insert(found);
  }
  EXPECT_EQ(names, (std::set<std::string>{"a", "b", "old"}));
}

TEST_F(Image, AReplacedFileIsThereOrItsReplacementIs) {
  std::set<FileId> found;
  for (int round = 0; round < 200; ++round) {
    FolderImage folder;
    folder.create("current", 1);
    folder.sync();
    folder.create("next", 2);
    folder.rename("next", "current");
    folder.lose_power(loss(kAnything));
    ASSERT_TRUE(folder.find("current"));
    found.insert(*folder.find("current"));
  }
  EXPECT_EQ(found, (std::set<FileId>{1, 2}));
}

TEST_F(Image, AFailedFolderSyncForgetsTheNames) {
  FolderImage folder;
  folder.create("a", 1);
  folder.fail_sync(loss(kLoseEverything));
  folder.sync();
  EXPECT_TRUE(folder.find("a"));
  folder.lose_power(loss(kKeepEverything));
  EXPECT_FALSE(folder.find("a"));
}

}  // namespace
}  // namespace hapax::sim
