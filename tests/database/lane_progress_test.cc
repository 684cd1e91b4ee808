// How far a lane was sent, step by step. Y6.
#include "postgres/lane_progress.h"

#include <gtest/gtest.h>

namespace hapax::postgres {
namespace {

using relay::SendOutcome;
using RowKind = TakenRow::Kind;

TakenRow row(RowKind kind, std::int64_t seq) { return {.kind = kind, .seq = seq}; }

std::vector<SendOutcome> outcomes(std::size_t accepted, std::size_t not_sent = 0) {
  std::vector<SendOutcome> all(accepted, {.kind = SendOutcome::Kind::kAccepted});
  all.resize(accepted + not_sent);
  return all;
}

TEST(LaneProgress, WhoRunsIsRememberedWithWhereTheLaneStood) {
  const LaneProgress before{.pos = 10, .pending = {{7, 3}}};
  const TakenLane taken{.rows = {row(RowKind::kFresh, 12)}, .running = {7, 9}};
  const LaneProgress after = advance(before, taken, outcomes(1)).progress;
  EXPECT_EQ(after, (LaneProgress{.pos = 12, .pending = {{7, 3}, {9, 10}}, .sent = 1}));
  EXPECT_EQ(advance(before, taken, outcomes(0, 1)).progress, before) << "nothing was sent";
}

TEST(LaneProgress, LateRowsComeBeforeFreshOnes) {
  const LaneProgress before{.pos = 10, .pending = {{7, 3}, {8, 9}}};
  TakenLane taken{.rows = {row(RowKind::kLate, 5), row(RowKind::kFresh, 12)},
                  .finished = {7},
                  .running = {8},
                  .late_end = 10};
  EXPECT_TRUE(has_all_late(before, taken));
  EXPECT_EQ(advance(before, taken, outcomes(2)).progress,
            (LaneProgress{.pos = 12, .pending = {{8, 9}}, .sent = 2}));
  EXPECT_EQ(advance(before, taken, outcomes(0, 2)).progress,
            (LaneProgress{.pos = 10, .pending = before.pending, .draining = {7}, .late_to = 3}));
  taken.late_end = 6;
  EXPECT_FALSE(has_all_late(before, taken));
}

TEST(LaneProgress, LateRowsAreLookedForInParts) {
  const LaneProgress before{.pos = 1'000, .pending = {{7, 100}}};
  const TakenLane first{.rows = {}, .finished = {7}, .late_end = 500};
  const LaneProgress middle = advance(before, first, {}).progress;
  EXPECT_EQ(middle,
            (LaneProgress{.pos = 1'000, .pending = {{7, 100}}, .draining = {7}, .late_to = 500}));
  const TakenLane second{.rows = {row(RowKind::kLate, 700)}, .late_end = 1'000};
  EXPECT_EQ(advance(middle, second, outcomes(1)).progress, (LaneProgress{.pos = 1'000, .sent = 1}));
  EXPECT_EQ(advance(middle, second, outcomes(0, 1)).progress, middle);
}

// A retry that somebody died over is taken alone: then nothing else was looked for.
TEST(LaneProgress, WhatWasNotLookedForIsNotDone) {
  const LaneProgress before{.pos = 1'000, .pending = {{7, 100}}, .draining = {7}, .late_to = 500};
  const TakenLane alone{.rows = {row(RowKind::kRetry, 20)}};
  LaneProgress after = before;
  after.sent = 1;
  EXPECT_EQ(advance(before, alone, outcomes(1)).progress, after);
  EXPECT_FALSE(has_all_late(before, alone));
}

TEST(LaneProgress, IsWrittenAndRead) {
  const std::vector<PendingTransaction> pending{{7, 3}, {9, 10}};
  EXPECT_EQ(pending_of(xids_text_of(pending), since_text_of(pending)), pending);
  EXPECT_EQ(running_in("10:20:10,14", 22), (Xids{10, 14, 20, 21}));
}

}  // namespace
}  // namespace hapax::postgres
