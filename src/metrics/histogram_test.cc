#include "metrics/histogram.h"

#include <gtest/gtest.h>

namespace hapax::metrics {
namespace {

TEST(Histogram, AQuantileLiesWithinTheBucketThatHoldsIt) {
  Histogram histogram({1, 2, 4});
  EXPECT_FALSE(histogram.values().quantile(0.5));
  for (int i = 0; i < 10; ++i) histogram.observe(1.5);
  for (int i = 0; i < 10; ++i) histogram.observe(3);
  EXPECT_DOUBLE_EQ(*histogram.values().quantile(0.5), 2);
  EXPECT_DOUBLE_EQ(*histogram.values().quantile(0.25), 1.5);
  EXPECT_DOUBLE_EQ(*histogram.values().quantile(0.75), 3);
  EXPECT_DOUBLE_EQ(*histogram.values().quantile(1), 4);
}

TEST(Histogram, WhatIsAboveTheLastBoundCountsAsThatBound) {
  Histogram histogram({1, 2});
  histogram.observe(1'000);
  EXPECT_DOUBLE_EQ(*histogram.values().quantile(0.99), 2);
}

TEST(Histogram, ValuesOfEqualBoundsAreSummed) {
  Histogram a({1, 2});
  Histogram b({1, 2});
  a.observe(0.5);
  b.observe(5);
  HistogramValues sum;
  sum.add(a.values());
  sum.add(b.values());
  EXPECT_EQ(sum.counts, (std::vector<std::uint64_t>{1, 0, 1}));
  EXPECT_DOUBLE_EQ(sum.sum, 5.5);
}

}  // namespace
}  // namespace hapax::metrics
