#include "sim/entropy.h"

#include <array>

#include <gtest/gtest.h>

namespace hapax::sim {
namespace {

TEST(SimEntropy, TheSeedDecidesEverything) {
  SimEntropy one(Random(7));
  SimEntropy same(Random(7));
  SimEntropy other(Random(8));
  std::array<std::byte, 13> a{};
  std::array<std::byte, 13> b{};
  std::array<std::byte, 13> c{};
  one.fill(a);
  same.fill(b);
  other.fill(c);
  EXPECT_EQ(a, b);
  EXPECT_NE(a, c);
  one.fill(b);
  EXPECT_NE(a, b);  // It goes on, it does not repeat itself.
}

}  // namespace
}  // namespace hapax::sim
