#include "sim/random.h"

#include <set>

#include <gtest/gtest.h>

namespace hapax::sim {
namespace {

// Fixed for ever: seeds in tests/seeds and in bug reports depend on these numbers.
TEST(Random, TheNumbersOfASeedNeverChange) {
  Random random(42);
  EXPECT_EQ(random.next(), 1546998764402558742U);
  EXPECT_EQ(random.next(), 6990951692964543102U);
  EXPECT_EQ(Random(42).split("disk").next(), Random(42).split("disk").next());
}

TEST(Random, AStreamOfItsOwnIsNotShiftedByDrawsElsewhere) {
  Random random(1);
  const std::uint64_t before = random.split("faults").next();
  ASSERT_NE(random.next(), 0U);
  EXPECT_EQ(random.split("faults").next(), before);
  EXPECT_NE(random.split("workload").next(), before);
  EXPECT_NE(Random(2).split("faults").next(), before);
  EXPECT_NE(random.split(std::uint64_t{1}).next(), random.split(std::uint64_t{2}).next());
}

TEST(Random, RangesAreKept) {
  Random random(3);
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(random.between(5, 9));
  EXPECT_EQ(seen, (std::set<std::uint64_t>{5, 6, 7, 8, 9}));
  EXPECT_EQ(random.below(1), 0U);
}

TEST(Random, ARateIsMetRoughlyAndItsEndsExactly) {
  Random random(4);
  int hits = 0;
  for (int i = 0; i < 10'000; ++i) {
    if (random.chance(1, 4)) ++hits;
    EXPECT_FALSE(random.chance(kNever));
    EXPECT_TRUE(random.chance(kAlways));
  }
  EXPECT_GT(hits, 2200);
  EXPECT_LT(hits, 2800);
}

}  // namespace
}  // namespace hapax::sim
