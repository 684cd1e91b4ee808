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

TEST(TimeText, IsReadAsItIsWritten) {
  for (const std::int64_t ms : {0LL, 1'795'009'921'733LL, 951'782'400'000LL}) {
    EXPECT_EQ(parse_rfc3339(rfc3339_ms(time_from_ms(ms))), time_from_ms(ms));
  }
  EXPECT_EQ(parse_rfc3339("2026-11-16T05:46:19Z"), parse_rfc3339("2026-11-16T05:46:19.000Z"));
  for (const char* text : {"", "2026-11-16", "2026-11-16T05:46:19", "2026-11-16 05:46:19Z",
                           "2026-13-16T05:46:19Z", "2026-02-30T05:46:19Z", "2026-11-16T24:00:00Z",
                           "2026-11-16T05:60:00Z", "2026-11-16T05:46:19.1Z", "2026-11-16T05:46:-1Z",
                           "2026-11-16T05:46:19+01:00", "2026-11-16T05:46:19.123456Z", "Z"}) {
    EXPECT_FALSE(parse_rfc3339(text)) << text;
  }
}

}  // namespace
}  // namespace hapax::base
