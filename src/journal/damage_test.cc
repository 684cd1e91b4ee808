// Damage at rest, exhaustively. L7 and the promise behind it: what was acknowledged is found as it
// was, or the start is refused. Never other bytes, never silent loss of anything provable.
#include <gtest/gtest.h>

#include "journal/scribe.h"
#include "journal/verify.h"
#include "sim/disk.h"
#include "sim/entropy.h"

namespace hapax::journal {
namespace {

using sim::Random;
using sim::SimDisk;
using sim::SimEntropy;
using sim::SimFolder;

// A store with two processes behind it: three segments, one of them with a superseded batch.
class Damage : public testing::Test {
 protected:
  void write_history(bool ends_clean) {
    for (const bool is_last : {false, true}) {
      SimFolder folder(disk_);
      Scribe scribe(folder, entropy_, witness_, {.segment_bytes = 300, .reserve_step = 128});
      ASSERT_TRUE(scribe.open().ok());
      ASSERT_TRUE(scribe.write(2, 9).ok());
      ASSERT_TRUE(scribe.write(1, 30).ok());
      // The first batch of a segment is marked, so the last one is another.
      if (scribe.writer().slot().offset == kHeaderBytes) {
        ASSERT_TRUE(scribe.write(1, 9).ok());
      }
      last_batch_ = scribe.writer().slot();
      ASSERT_TRUE(scribe.write({"the last fact"}).ok());
      ASSERT_TRUE(!is_last || !ends_clean || scribe.mark(MarkKind::kClean).ok());
      disk_.restart();
    }
    image_ = disk_.copy();
    SimFolder folder(disk_);
    names_ = folder.list().value();
  }

  struct Outcome {
    Status opened = Ok{};
    std::size_t found = 0;
    std::vector<std::string> warnings = {};
  };
  Outcome open() {
    disk_.restart();
    Witness lenient = witness_;
    // The last batch may be missing, so it is in doubt; whether it may is for the test to say.
    lenient.acknowledged.pop_back();
    lenient.in_doubt = {witness_.acknowledged.back()};
    SimFolder folder(disk_);
    Scribe scribe(folder, entropy_, lenient);
    Status opened = scribe.open();
    return {std::move(opened), scribe.found().size(), scribe.report().warnings};
  }

  bool verify_finds_nothing() {
    disk_.restart();
    SimFolder folder(disk_);
    return verify(folder).value().intact();
  }

  SimDisk disk_{Random(1)};
  SimEntropy entropy_{Random(2)};
  Witness witness_;
  Slot last_batch_;
  sim::DiskImage image_;
  std::vector<std::string> names_;
};

// With a mark of the end every flipped bit of every file is harmless or refused.
TEST_F(Damage, EveryFlippedBitAfterACleanEnd) {
  write_history(true);
  int refused = 0;
  int harmless = 0;
  for (const std::string& name : names_) {
    const std::uint64_t bits = disk_.cached(name)->size() * 8;
    for (std::uint64_t bit = 0; bit < bits; ++bit) {
      const bool is_padding = (name == "MARKS" || name == "STORE") && bit / 8 % 4096 >= 72;
      if (name == "RESERVE" || (is_padding && bit % 509 != 0)) continue;
      disk_.restore(image_);
      disk_.flip_bit(name, bit);
      const bool noticed = !verify_finds_nothing();
      const Outcome outcome = open();
      if (outcome.opened.ok()) {
        ASSERT_EQ(outcome.found, witness_.acknowledged.size()) << name << " bit " << bit;
        ++harmless;
      } else {
        ASSERT_EQ(outcome.opened.error().code, Errc::kCorruption)
            << name << " bit " << bit << ": " << outcome.opened.error().text();
        ASSERT_TRUE(noticed) << name << " bit " << bit << ": verify did not see it";
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 4'000);
  EXPECT_GT(harmless, 1'000);  // One mark, padding, what was superseded.
}

// Without a mark of the end only the very last batch can be mistaken for one that was never
// acknowledged: nothing tells the difference.
TEST_F(Damage, EveryFlippedBitAfterAnUncleanEnd) {
  write_history(false);
  int lost = 0;
  for (const std::string& name : names_) {
    if (parse_name(name).kind != FileName::Kind::kSegment) continue;
    const std::uint64_t bits = disk_.cached(name)->size() * 8;
    for (std::uint64_t bit = 0; bit < bits; ++bit) {
      disk_.restore(image_);
      disk_.flip_bit(name, bit);
      const Outcome outcome = open();
      if (!outcome.opened.ok()) {
        ASSERT_EQ(outcome.opened.error().code, Errc::kCorruption) << name << " bit " << bit;
      } else if (outcome.found < witness_.acknowledged.size()) {
        const bool in_last =
            name == segment_name(last_batch_.segment) && bit / 8 >= last_batch_.offset;
        ASSERT_TRUE(in_last) << name << " bit " << bit << ": " << outcome.found << " facts";
        ++lost;
      }
    }
  }
  EXPECT_GT(lost, 0);
}

TEST_F(Damage, EveryTruncationAfterACleanEnd) {
  write_history(true);
  for (const std::string& name : names_) {
    const std::uint64_t size = disk_.cached(name)->size();
    const std::uint64_t step = size > 2'000 ? 61 : 1;
    for (std::uint64_t keep = 0; keep < size; keep += step) {
      disk_.restore(image_);
      disk_.truncate_raw(name, keep);
      const Outcome outcome = open();
      if (outcome.opened.ok()) {
        ASSERT_EQ(outcome.found, witness_.acknowledged.size()) << name << " cut to " << keep;
      } else {
        ASSERT_EQ(outcome.opened.error().code, Errc::kCorruption) << name << " cut to " << keep;
      }
    }
  }
}

// L20: without a mark of the end, a cut that costs facts is refused, or said.
TEST_F(Damage, EveryTruncationAfterAnUncleanEnd) {
  write_history(false);
  const std::string name = segment_name(last_batch_.segment);
  const std::uint64_t size = disk_.cached(name)->size();
  const std::uint64_t end = disk_.cached(name)->find_last_not_of('\0') + 1;
  for (std::uint64_t keep = 0; keep < size; ++keep) {
    disk_.restore(image_);
    disk_.truncate_raw(name, keep);
    const Outcome outcome = open();
    if (!outcome.opened.ok()) {
      ASSERT_EQ(outcome.opened.error().code, Errc::kCorruption) << "cut to " << keep;
      continue;
    }
    const bool said = std::any_of(
        outcome.warnings.begin(), outcome.warnings.end(), [](const std::string& warning) {
          return warning.find("it was cut. Facts behind lsn") != std::string::npos;
        });
    ASSERT_TRUE(said || outcome.found == witness_.acknowledged.size()) << "cut to " << keep;
    ASSERT_FALSE(said && keep >= end + 2 * kBatchAlignment) << "only zeros were cut off";
  }
}

// L20: a young store that was killed, cut where nothing of its first batch is left.
TEST_F(Damage, ACutYoungStoreIsNotTakenForANewOne) {
  {
    SimFolder folder(disk_);
    Scribe scribe(folder, entropy_, witness_);
    ASSERT_TRUE(scribe.open().ok());
    ASSERT_TRUE(scribe.write({"the only fact"}).ok());
  }
  disk_.restart();
  image_ = disk_.copy();
  for (std::uint64_t keep = 0; keep <= kHeaderBytes; ++keep) {
    disk_.restore(image_);
    disk_.truncate_raw(segment_name(1), keep);
    EXPECT_EQ(open().opened.error().code, Errc::kCorruption) << "cut to " << keep;
  }
}

TEST_F(Damage, EveryRemovedFileAfterACleanEnd) {
  write_history(true);
  for (const std::string& name : names_) {
    disk_.restore(image_);
    disk_.remove_raw(name);
    const Outcome outcome = open();
    const bool needed = name != "RESERVE" && name != "LOCK";
    EXPECT_EQ(outcome.opened.ok(), !needed) << name;
  }
}

// A write that the disk confirmed and lost.
TEST_F(Damage, ALostWriteBelowAMarkIsRefused) {
  write_history(true);
  const std::string name = segment_name(last_batch_.segment);
  SimFolder folder(disk_);
  ASSERT_TRUE(folder.open(name, ports::OpenMode::kReadWrite).value()->sync().ok());
  disk_.lose_last_write(name);
  EXPECT_EQ(open().opened.error().code, Errc::kCorruption);
}

// A write that landed on other sectors is refused, unless a later write of the same page healed it.
TEST_F(Damage, AMisdirectedWriteIsRefusedOrHealed) {
  int refused = 0;
  for (std::uint64_t sector = 0; sector < 8; ++sector) {
    SimDisk disk{Random(sector)};
    Witness witness;
    {
      SimFolder folder(disk);
      Scribe scribe(folder, entropy_, witness, {.segment_bytes = 8192, .reserve_step = 8192});
      ASSERT_TRUE(scribe.open().ok());
      for (int i = 0; i < 4; ++i) ASSERT_TRUE(scribe.write(1, 700).ok());
      disk.misdirect_next_write(segment_name(1), sector * 512);
      for (int i = 0; i < 4; ++i) ASSERT_TRUE(scribe.write(1, 700).ok());
    }
    disk.power_loss();
    disk.restart();
    SimFolder folder(disk);
    Scribe scribe(folder, entropy_, witness);
    const Status opened = scribe.open();
    if (opened.ok()) continue;
    EXPECT_EQ(opened.error().code, Errc::kCorruption) << opened.error().text();
    ++refused;
  }
  EXPECT_GE(refused, 6);
}

}  // namespace
}  // namespace hapax::journal
