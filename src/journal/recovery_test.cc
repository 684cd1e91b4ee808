#include "journal/recovery.h"

#include <gtest/gtest.h>

#include "digest/crc32c.h"
#include "journal/block.h"
#include "journal/scribe.h"
#include "journal/segment_files.h"
#include "sim/disk.h"
#include "sim/entropy.h"

namespace hapax::journal {
namespace {

using sim::Random;
using sim::SimDisk;
using sim::SimEntropy;
using sim::SimFolder;

class Recovery : public testing::Test {
 protected:
  // A new process on the same disk.
  Status start(Lsn snapshot = {}) {
    disk_.restart();
    scribe_.reset();
    folder_ = std::make_unique<SimFolder>(disk_);
    scribe_ = std::make_unique<Scribe>(*folder_, entropy_, witness_);
    return scribe_->open(snapshot);
  }
  void start_well(Lsn snapshot = {}) {
    const Status started = start(snapshot);
    ASSERT_TRUE(started.ok()) << started.error().text();
  }
  const RecoveryReport& report() const { return scribe_->report(); }

  // Bytes at the end of the file, as a write that was never acknowledged leaves them.
  void scrawl(const std::string& name, std::uint64_t offset, std::string_view bytes) {
    const auto file = folder_->open(name, ports::OpenMode::kReadWrite).value();
    ASSERT_EQ(file->write_at(offset, bytes).value(), bytes.size());
    ASSERT_TRUE(file->sync().ok());
  }

  SimDisk disk_{Random(1)};
  SimEntropy entropy_{Random(2)};
  Witness witness_;
  std::unique_ptr<SimFolder> folder_;
  std::unique_ptr<Scribe> scribe_;
};

TEST_F(Recovery, MakesAStoreOfAnEmptyFolder) {
  start_well();
  EXPECT_TRUE(report().clean);
  EXPECT_EQ(report().next, Lsn{1});
  EXPECT_EQ(report().slot, (Slot{1, 64}));
  const Identity identity = scribe_->identity();
  EXPECT_EQ(identity.history, 1U);
  start_well();
  EXPECT_EQ(scribe_->identity(), identity);
}

TEST_F(Recovery, GoesOnInTheSameSegmentAfterACleanEnd) {
  start_well();
  ASSERT_TRUE(scribe_->write(2, 10).ok());
  ASSERT_TRUE(scribe_->mark(MarkKind::kClean).ok());
  const Slot slot = scribe_->writer().slot();
  start_well();
  EXPECT_TRUE(report().clean);
  EXPECT_EQ(report().slot, slot);
  EXPECT_EQ(report().batches, 1U);
  EXPECT_EQ(report().facts, 2U);
  EXPECT_EQ(report().rewritten_first, Lsn{});
  ASSERT_TRUE(scribe_->write(1, 10).ok());
  start_well();
  EXPECT_FALSE(report().clean);
}

// L17: one that crashes again and again without writing does not fill the folder.
TEST_F(Recovery, UsesAnEmptySegmentAgainThatIsProvenDurable) {
  start_well();
  ASSERT_TRUE(scribe_->write(2, 10).ok());
  for (int life = 0; life < 10; ++life) {
    if (life % 2 == 1) disk_.power_loss();
    start_well();
    EXPECT_FALSE(report().clean);
    EXPECT_LE(report().segments.size(), 3U);
  }
  ASSERT_TRUE(scribe_->write(1, 10).ok());
  start_well();
  EXPECT_EQ(report().next, Lsn{4});
}

// L17: bytes behind its header may be of a batch that nobody was told about.
TEST_F(Recovery, LeavesAnEmptySegmentAloneThatHoldsBytes) {
  start_well();
  ASSERT_TRUE(scribe_->write(2, 10).ok());
  start_well();
  start_well();
  const Slot slot = report().slot;
  scrawl(segment_name(slot.segment), slot.offset, "half a batch");
  start_well();
  EXPECT_EQ(report().slot.segment, slot.segment + 1);
  EXPECT_EQ(report().torn_bytes, 12U);
}

// L9: the last batch may never have reached the disk; nothing before it is touched.
TEST_F(Recovery, RewritesTheLastBatchAfterAnUncleanEnd) {
  start_well();
  ASSERT_TRUE(scribe_->write(1, 10).ok());
  ASSERT_TRUE(scribe_->write(2, 10).ok());
  const auto before = disk_.cached(segment_name(1));
  start_well();
  EXPECT_FALSE(report().clean);
  EXPECT_EQ(report().rewritten_first, Lsn{2});
  EXPECT_EQ(report().rewritten_last, Lsn{3});
  EXPECT_EQ(report().slot.segment, 2U);
  ASSERT_EQ(report().segments.size(), 2U);
  EXPECT_EQ(report().segments[0].next, Lsn{2});
  EXPECT_EQ(report().segments[1].first, Lsn{2});
  EXPECT_EQ(report().segments[1].next, Lsn{4});
  EXPECT_TRUE(before->starts_with(*disk_.cached(segment_name(1))));
  // What was superseded may be lost for good now.
  disk_.corrupt(segment_name(1), 64 + 88, 16);
  start_well();
}

TEST_F(Recovery, RewritesNothingThatAMarkProves) {
  start_well();
  ASSERT_TRUE(scribe_->write(2, 10).ok());
  ASSERT_TRUE(scribe_->mark(MarkKind::kRunning).ok());
  start_well();
  EXPECT_FALSE(report().clean);
  EXPECT_EQ(report().rewritten_first, Lsn{});
  EXPECT_EQ(report().slot, (Slot{2, 64}));
}

// L8: a torn tail is kept twice, and told of.
TEST_F(Recovery, CopiesATornTailToQuarantine) {
  start_well();
  ASSERT_TRUE(scribe_->write(1, 10).ok());
  const std::uint32_t end = scribe_->writer().slot().offset;
  scrawl(segment_name(1), end, "HXB1 torn");
  start_well();
  const std::string name = torn_tail_name(1, end);
  EXPECT_EQ(disk_.durable(name), "HXB1 torn");
  EXPECT_EQ(disk_.cached(segment_name(1))->substr(end, 9), "HXB1 torn");
  EXPECT_EQ(report().torn_bytes, 9U);
  ASSERT_EQ(report().warnings.size(), 1U);
  EXPECT_NE(report().warnings[0].find(name), std::string::npos) << report().warnings[0];
  start_well();
  EXPECT_TRUE(report().warnings.empty());
}

// L6, M13: a garbage header with a huge length is a torn tail like any other.
TEST_F(Recovery, NeverBelievesAGarbageLength) {
  start_well();
  ASSERT_TRUE(scribe_->write(1, 10).ok());
  const std::uint32_t end = scribe_->writer().slot().offset;
  std::string garbage(kHeaderBytes, '\xff');
  garbage.replace(0, 4, kBatchMagic);
  scrawl(segment_name(1), end, garbage);
  start_well();
  EXPECT_EQ(report().torn_bytes, kHeaderBytes);
}

// L7: the place, the range, what is intact and what to do.
TEST_F(Recovery, RefusesDamageBelowProvenFactsAndChangesNothing) {
  start_well();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(scribe_->write(1, 10).ok());
  disk_.corrupt(segment_name(1), 64 + 88 + 70, 1);  // In the payload of the second batch.
  const std::vector<std::string> names = folder_->list().value();
  std::vector<std::string> before;
  for (const std::string& name : names) before.push_back(*disk_.cached(name));
  const Status refused = start();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::kCorruption);
  const std::string& text = refused.error().detail;
  for (const std::string_view part :
       {"sim:journal-0000000000000001.log offset 152", "checksum", "from lsn 2 to at least 2",
        "a later batch at offset 240", "before lsn 2 are intact",
        "hapax repair --accept-loss sim"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
  }
  EXPECT_EQ(folder_->list().value(), names);
  for (std::size_t i = 0; i < names.size(); ++i) EXPECT_EQ(*disk_.cached(names[i]), before[i]);
}

TEST_F(Recovery, RefusesAShortenedJournalThatAMarkProves) {
  start_well();
  ASSERT_TRUE(scribe_->write(1, 10).ok());
  const std::uint32_t keep = scribe_->writer().slot().offset;
  ASSERT_TRUE(scribe_->write(1, 10).ok());
  ASSERT_TRUE(scribe_->mark(MarkKind::kRunning).ok());
  disk_.truncate_raw(segment_name(1), keep);
  EXPECT_EQ(start().error().code, Errc::kCorruption);
}

TEST_F(Recovery, RefusesAJournalShorterThanTheSnapshot) {
  start_well();
  ASSERT_TRUE(scribe_->write(3, 10).ok());
  EXPECT_TRUE(start(Lsn{3}).ok());
  EXPECT_EQ(start(Lsn{4}).error().code, Errc::kCorruption);
}

TEST_F(Recovery, RefusesAMissingSegment) {
  start_well();
  for (int i = 0; i < 15; ++i) ASSERT_TRUE(scribe_->write(1, 100).ok());
  ASSERT_TRUE(scribe_->mark(MarkKind::kClean).ok());
  const sim::DiskImage image = disk_.copy();
  const std::uint32_t last = scribe_->writer().slot().segment;
  ASSERT_GT(last, 3U);
  for (std::uint32_t number = 1; number < last; ++number) {
    disk_.restore(image);
    disk_.remove_raw(segment_name(number));
    EXPECT_EQ(start().error().code, Errc::kCorruption) << number;
  }
}

TEST_F(Recovery, RefusesWithoutMarksOrStore) {
  start_well();
  ASSERT_TRUE(scribe_->write(1, 10).ok());
  const sim::DiskImage image = disk_.copy();
  for (const std::string_view name : {"MARKS", "STORE"}) {
    disk_.restore(image);
    disk_.remove_raw(name);
    const Status refused = start();
    ASSERT_FALSE(refused.ok()) << name;
    EXPECT_EQ(refused.error().code, Errc::kCorruption);
  }
}

TEST_F(Recovery, RefusesANewerFormat) {
  start_well();
  Identity newer = scribe_->identity();
  newer.version = kFormatVersion + 1;
  scrawl("STORE", 0, encode(newer));
  const Status refused = start();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::kFormatVersion) << refused.error().text();
}

// L19: an older program looks at STORE first, and finds there that it must refuse.
TEST_F(Recovery, SaysInTheStoreThatItHasTheFormatItIsWrittenIn) {
  start_well();
  ASSERT_TRUE(scribe_->write(2, 10).ok());
  Identity older = scribe_->identity();
  older.version = kFormatVersionFirst;
  scrawl("STORE", 0, encode(older));
  start_well();
  ASSERT_EQ(report().warnings.size(), 1U);
  EXPECT_NE(report().warnings[0].find("now has format 2"), std::string::npos);
  EXPECT_EQ(read_identity(*folder_).value().version, kFormatVersion);
  ASSERT_TRUE(scribe_->write(1, 10).ok());
  start_well();
  EXPECT_EQ(report().warnings, std::vector<std::string>{});
  EXPECT_EQ(scribe_->identity().version, kFormatVersion);
}

// L19: whenever the power fails, a folder with anything new in it says so in STORE.
TEST_F(Recovery, RaisesTheFormatBeforeItWritesAnythingElse) {
  start_well();
  ASSERT_TRUE(scribe_->write(2, 10).ok());
  Identity older = scribe_->identity();
  older.version = kFormatVersionFirst;
  scrawl("STORE", 0, encode(older));
  const sim::DiskImage before = disk_.copy();
  const auto marks = disk_.durable("MARKS");
  std::uint64_t crashes = 0;
  for (bool crashed = true; crashed; ++crashes) {
    disk_.restore(before);
    disk_.clear_script();
    disk_.crash_at_call(disk_.calls() + crashes, sim::When::kAfter, sim::Crash::Kind::kPowerLoss);
    try {
      start_well();
      crashed = false;
    } catch (const sim::Crash&) {
    }
    disk_.restart();
    const std::uint16_t version =
        read_identity(*std::make_unique<SimFolder>(disk_)).value().version;
    const bool changed = disk_.durable("MARKS") != marks || disk_.durable(segment_name(2));
    EXPECT_TRUE(!changed || version == kFormatVersion) << "call " << crashes;
  }
  EXPECT_GT(crashes, 5U);
}

// L7: a folder that is refused stays as it is, for the program that wrote it, too.
TEST_F(Recovery, LeavesTheFormatOfADamagedFolder) {
  start_well();
  ASSERT_TRUE(scribe_->write(2, 10).ok());
  ASSERT_TRUE(scribe_->mark(MarkKind::kRunning).ok());
  Identity older = scribe_->identity();
  older.version = kFormatVersionFirst;
  scrawl("STORE", 0, encode(older));
  scrawl(segment_name(1), kHeaderBytes + 3, "x");
  EXPECT_EQ(start().error().code, Errc::kCorruption);
  EXPECT_EQ(read_identity(*folder_).value().version, kFormatVersionFirst);
}

// L12: a segment of another store, or a copy under another number, is no continuation.
TEST_F(Recovery, RefusesAForeignSegment) {
  start_well();
  ASSERT_TRUE(scribe_->write(1, 10).ok());
  const auto foreign = folder_->open(segment_name(2), ports::OpenMode::kCreate).value();
  ASSERT_TRUE(foreign->write_at(0, *disk_.cached(segment_name(1))).ok());
  EXPECT_EQ(start().error().code, Errc::kCorruption);
}

// L10: what is not ours stays; what never had its name goes.
TEST_F(Recovery, LeavesUnknownFilesAlone) {
  start_well();
  ASSERT_TRUE(scribe_->write(1, 10).ok());
  for (const std::string_view name : {"notes.txt", "journal-1.log", "MARKS.tmp"}) {
    const auto file = folder_->open(name, ports::OpenMode::kCreate).value();
    ASSERT_TRUE(file->write_at(0, "mine").ok());
  }
  start_well();
  EXPECT_EQ(disk_.cached("notes.txt"), "mine");
  EXPECT_EQ(disk_.cached("journal-1.log"), "mine");
  EXPECT_EQ(disk_.cached("MARKS.tmp"), std::nullopt);
  EXPECT_EQ(report().warnings.size(), 2U);
}

TEST_F(Recovery, VisitsOnlyWhatTheSnapshotDoesNotHold) {
  start_well();
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(scribe_->write(2, 60).ok());
  start_well(Lsn{14});
  EXPECT_EQ(scribe_->found().size(), 6U);
  start_well(Lsn{20});
  EXPECT_EQ(scribe_->found().size(), 0U);
  EXPECT_EQ(report().next, Lsn{21});
}

// Segments below the snapshot may be gone, even in the middle.
TEST_F(Recovery, NeedsNoSegmentBelowTheSnapshot) {
  start_well();
  for (int i = 0; i < 15; ++i) ASSERT_TRUE(scribe_->write(1, 100).ok());
  SegmentFiles files(*folder_);
  ASSERT_TRUE(remove_segment(*folder_, files, 2).ok());
  start_well(Lsn{14});
  EXPECT_EQ(start(Lsn{1}).error().code, Errc::kCorruption);
}

TEST_F(Recovery, AnErrorOfTheVisitorIsPassedOn) {
  start_well();
  ASSERT_TRUE(scribe_->write(1, 10).ok());
  const auto refuse = [](const BatchView&) -> Status {
    return Error{Errc::kCorruption, "this fact makes no sense"};
  };
  const auto recovered = recover(*folder_, entropy_, scribe_->identity(), {}, refuse);
  ASSERT_FALSE(recovered.ok());
  EXPECT_EQ(recovered.error().detail, "this fact makes no sense");
}

// A crash loop must not eat the disk: only what was written stays of an abandoned segment.
TEST_F(Recovery, GivesBackSpaceThatWasSetAside) {
  start_well();
  ASSERT_TRUE(scribe_->write(1, 10).ok());
  const std::uint32_t end = scribe_->writer().slot().offset;
  EXPECT_GT(disk_.cached(segment_name(1))->size(), end);
  start_well();
  EXPECT_EQ(disk_.cached(segment_name(1))->size(), end);
}

}  // namespace
}  // namespace hapax::journal
