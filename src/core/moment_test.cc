#include "core/moment.h"

#include <gtest/gtest.h>

#include "base/format.h"

namespace hapax::core {
namespace {

constexpr std::int64_t kHourMs = 3'600'000;
constexpr Time kSomeTime = time_from_ms(1'000 * kHourMs);

Moment lagging(std::int64_t ms) { return {kSomeTime, kSomeTime + Duration{ms}}; }

// Log time, moved as the rule of W1 says, when the wall clock shows `at`.
Time reached(Moment moment, Time at) {
  for (std::int64_t ms = 0; moment.wall < at; ++ms) {
    const Duration lag = moment.lag();
    moment.wall += Duration{1};
    if (lag >= Duration{0} && lag <= kStepMax) {
      moment.now = moment.wall;
      continue;
    }
    const bool slews = ms % kSlewShare == kSlewShare - 1;
    moment.now += Duration{1};
    if (slews) moment.now += Duration{lag > kStepMax ? 1 : -1};
  }
  return moment.now;
}

TEST(Moment, WithoutALagTimesAreTheSame) {
  for (const std::int64_t lag : {0, 1, 2'000}) {
    const Moment moment = lagging(lag);
    for (const std::int64_t ms : {1, 1'000, 100'000'000}) {
      const Time at = moment.wall + Duration{ms};
      EXPECT_EQ(moment.log_at(at), at);
      EXPECT_EQ(moment.wall_at(at), at);
    }
  }
  EXPECT_EQ(lagging(kHourMs).log_at(Time::max()), Time::max());
  EXPECT_EQ(lagging(kHourMs).wall_at(Time::max()), Time::max());
}

// W6: neither early nor never, whatever the lag.
TEST(Moment, ATimeOfTheWallClockIsWhereLogTimeWillBe) {
  for (const std::int64_t lag : {2'001, 2'500, 60'000, -1, -500, -60'000}) {
    const Moment moment = lagging(lag);
    for (const std::int64_t ms : {1, 9, 11, 999, 5'050, 60'000, 580'050, 700'000}) {
      SCOPED_TRACE(base::format("{} {}", lag, ms));
      const Time at = moment.wall + Duration{ms};
      EXPECT_NEAR(static_cast<double>(to_ms(moment.log_at(at))),
                  static_cast<double>(to_ms(reached(moment, at))), 1);
      EXPECT_NEAR(static_cast<double>(to_ms(moment.wall_at(moment.log_at(at)))),
                  static_cast<double>(to_ms(at)), 1);
    }
  }
}

TEST(Moment, AfterTheLagItIsTheTimeItself) {
  const Moment moment = lagging(kHourMs);
  const Time far = moment.wall + Duration{11 * kHourMs};
  EXPECT_EQ(moment.log_at(far), far);
  EXPECT_EQ(moment.wall_at(far), far);
  EXPECT_EQ(moment.log_at(moment.wall + Duration{10'000}), moment.now + Duration{11'000});
  EXPECT_EQ(moment.wall_at(moment.now + Duration{11'000}), moment.wall + Duration{10'000});
}

// W6: what has passed is over, and is not younger than it is.
TEST(Moment, APastTimeIsNotLaterThanNow) {
  for (const std::int64_t lag : {0, 1'500, 60'000, -60'000}) {
    const Moment moment = lagging(lag);
    for (const std::int64_t ms : {0, 1, 1'000, 100'000}) {
      SCOPED_TRACE(base::format("{} {}", lag, ms));
      const Time past = moment.log_at(moment.wall - Duration{ms});
      EXPECT_LE(past, moment.now);
      EXPECT_LE(past, moment.wall - Duration{ms});
    }
  }
}

}  // namespace
}  // namespace hapax::core
