#include "workflows/figures.h"

#include <gtest/gtest.h>

namespace hapax::workflows {
namespace {

using Kind = delivery::Settlement::Kind;

TEST(EndpointFigures, EachRecordIsCountedUnderWhatBecameOfIt) {
  EndpointFigures figures("acme", "erp", "");
  figures.began(3);
  figures.settled(Kind::kRetry, Duration{5}, "HTTP 500");
  figures.settled(Kind::kDelivered, Duration{15}, "");
  figures.settled(Kind::kDead, Duration{7}, "HTTP 422");
  figures.settled(Kind::kUnknown, Duration{7}, "no answer");
  figures.settled(Kind::kHeld, Duration{7}, "");
  EXPECT_EQ(figures.attempts(), 3U);
  EXPECT_EQ(figures.retried(), 1U);
  EXPECT_EQ(figures.delivered(), 1U);
  EXPECT_EQ(figures.dead(), 1U);
  EXPECT_EQ(figures.unknown(), 1U);
  EXPECT_EQ(figures.last_error(), "no answer");
  // Only what was confirmed has a time to confirmation: 15 ms, in the fifth bucket (up to 20 ms).
  EXPECT_EQ(figures.delivery_seconds().count(4), 1U);
  EXPECT_DOUBLE_EQ(figures.delivery_seconds().sum(), 0.015);
}

}  // namespace
}  // namespace hapax::workflows
