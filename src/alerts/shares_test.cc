#include "alerts/shares.h"

#include <gtest/gtest.h>

namespace hapax::alerts {
namespace {

const Subject kCounted{.name = "erp"};
constexpr Time kCountedFrom = time_from_ms(1'000'000);

TEST(Shares, ArePartsOfWhatWasCountedLately) {
  Shares shares;
  shares.see(kCounted, 10, 100, kCountedFrom);
  EXPECT_DOUBLE_EQ(*shares.share_of(kCounted), 0.1);
  // As many again, all of them part: the first count half, because a half-life has passed.
  shares.see(kCounted, 110, 200, kCountedFrom + Shares::kHalfLife);
  EXPECT_DOUBLE_EQ(*shares.share_of(kCounted), 105.0 / 150.0);
}

TEST(Shares, SayNothingOfAFew) {
  Shares shares;
  EXPECT_FALSE(shares.share_of(kCounted));
  shares.see(kCounted, 1, 1, kCountedFrom);
  EXPECT_FALSE(shares.share_of(kCounted));
  shares.see(kCounted, 40, 40, kCountedFrom);
  EXPECT_TRUE(shares.share_of(kCounted));
  // What was counted long ago says nothing of now.
  shares.see(kCounted, 40, 40, kCountedFrom + 10 * Shares::kHalfLife);
  EXPECT_FALSE(shares.share_of(kCounted));
}

TEST(Shares, ACounterThatBeganAgainCountsFromZero) {
  Shares shares;
  shares.see(kCounted, 1'000, 1'000, kCountedFrom);
  shares.see(kCounted, 0, 1'000, kCountedFrom + 20 * Shares::kHalfLife);
  shares.see(kCounted, 30, 60, kCountedFrom + 20 * Shares::kHalfLife);
  EXPECT_NEAR(*shares.share_of(kCounted), 0.5, 0.001);
}

TEST(Shares, WhoIsNotSeenIsForgotten) {
  Shares shares;
  shares.see(kCounted, 30, 60, kCountedFrom);
  shares.keep_seen(kCountedFrom + Duration{1});
  EXPECT_FALSE(shares.share_of(kCounted));
}

}  // namespace
}  // namespace hapax::alerts
