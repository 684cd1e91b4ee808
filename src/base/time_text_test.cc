#include "base/time_text.h"

#include <gtest/gtest.h>

namespace hapax::base {
namespace {

TEST(TimeText, IsUtcWithTwoDigitsEach) {
  EXPECT_EQ(rfc3339_seconds(time_from_ms(1'757'878'907'999)), "2025-09-14T19:41:47Z");
  EXPECT_EQ(rfc3339_ms(time_from_ms(1'757'878'907'007)), "2025-09-14T19:41:47.007Z");
  EXPECT_EQ(rfc3339_ms(time_from_ms(0)), "1970-01-01T00:00:00.000Z");
}

TEST(TimeText, KnowsLeapDays) {
  EXPECT_EQ(rfc3339_seconds(time_from_ms(1'709'208'000'000)), "2024-02-29T12:00:00Z");
  EXPECT_EQ(rfc3339_seconds(time_from_ms(4'107'542'400'000)), "2100-03-01T00:00:00Z");
}

// Rounded down, not towards 1970.
TEST(TimeText, BeforeTheEpoch) {
  EXPECT_EQ(rfc3339_ms(time_from_ms(-1)), "1969-12-31T23:59:59.999Z");
}

}  // namespace
}  // namespace hapax::base
