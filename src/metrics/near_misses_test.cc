#include "metrics/near_misses.h"

#include <gtest/gtest.h>

namespace hapax::metrics {
namespace {

constexpr Duration kSpan{1'000};

class NearMissesTest : public testing::Test {
 protected:
  NearMissesTest() {
    misses_.know({{"s", {kSpan, IdScope::kStream}}, {"g", {kSpan, IdScope::kGroup}}});
  }
  void accept(std::optional<std::string_view> id, std::int64_t at, std::string_view stream = "s",
              std::optional<std::string_view> group = {}) {
    misses_.told(Append{.stream = stream, .id = id, .group = group}, Appended{}, time_from_ms(at));
  }
  NearMisses misses_;
};

TEST_F(NearMissesTest, AreIdsThatComeAgainWithinAWindowAfterTheirWindow) {
  accept("soon", 0);
  accept("late", 0);
  accept("soon", 1'500);
  EXPECT_EQ(misses_.count(), 1U);
  accept("late", 2'000);
  EXPECT_EQ(misses_.count(), 1U);
  accept("soon", 2'600);
  EXPECT_EQ(misses_.count(), 2U) << "each time anew";
}

TEST_F(NearMissesTest, ARepeatThatIsKnownIsNone) {
  accept("id", 0);
  const Append append{.stream = "s", .id = "id"};
  const Duplicate renewed{.expires_at = time_from_ms(1'900)};
  misses_.told(append, renewed, time_from_ms(900));
  EXPECT_EQ(misses_.count(), 0U);
  accept("id", 2'000);
  EXPECT_EQ(misses_.count(), 1U) << "counted from what the duplicate was told";
}

TEST_F(NearMissesTest, WhatIsAnotherIdIsNone) {
  accept("id", 0, "g", "a");
  accept("id", 1'500, "g", "b");
  accept("id", 1'500, "unknown");
  accept(std::nullopt, 0);
  accept(std::nullopt, 1'500);
  EXPECT_EQ(misses_.count(), 0U);
}

// However many ids there are, the memory is bounded and the count about right.
TEST_F(NearMissesTest, AreEstimatedFromASampleWhenThereAreMany) {
  constexpr int kMany = 200'000;
  for (int i = 0; i < kMany; ++i) accept("id " + std::to_string(i), 0);
  for (int i = 0; i < kMany; ++i) accept("id " + std::to_string(i), 1'500);
  EXPECT_GT(misses_.count(), kMany * 9 / 10);
  EXPECT_LT(misses_.count(), kMany * 11 / 10);
}

}  // namespace
}  // namespace hapax::metrics
