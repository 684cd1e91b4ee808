// Space that comes back: on a full disk, from the reserve, and to an idle store.
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/engine.h"
#include "engine/rig_test.h"

namespace hapax::engine {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::SizeIs;

// What the owner's loop does for a snapshot, as time goes by.
class SpaceTest : public EngineRig {
 protected:
  void reopen(std::uint64_t snapshot_every_bytes) {
    engine_.reset();
    EngineOptions options = tiny();
    options.reserve_bytes = 8'192;
    options.snapshot_every_bytes = snapshot_every_bytes;
    ASSERT_TRUE(folder_->remove(journal::kReserveName).ok());
    auto opened = try_open(options);
    ASSERT_TRUE(opened.ok()) << opened.error().text();
    engine_ = *std::move(opened);
  }
  bool append(std::string_view payload) {
    const Call& call = submit({Append{.stream = "s", .payload = payload}});
    return write().ok() && call.finished->answer.ok();
  }
  bool append_kilobyte() { return append(payload_); }
  // Until not even an empty record finds room.
  void fill_up() {
    disk_.set_faults({.space_limit = disk_.used() + 60'000});
    while (append_kilobyte()) {
    }
    while (append("")) {
    }
    ASSERT_GT(segments(), 8U);
  }
  std::uint64_t reserve() { return disk_.cached(journal::kReserveName).value_or("").size(); }
  void pass_seconds(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      clock_.advance(1'000);
      machine().collect(1'000);
      for (int tries = 0; tries < 2 && engine_->snapshot_due(); ++tries) take_snapshot();
    }
  }
  void take_snapshot() {
    engine_->make_way();
    if (machine().has_facts()) ignore(write(), "it may be refused");
    if (!engine_->snapshot_due()) return;
    engine_->begin_snapshot();
    during_snapshot_();
    while (engine_->snapshotter().busy()) {
      ignore(engine_->snapshotter().step(), "it may be refused");
    }
  }
  std::size_t segments() { return files(journal::FileName::Kind::kSegment).size(); }

  const std::string payload_ = std::string(1'000, 'p');
  std::function<void()> during_snapshot_ = [] {};
};

// R4, L18: only what was kept in reserve has room, and clients that try again do not take it.
TEST_F(SpaceTest, AFullDiskGivesBackWhatWasTrimmed) {
  reopen(std::uint64_t{1} << 30);
  commit({CreateStream{"s", {}}});
  disk_.set_faults({.space_limit = disk_.used() + 60'000});
  while (append_kilobyte()) {
  }
  ASSERT_GT(segments(), 8U);
  commit({Trim{.stream = "s", .before = Sequence{1'000'000}}});
  EXPECT_FALSE(append_kilobyte());
  during_snapshot_ = [&] { EXPECT_FALSE(append_kilobyte()); };
  pass_seconds(8);
  EXPECT_LE(segments(), 2U);
  EXPECT_TRUE(append_kilobyte());
  EXPECT_THAT(folder_->list().value(), Contains(journal::kReserveName));
  kill();
  open();
  EXPECT_THAT(records("s"), SizeIs(1));
}

// L21: the segment being written is all there is, and nothing in it is needed any more.
TEST_F(SpaceTest, ADiskSmallerThanASegmentGivesBackWhatWasTrimmed) {
  engine_.reset();
  EngineOptions options = tiny();
  options.reserve_bytes = 8'192;
  options.segment_bytes = 1'000'000;
  options.snapshot_every_bytes = std::uint64_t{1} << 30;
  ASSERT_TRUE(folder_->remove(journal::kReserveName).ok());
  engine_ = try_open(options).value();
  commit({CreateStream{"s", {}}});
  disk_.set_faults({.space_limit = disk_.used() + 60'000});
  for (int round = 0; round < 3; ++round) {
    int stored = 0;
    while (append_kilobyte()) ++stored;
    ASSERT_GT(stored, 30) << "round " << round;
    ASSERT_EQ(segments(), 1U);
    commit({Trim{.stream = "s", .before = Sequence{1'000'000}}});
    EXPECT_FALSE(append_kilobyte());
    pass_seconds(8);
    EXPECT_EQ(segments(), 1U);
    EXPECT_TRUE(append_kilobyte());
    EXPECT_FALSE(machine().statistics().writes_refused);
  }
  kill();
  open();
  EXPECT_THAT(records("s"), SizeIs(1));
}

// L18
TEST_F(SpaceTest, WhatFreesSpaceFindsRoomInTheReserve) {
  reopen(std::uint64_t{1} << 30);
  commit({CreateStream{"s", {}}, CreateStream{"t", {}}, CreateConsumer{"t", "c", {}}});
  fill_up();
  for (std::uint64_t before = 2; before < 6; ++before) {
    commit({Trim{.stream = "s", .before = Sequence{before}}});
    EXPECT_FALSE(append_kilobyte()) << "the rest of the reserve is for nobody else";
    EXPECT_GE(reserve(), 4'096U);
  }
  EXPECT_TRUE(machine().statistics().writes_refused);
  commit({DeleteConsumer{"t", "c"}});
  commit({DeleteStream{"s"}});
  pass_seconds(8);
  EXPECT_LE(segments(), 2U);
  EXPECT_EQ(reserve(), 8'192U);
  EXPECT_EQ(commit({CreateStream{"s", {}}}).verdict(), Verdict{Done{}});
}

// L18: half of the reserve stays for the snapshot, whatever comes.
TEST_F(SpaceTest, WhatFreesSpaceLeavesHalfOfTheReserve) {
  reopen(std::uint64_t{1} << 30);
  commit({CreateStream{"s", {}}});
  fill_up();
  std::uint64_t trimmed = 1;
  while (trimmed < 1'000) {
    const Call& call = submit({Trim{.stream = "s", .before = Sequence{++trimmed}}});
    if (!write().ok()) {
      EXPECT_EQ(call.finished->answer.error().code, Errc::kNoSpace);
      break;
    }
  }
  EXPECT_GT(trimmed, 5U);
  EXPECT_LT(trimmed, 100U);
  EXPECT_GE(reserve(), 4'096U - 512U);
}

// L18, E2
TEST_F(SpaceTest, WhatFreesSpaceIsNotRefusedForItsNeighbours) {
  reopen(std::uint64_t{1} << 30);
  commit({CreateStream{"s", {}}});
  fill_up();
  const Call& append = submit({Append{.stream = "s", .payload = payload_}});
  const Call& trim = submit({Trim{.stream = "s", .before = Sequence{9}}}, "trim");
  EXPECT_FALSE(write().ok());
  EXPECT_EQ(append.finished->answer.error().code, Errc::kNoSpace);
  ASSERT_FALSE(trim.answered());
  EXPECT_TRUE(write().ok());
  EXPECT_EQ(trim.verdict(), Verdict{Done{}});
  EXPECT_EQ(state().find_stream("s")->first, Sequence{9});
}

// L18
TEST_F(SpaceTest, RetentionGoesOnWhenTheDiskIsFull) {
  reopen(std::uint64_t{1} << 30);
  commit({CreateStream{"s", {.retention = {.age = Duration{60'000}}}}});
  fill_up();
  clock_.advance(100'000);
  machine().act(
      [](core::Turn& turn) {
        sweep_retention(turn, core::StreamUid{}, 10);
        return true;
      },
      Machine::Purpose::kFreesSpace);
  EXPECT_TRUE(write().ok());
  pass_seconds(8);
  EXPECT_LE(segments(), 2U);
  EXPECT_TRUE(append_kilobyte());
}

// Streams that are gone, and those that keep everything, take nobody's turn.
TEST_F(SpaceTest, ASweepLooksOnlyAtStreamsWhoseRecordsLeaveByThemselves) {
  reopen(std::uint64_t{1} << 30);
  const StreamSettings leaves{.retention = {.age = Duration{60'000}}};
  for (int i = 0; i < 400; ++i) {
    const std::string name = "gone" + std::to_string(i);
    commit({CreateStream{name, leaves}, DeleteStream{name}});
  }
  for (int i = 0; i < 40; ++i) commit({CreateStream{"kept" + std::to_string(i), {}}});
  commit({CreateStream{"s", leaves}});
  commit({Append{.stream = "s", .payload = "p"}});
  commit({CreateStream{"t", leaves}});
  commit({Append{.stream = "t", .payload = "p"}});
  clock_.advance(100'000);
  core::StreamUid next;
  machine().act([&](core::Turn& turn) {
    next = sweep_retention(turn, next, 1);
    return true;
  });
  EXPECT_TRUE(write().ok());
  EXPECT_EQ(state().find_stream("s")->first, Sequence{2});
  EXPECT_EQ(state().find_stream("t")->first, Sequence{1});
  machine().act([&](core::Turn& turn) {
    next = sweep_retention(turn, next, 1);
    return true;
  });
  EXPECT_TRUE(write().ok());
  EXPECT_EQ(state().find_stream("t")->first, Sequence{2});
  EXPECT_EQ(next, core::StreamUid{0});
}

// However many streams there are, a commit waits for one step only.
TEST_F(SpaceTest, AStepOfASweepLooksAtSomeStreamsAndARoundAtAll) {
  reopen(std::uint64_t{1} << 30);
  for (int i = 0; i < 40; ++i) {
    const std::string name = "s" + std::to_string(i);
    commit({CreateStream{name, {.retention = {.age = Duration{60'000}}}}});
  }
  commit({Append{.stream = "s39", .payload = "p"}});
  clock_.advance(100'000);
  core::StreamUid next;
  std::vector<core::StreamUid> from;
  do {
    from.push_back(next);
    machine().act([&](core::Turn& turn) {
      next = sweep_retention(turn, next, 1);
      return true;
    });
  } while (next != core::StreamUid{0});
  EXPECT_THAT(from, ElementsAre(core::StreamUid{0}, core::StreamUid{17}, core::StreamUid{33}));
  EXPECT_TRUE(write().ok());
  EXPECT_EQ(state().find_stream("s39")->first, Sequence{2});
}

// R4: that a last small batch was written does not mean that there is room.
TEST_F(SpaceTest, ASnapshotThatFoundNoRoomTakesTheReserveNextTime) {
  reopen(std::uint64_t{1} << 30);
  commit({CreateStream{"s", {}}});
  fill_up();
  commit({Trim{.stream = "s", .before = Sequence{1'000'000}}});
  disk_.set_faults({.space_limit = disk_.used() + 200});
  EXPECT_TRUE(append(""));
  EXPECT_FALSE(machine().statistics().writes_refused);
  pass_seconds(16);
  EXPECT_LE(segments(), 2U);
}

TEST_F(SpaceTest, AnIdleStoreGivesDeadSpaceBack) {
  reopen(std::uint64_t{1} << 30);
  commit({CreateStream{"s", {}}});
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(append_kilobyte());
  pass_seconds(20);
  EXPECT_EQ(engine_->snapshotter().finished(), 0U) << "nothing is dead";
  commit({Trim{.stream = "s", .before = Sequence{1'000'000}}});
  pass_seconds(8);
  EXPECT_LE(segments(), 2U);
  const std::uint64_t finished = engine_->snapshotter().finished();
  pass_seconds(100);
  EXPECT_EQ(engine_->snapshotter().finished(), finished) << "nothing is left to do";
}

// L18: once there is space again, a start makes the reserve as large as it was.
TEST_F(SpaceTest, AReserveThatWasUsedGrowsBackAtAStart) {
  reopen(std::uint64_t{1} << 30);
  commit({CreateStream{"s", {}}});
  fill_up();
  std::uint64_t before = 1;
  do {
    submit({Trim{.stream = "s", .before = Sequence{++before}}});
  } while (write().ok());
  ASSERT_LT(reserve(), 8'192U);
  disk_.set_faults({});
  ASSERT_TRUE(append_kilobyte());
  ASSERT_TRUE(engine_->writer().write_mark(journal::MarkKind::kClean).ok());
  engine_.reset();
  EngineOptions options = tiny();
  options.reserve_bytes = 8'192;
  auto opened = try_open(options);
  ASSERT_TRUE(opened.ok()) << opened.error().text();
  engine_ = *std::move(opened);
  EXPECT_EQ(reserve(), 8'192U);
}

// The retry of a refused append is refused as well, and does not take the place of a trim.
TEST_F(SpaceTest, ARetryBesideATrimOnAFullDiskDoesNotKeepItFromFreeingSpace) {
  reopen(std::uint64_t{1} << 30);
  commit({CreateStream{"s", {}}});
  fill_up();
  submit({Append{.stream = "s", .payload = payload_, .id = "a"}});
  const Call& retry = submit({Append{.stream = "s", .payload = payload_, .id = "a"}});
  const Call& trim = submit({Trim{.stream = "s", .before = Sequence{9}}});
  EXPECT_FALSE(write().ok());
  ASSERT_TRUE(retry.answered());
  ASSERT_FALSE(retry.finished->answer.ok());
  EXPECT_EQ(retry.finished->answer.error().code, Errc::kNoSpace);
  EXPECT_TRUE(write().ok());
  ASSERT_TRUE(trim.answered());
  EXPECT_TRUE(trim.finished->answer.ok());
}

}  // namespace
}  // namespace hapax::engine
