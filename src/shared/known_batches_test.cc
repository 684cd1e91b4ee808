#include "shared/known_batches.h"

#include <gtest/gtest.h>

namespace hapax::shared {
namespace {

// The n-th batch, of ten facts, of one history or another.
KnownBatch nth(std::uint64_t n, std::uint64_t history = 0) {
  return {{1, static_cast<std::uint32_t>(100 * n)},
          history * 1'000 + n,
          journal::Lsn{10 * n - 9},
          journal::Lsn{10 * n},
          time_from_ms(1'700'000'000'000)};
}

class KnownBatchesTest : public testing::Test {
 protected:
  void add(std::uint64_t from, std::uint64_t to, std::uint64_t history = 0) {
    for (std::uint64_t n = from; n <= to; ++n) known_.add(nth(n, history));
  }
  KnownBatches known_;
};

// E9
TEST_F(KnownBatchesTest, WhatIsBehindTheNewestThatIsStillThereIsLost) {
  add(1, 5);
  known_.begin_anew();
  add(1, 3);
  add(4, 9, 1);  // Others have gone on, in the same places.
  const auto lost = known_.end_anew();
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->first, journal::Lsn{31});
  EXPECT_EQ(lost->last, journal::Lsn{50});
  EXPECT_EQ(text_of(*lost), "the facts 31 to 50, written since 2023-11-14T22:13:20Z");
}

TEST_F(KnownBatchesTest, NothingIsLostWhereAllIsThereOrWasRemoved) {
  add(1, 5);
  known_.begin_anew();
  add(1, 7);
  EXPECT_FALSE(known_.end_anew());
  known_.begin_anew();
  add(20, 22);  // What lies before is in a snapshot by now.
  EXPECT_FALSE(known_.end_anew());
}

TEST_F(KnownBatchesTest, WhereNothingIsLeftOfWhatCouldBeThereAllOfItIsLost) {
  add(1, 5);
  known_.begin_anew();
  add(4, 6, 1);  // The reading begins behind a snapshot.
  EXPECT_EQ(known_.end_anew()->first, journal::Lsn{31});
  known_.begin_anew();
  EXPECT_EQ(known_.end_anew()->last, journal::Lsn{60});
}

TEST_F(KnownBatchesTest, AReadingThatWasGivenUpForgetsNothing) {
  add(1, 5);
  known_.begin_anew();
  add(1, 1);
  known_.begin_anew();
  add(1, 4);
  EXPECT_EQ(known_.end_anew()->first, journal::Lsn{41});
}

}  // namespace
}  // namespace hapax::shared
