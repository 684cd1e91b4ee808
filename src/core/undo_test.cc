#include "core/undo.h"

#include <array>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "core/state.h"

namespace hapax::core {
namespace {

TEST(Undo, RunsInversesNewestFirstDownToAMark) {
  State state(1);
  std::vector<int> ran;
  Undo undo;
  Undo::Mark mark = 0;
  for (int i = 0; i < 1'000; ++i) {
    if (i == 300) mark = undo.mark();
    undo.push([&ran, i](State&) { ran.push_back(i); });
  }
  undo.roll_back(state, mark);
  ASSERT_EQ(ran.size(), 700U);
  EXPECT_EQ(ran.front(), 999);
  EXPECT_EQ(ran.back(), 300);
  EXPECT_EQ(undo.mark(), mark);
}

// Small or large: what an inverse holds lives as long as it may be wanted, and no longer.
TEST(Undo, LetsGoOfWhatInversesHold) {
  State state(1);
  const auto held = std::make_shared<int>(0);
  const auto push = [&held](Undo& undo) {
    for (int i = 0; i < 600; ++i) {
      undo.push([held](State&) { ++*held; });
      undo.push([held, large = std::array<char, 200>{}](State&) { *held += 1 + large[7]; });
    }
  };
  Undo undo;
  push(undo);
  EXPECT_EQ(held.use_count(), 1'201);
  undo.roll_back(state, 200);
  EXPECT_EQ(*held, 1'000);
  EXPECT_EQ(held.use_count(), 201);
  undo.forget();
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_TRUE(undo.empty());

  push(undo);  // In pages that were used before.
  {
    Undo other;
    other.swap(undo);
    EXPECT_TRUE(undo.empty());
    EXPECT_EQ(held.use_count(), 1'201);
  }
  EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
}  // namespace hapax::core
