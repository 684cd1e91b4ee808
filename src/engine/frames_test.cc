// A fact that comes off the disk changed is never taken for a fact.
#include "engine/frames.h"

#include <gtest/gtest.h>

#include "sim/disk.h"

namespace hapax::engine {
namespace {

core::RecordAppended record(std::uint64_t sequence, std::string_view payload) {
  core::RecordAppended fact;
  fact.stream = core::StreamUid{1};
  fact.sequence = Sequence{sequence};
  fact.id = "id";
  fact.group = "group";
  fact.payload = payload;
  return fact;
}

class Frames : public testing::Test {
 protected:
  Frames() { batch.begin(journal::Lsn{1}, time_from_ms(7)); }

  std::string frame(const core::Fact& fact) {
    const FrameSpan span = write_frame(batch, fact);
    return std::string(batch.peek(span.offset, span.length));
  }

  journal::Batch batch;
};

TEST_F(Frames, AFactIsReadBackFromItsFrame) {
  const std::string bytes = frame(record(1, "payload")) + frame(record(2, ""));
  std::string_view rest = bytes;
  const Record first = to_record(take_frame(rest).value(), time_from_ms(7)).value();
  EXPECT_EQ(first, (Record{Sequence{1}, time_from_ms(7), "id", "group", {}, "payload", {}}));
  const Record second = to_record(take_frame(rest).value(), time_from_ms(7)).value();
  EXPECT_EQ(second.sequence, Sequence{2});
  EXPECT_TRUE(rest.empty());
  EXPECT_EQ(take_frame(rest).error().code, Errc::kCorruption);
}

TEST_F(Frames, ALargeFactIsReadBackToo) {
  for (const std::size_t size : {100U, 127U, 128U, 16'383U, 16'384U, 3'000'000U}) {
    const std::string payload(size, 'p');
    const core::Fact fact = record(1, payload);
    const std::string bytes = frame(fact);
    EXPECT_LE(bytes.size(), frame_bytes_max(fact));
    std::string_view rest = bytes;
    EXPECT_TRUE(to_record(take_frame(rest).value(), Time{}).value().payload == payload);
  }
}

TEST_F(Frames, EveryFlippedBitIsFound) {
  const std::string whole = frame(record(1, "a payload of some bytes"));
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string bytes = whole;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    std::string_view rest = bytes;
    const auto taken = take_frame(rest);
    ASSERT_FALSE(taken.ok()) << "bit " << bit;
    EXPECT_EQ(taken.error().code, Errc::kCorruption);
    EXPECT_EQ(rest, bytes) << "nothing is taken off";
  }
}

TEST_F(Frames, AFrameCutShortIsFound) {
  const std::string whole = frame(record(1, "payload"));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    std::string_view rest = std::string_view(whole).substr(0, size);
    EXPECT_EQ(take_frame(rest).error().code, Errc::kCorruption) << size;
  }
  for (std::size_t size = 0; size <= core::kFactTrailer; ++size) {
    EXPECT_EQ(checked_fact(std::string_view("1234567").substr(0, size)).error().code,
              Errc::kCorruption);
  }
}

TEST_F(Frames, ARecordIsFoundByItsPlaceInItsRun) {
  std::string run;
  for (std::uint64_t i = 1; i <= 5; ++i) run += frame(record(i, std::to_string(i)));
  for (std::uint64_t i = 0; i < 5; ++i) {
    const Record found = to_record(record_in_run(run, i).value(), Time{}).value();
    EXPECT_EQ(found.sequence, Sequence{i + 1});
  }
  EXPECT_EQ(record_in_run(run, 5).error().code, Errc::kCorruption);
  EXPECT_EQ(record_in_run(run, 6).error().code, Errc::kCorruption);
  // Damage elsewhere in the run does not keep a record from being read.
  std::string damaged = run;
  damaged.back() = static_cast<char>(damaged.back() ^ 1);
  EXPECT_TRUE(record_in_run(damaged, 3).ok());
  EXPECT_EQ(record_in_run(damaged, 4).error().code, Errc::kCorruption);
}

TEST_F(Frames, AnotherFactIsNoRecordAndNoResult) {
  const std::string trimmed = frame(core::RecordsTrimmed{core::StreamUid{1}, Sequence{2}});
  std::string_view rest = trimmed;
  const std::string_view fact = take_frame(rest).value();
  EXPECT_EQ(to_record(fact, Time{}).error().code, Errc::kCorruption);
  EXPECT_EQ(to_result(fact).error().code, Errc::kCorruption);
}

TEST_F(Frames, ASpanBehindTheEndOfItsFileIsCorruption) {
  sim::SimDisk disk{sim::Random(1)};
  sim::SimFolder folder(disk);
  const auto file = folder.open("f", ports::OpenMode::kCreate).value();
  ASSERT_TRUE(file->write_at(0, "0123456789").ok());
  EXPECT_EQ(read_span(*file, {1, 2, 3}).value(), "234");
  EXPECT_EQ(read_span(*file, {1, 8, 3}).error().code, Errc::kCorruption);
  disk.fail_at_look(disk.looks(), Errc::kIo);
  EXPECT_EQ(read_span(*file, {1, 2, 3}).error().code, Errc::kIo);
}

}  // namespace
}  // namespace hapax::engine
