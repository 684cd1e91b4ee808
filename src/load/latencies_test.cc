#include "load/latencies.h"

#include <gtest/gtest.h>

namespace hapax::load {
namespace {

TEST(Latencies, PercentilesAreThoseOfTheValues) {
  Latencies all;
  EXPECT_EQ(all.at(0.99), Micros{0});
  for (int i = 1; i <= 100; ++i) all.add(Micros{i});
  EXPECT_EQ(all.count(), 100U);
  EXPECT_EQ(all.at(0.5), Micros{50});
  EXPECT_EQ(all.at(0.99), Micros{99});
  EXPECT_EQ(all.at(1), Micros{100});
  EXPECT_EQ(all.at(0), Micros{1});
}

TEST(Latencies, AreExactToOnePercent) {
  for (std::int64_t value = 1; value < std::int64_t{1} << 35; value = value * 5 / 4 + 1) {
    Latencies one;
    one.add(Micros{value});
    one.add(Micros{value * 2});  // so that the largest one does not cut it
    const auto told = static_cast<double>(one.at(0.5).count());
    EXPECT_GE(told, static_cast<double>(value));
    EXPECT_LE(told, static_cast<double>(value) * 1.01);
  }
}

TEST(Latencies, WhatIsTooLongCountsAndIsTold) {
  Latencies all;
  all.add(Micros{std::int64_t{1} << 50});
  all.add(Micros{-5});
  EXPECT_EQ(all.count(), 2U);
  EXPECT_EQ(all.max(), Micros{std::int64_t{1} << 50});
  EXPECT_EQ(all.at(0.5), Micros{0});
}

TEST(Latencies, MergedAreThoseOfBoth) {
  Latencies one;
  Latencies other;
  for (int i = 1; i <= 50; ++i) one.add(Micros{i});
  for (int i = 51; i <= 100; ++i) other.add(Micros{i});
  one.merge(other);
  EXPECT_EQ(one.at(0.95), Micros{95});
  EXPECT_EQ(one.max(), Micros{100});
}

}  // namespace
}  // namespace hapax::load
