#include "journal/writer.h"

#include <gtest/gtest.h>

#include "journal/scribe.h"
#include "sim/disk.h"
#include "sim/entropy.h"

namespace hapax::journal {
namespace {

using sim::Random;
using sim::SimDisk;
using sim::SimEntropy;
using sim::SimFolder;

constexpr WriterOptions kZeros{.segment_bytes = 65'536, .reserve_step = 65'536, .zero_step = 8'192};

struct Desk {
  explicit Desk(const WriterOptions& options) : scribe(folder, entropy, witness, options) {
    EXPECT_TRUE(scribe.open().ok());
  }
  SimDisk disk{Random(1)};
  SimFolder folder{disk};
  SimEntropy entropy{Random(2)};
  Witness witness;
  Scribe scribe;
};

class WriterTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(scribe_.open().ok()); }

  // The two marks as they lie in the file.
  std::array<std::uint64_t, 2> mark_counters() const {
    const std::string bytes = disk_.cached("MARKS").value();
    return {decode_mark(bytes).value().counter,
            decode_mark(std::string_view(bytes).substr(kMarkBlockBytes)).value().counter};
  }

  SimDisk disk_{Random(1)};
  SimFolder folder_{disk_};
  SimEntropy entropy_{Random(2)};
  Witness witness_;
  Scribe scribe_{folder_, entropy_, witness_};
};

// L3: every batch says that all before it were durable when it was written.
TEST_F(WriterTest, BatchesNameTheOneBeforeThemAsDurable) {
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(scribe_.write(2, 10).ok());
  const auto visit = [](const BatchView& batch) -> Status {
    EXPECT_EQ(batch.header.durable.value, batch.header.first.value - 1);
    return Ok{};
  };
  const auto findings = examine(folder_, scribe_.identity(), Lsn{1}, visit);
  ASSERT_TRUE(findings.ok());
  EXPECT_EQ(findings->next, Lsn{9});
}

TEST_F(WriterTest, ADurableBatchIsOnDiskAtOnce) {
  ASSERT_TRUE(scribe_.write({"a fact to be found"}).ok());
  EXPECT_NE(disk_.durable(segment_name(1))->find("a fact to be found"), std::string::npos);
}

TEST_F(WriterTest, SegmentsFollowEachOther) {
  for (int i = 0; i < 12; ++i) ASSERT_TRUE(scribe_.write(1, 100).ok());
  EXPECT_GT(scribe_.writer().slot().segment, 2U);
  const auto segments = list_segments(folder_, scribe_.identity());
  ASSERT_TRUE(segments.ok());
  ASSERT_GE(segments->size(), 3U);
  EXPECT_NE((*segments)[0].header->salt, (*segments)[1].header->salt);
  EXPECT_LT((*segments)[0].header->first, (*segments)[1].header->first);
}

// A sealed segment keeps none of the space that was set aside for it, and is marked.
TEST_F(WriterTest, ASealedSegmentIsTrimmedAndMarked) {
  while (scribe_.writer().slot().segment == 1) ASSERT_TRUE(scribe_.write(1, 20).ok());
  const std::uint64_t before = Marks::open(folder_).value().newest().counter;
  const Lsn sealed{scribe_.writer().next().value - 1};
  ASSERT_TRUE(scribe_.write(1, 20).ok());
  const Marks marks = Marks::open(folder_).value();
  EXPECT_EQ(marks.newest().counter, before + 2);
  const Mark of_the_end = marks.block((before + 1) % 2 == 1 ? 0 : 1).value();
  EXPECT_EQ(of_the_end.counter, before + 1);
  EXPECT_EQ(of_the_end.durable, sealed);
  EXPECT_EQ(of_the_end.end.segment, 1U);
  EXPECT_EQ(of_the_end.end.offset, disk_.cached(segment_name(1))->size());
}

// L20: before its answer, and with the size of the file, which is never longer than it says.
TEST_F(WriterTest, TheFirstBatchOfAProcessAndOfASegmentIsMarked) {
  for (const std::uint32_t segment : {1U, 2U}) {
    while (scribe_.writer().slot().segment < segment) ASSERT_TRUE(scribe_.write(1, 20).ok());
    ASSERT_TRUE(scribe_.write(1, 20).ok());
    const Mark first = Marks::open(folder_).value().newest();
    EXPECT_EQ(first.kind, MarkKind::kRunning);
    EXPECT_EQ(first.durable.next(), scribe_.writer().next());
    EXPECT_EQ(first.end.segment, segment);
    EXPECT_EQ(first.file_bytes, disk_.durable(segment_name(segment))->size());
    EXPECT_GT(first.file_bytes, first.end.offset) << "space was set aside";
    ASSERT_TRUE(scribe_.write(1, 20).ok());
    EXPECT_EQ(Marks::open(folder_).value().newest(), first) << "later ones are not marked";
  }
}

TEST_F(WriterTest, MarksAlternate) {
  const auto start = mark_counters();
  EXPECT_EQ(start[1], start[0] + 1);
  ASSERT_TRUE(scribe_.write(1, 1).ok());
  EXPECT_EQ(mark_counters(), (std::array<std::uint64_t, 2>{start[1] + 1, start[1]}));
  ASSERT_TRUE(scribe_.mark(MarkKind::kRunning).ok());
  EXPECT_EQ(mark_counters(), (std::array<std::uint64_t, 2>{start[1] + 1, start[1] + 2}));
  EXPECT_EQ(disk_.durable("MARKS"), disk_.cached("MARKS"));
}

// L2: the first failed sync is the last thing the writer does.
TEST_F(WriterTest, AFailedSyncPoisonsForGood) {
  ASSERT_TRUE(scribe_.write(1, 1).ok());
  const std::uint64_t sync =
      disk_.calls() + 1;  // Behind the write; the space is set aside already.
  disk_.fail_at_call(sync, Errc::kIo);
  const Status failed = scribe_.write(1, 1);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, Errc::kIo);
  EXPECT_EQ(disk_.calls(), sync + 1);
  const Status again = scribe_.write(1, 1);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, Errc::kIo);
  EXPECT_EQ(scribe_.mark(MarkKind::kClean).error().code, Errc::kIo);
  EXPECT_EQ(disk_.calls(), sync + 1) << "a poisoned writer touches nothing";
}

TEST_F(WriterTest, AFailedWritePoisonsForGood) {
  ASSERT_TRUE(scribe_.write(1, 1).ok());
  disk_.fail_at_call(disk_.calls(), Errc::kIo);
  EXPECT_EQ(scribe_.write(1, 1).error().code, Errc::kIo);
  EXPECT_EQ(scribe_.write(1, 1).error().code, Errc::kIo);
}

// L5: the refused batch leaves its place to the next one.
TEST_F(WriterTest, AFullDiskRefusesAndTheNextBatchTakesTheSlot) {
  ASSERT_TRUE(scribe_.write(1, 1).ok());
  const Slot slot = scribe_.writer().slot();
  const Lsn next = scribe_.writer().next();
  disk_.fail_at_call(disk_.calls(), Errc::kNoSpace);
  const Status refused = scribe_.write({"this must never be seen"});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::kNoSpace);
  EXPECT_EQ(scribe_.writer().slot(), slot);
  EXPECT_EQ(scribe_.writer().next(), next);
  EXPECT_EQ(disk_.durable(segment_name(1))->size(), slot.offset);
  // L20: otherwise a start would say that somebody cut the file.
  EXPECT_EQ(Marks::open(folder_).value().newest().file_bytes, slot.offset);
  ASSERT_TRUE(scribe_.write(1, 1).ok());
  EXPECT_EQ(disk_.cached(segment_name(1))->find("this must never be seen"), std::string::npos);
}

// L16: whichever call finds no descriptor free, of those that begin a segment.
TEST(Writer, WithoutADescriptorTheBatchIsRefusedAndTheNextTakesTheSlot) {
  int refused = 0;
  for (std::uint64_t call = 0; call < 16; ++call) {
    Desk desk(kTinySegments);
    while (desk.scribe.writer().slot().segment == 1) ASSERT_TRUE(desk.scribe.write(1, 20).ok());
    const Slot slot = desk.scribe.writer().slot();
    desk.disk.fail_at_call(desk.disk.calls() + call, Errc::kUnavailable);
    const Status status = desk.scribe.write(1, 20);
    if (status.ok() || status.error().code != Errc::kUnavailable) continue;
    ++refused;
    EXPECT_EQ(desk.scribe.writer().slot(), slot);
    EXPECT_TRUE(desk.scribe.write(1, 20).ok());
  }
  EXPECT_GE(refused, 1);
}

TEST_F(WriterTest, WithoutSpaceToSetAsideNothingIsWritten) {
  ASSERT_TRUE(scribe_.write(1, 1).ok());
  const auto before = disk_.cached(segment_name(1));
  std::uint64_t used = 0;
  const std::vector<std::string> names = folder_.list().value();
  for (const std::string& name : names) used += disk_.cached(name)->size();
  disk_.set_faults({.space_limit = used});
  const Status refused = scribe_.write(1, 700);
  EXPECT_EQ(refused.error().code, Errc::kNoSpace);
  EXPECT_EQ(disk_.cached(segment_name(1)), before);
  disk_.set_faults({});
  EXPECT_TRUE(scribe_.write(1, 700).ok());
}

// A mark needs the reserve when even overwriting needs space.
TEST_F(WriterTest, TheReserveIsReleasedForAMark) {
  ASSERT_TRUE(disk_.cached("RESERVE").has_value());
  ASSERT_TRUE(scribe_.write(1, 1).ok());
  disk_.fail_at_call(disk_.calls(), Errc::kNoSpace);
  ASSERT_TRUE(scribe_.mark(MarkKind::kClean).ok());
  EXPECT_FALSE(disk_.cached("RESERVE").has_value());
  EXPECT_EQ(Marks::open(folder_).value().newest().kind, MarkKind::kClean);
}

TEST_F(WriterTest, ShortWritesAreContinued) {
  disk_.set_faults({.short_write = sim::kAlways});
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(scribe_.write(3, 50).ok());
  disk_.power_loss();
  disk_.restart();
  SimFolder folder(disk_);
  Scribe next(folder, entropy_, witness_);
  const Status opened = next.open();
  EXPECT_TRUE(opened.ok()) << opened.error().text();
}

TEST_F(WriterTest, WorksWithoutReservations) {
  disk_.set_faults({.reserve_ignored = sim::kAlways});
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(scribe_.write(1, 50).ok());
  disk_.restart();
  SimFolder folder(disk_);
  Scribe next(folder, entropy_, witness_);
  EXPECT_TRUE(next.open().ok());
}

// Where a file system sets nothing aside, its size shows what was written.
TEST(Writer, OneSmallBatchWritesTheBlocksOfTheNextOnes) {
  Desk desk(kZeros);
  desk.disk.set_faults({.reserve_ignored = sim::kAlways});
  const auto size = [&] { return desk.disk.durable(segment_name(1))->size(); };
  ASSERT_TRUE(desk.scribe.write(1, 100).ok());
  const std::size_t ahead = size();
  EXPECT_EQ(ahead, desk.scribe.writer().slot().offset + 8'192);
  EXPECT_EQ(desk.disk.durable(segment_name(1))->substr(desk.scribe.writer().slot().offset),
            std::string(8'192, '\0'));
  while (desk.scribe.writer().slot().offset + 200 < ahead) {
    ASSERT_TRUE(desk.scribe.write(1, 100).ok());
    EXPECT_EQ(size(), ahead);
  }
  ASSERT_TRUE(desk.scribe.write(1, 9'000).ok());
  EXPECT_EQ(size(), desk.scribe.writer().slot().offset) << "a large one takes nothing along";
}

// The first call of the second batch sets space aside, the second writes zeros.
TEST(Writer, ABatchGoesWithoutZerosThatFindNoSpace) {
  for (const auto& [code, ok] : {std::pair(Errc::kNoSpace, true), std::pair(Errc::kIo, false)}) {
    Desk desk(kZeros);
    desk.disk.fail_at_call(desk.disk.calls() + 1, code);
    EXPECT_EQ(desk.scribe.write(1, 100).ok(), ok);
    EXPECT_EQ(desk.scribe.write(1, 100).ok(), ok) << "a failed write poisons for good";
  }
}

using WriterDeathTest = WriterTest;

TEST_F(WriterDeathTest, FactsAreNumberedWithoutAHole) {
  Batch batch;
  batch.begin(Lsn{7}, {});
  batch.add("fact");
  EXPECT_DEATH(ignore(scribe_.writer().write(batch), "it ends the process"), "without a hole");
}

TEST_F(WriterDeathTest, LogTimeNeverGoesBack) {
  ASSERT_TRUE(scribe_.write(1, 1).ok());
  ASSERT_TRUE(scribe_.write(1, 1).ok());
  Batch batch;
  batch.begin(Lsn{3}, time_from_ms(1));
  batch.add("fact");
  EXPECT_DEATH(ignore(scribe_.writer().write(batch), "it ends the process"), "never goes back");
}

}  // namespace
}  // namespace hapax::journal
