#include "base/span.h"

#include <gtest/gtest.h>

namespace hapax::base {
namespace {

TEST(Span, AddsUpPartsFromTheLargestUnitDown) {
  EXPECT_EQ(parse_span("0s"), 0U);
  EXPECT_EQ(parse_span("500ms"), 500U);
  EXPECT_EQ(parse_span("2w"), 14U * 86'400'000);
  EXPECT_EQ(parse_span("1h30m"), 5'400'000U);
  EXPECT_EQ(parse_span("1w1d1h1m1s1ms"), 694'861'001U);
}

TEST(Span, ReadsIso8601) {
  EXPECT_EQ(parse_span("P7D"), 7U * 86'400'000);
  EXPECT_EQ(parse_span("PT1H"), 3'600'000U);
  EXPECT_EQ(parse_span("P1W2DT3H4M5S"), 9U * 86'400'000 + 11'045'000U);
}

TEST(Span, RefusesWhatIsNotOne) {
  for (const char* text : {"", "5", "s", "-1s", "+1s", "1.5s", "1 s", "1S", "1m1h", "1s1s", "1s5",
                           "1x", "99999999999999999999s", "9223372036854775807s", "15250284453w"}) {
    EXPECT_FALSE(parse_span(text)) << text;
  }
  for (const char* text : {"P", "PT", "P1", "P1DT", "P1M", "P1Y", "PT1D", "PT1M1H", "P1D1D", "P-1D",
                           "p7d", "P1W T1H", "PTT1H", "P7D ", "PT99999999999999999999S"}) {
    EXPECT_FALSE(parse_span(text)) << text;
  }
}

// The sum may not pass what a signed count of milliseconds holds, whichever part is too much.
TEST(Span, EndsWhereMillisecondsDo) {
  EXPECT_EQ(parse_span("9223372036854775807ms"), 9'223'372'036'854'775'807U);
  EXPECT_FALSE(parse_span("9223372036854775808ms"));
  EXPECT_FALSE(parse_span("1s9223372036854775807ms"));
}

}  // namespace
}  // namespace hapax::base
