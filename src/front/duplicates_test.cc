#include "front/duplicates.h"

#include <vector>

#include <gtest/gtest.h>

namespace hapax::front {
namespace {

constexpr std::int64_t kHour = 3'600'000;

Answer answer_at(std::int64_t ms, std::vector<Verdict> verdicts) {
  return {true, false, time_from_ms(ms), std::move(verdicts)};
}

TEST(Duplicates, AreCountedPerStreamAndScope) {
  Duplicates duplicates;
  const std::vector<Op> ops = {Append{.stream = "a"}, Append{.stream = "b"}, Append{.stream = "b"},
                               Claim{.scope = "c"}, Append{.stream = "a"}};
  duplicates.count(
      ops, answer_at(0, {Duplicate{}, Duplicate{}, Duplicate{}, DuplicateClaim{}, Appended{}}));
  EXPECT_EQ(duplicates.of("a", Time{}).in_all, 1U);
  EXPECT_EQ(duplicates.of("b", Time{}).in_all, 2U);
  EXPECT_EQ(duplicates.of("c", Time{}).in_all, 1U);
  EXPECT_EQ(duplicates.of("d", Time{}).in_all, 0U);
}

TEST(Duplicates, OlderThanADayCountOnlyInAll) {
  Duplicates duplicates;
  const std::vector<Op> ops = {Append{.stream = "a"}};
  for (std::int64_t hour = 100; hour < 130; ++hour) {
    duplicates.count(ops, answer_at(hour * kHour, {Duplicate{}}));
  }
  const DuplicateCount now = duplicates.of("a", time_from_ms(129 * kHour));
  EXPECT_EQ(now.in_all, 30U);
  EXPECT_EQ(now.last_24h, 24U);
  EXPECT_EQ(duplicates.of("a", time_from_ms(140 * kHour)).last_24h, 13U);
  EXPECT_EQ(duplicates.of("a", time_from_ms(1'000 * kHour)).last_24h, 0U);
}

}  // namespace
}  // namespace hapax::front
