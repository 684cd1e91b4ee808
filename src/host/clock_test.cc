#include "host/clock.h"

#include <chrono>

#include <gtest/gtest.h>

namespace hapax::host {
namespace {

TEST(HostClock, WallTimeIsMillisecondsSince1970) {
  using std::chrono::duration_cast, std::chrono::milliseconds, std::chrono::system_clock;
  HostClock clock;
  const auto now = [] {
    return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
  };
  const std::int64_t before = now();
  const std::int64_t asked = clock.wall_ms();
  // Some slack below: the wall clock may be stepped back while the test runs.
  EXPECT_GE(asked, before - 1000);
  EXPECT_LE(asked, now() + 1000);
}

TEST(HostClock, SteadyTimeNeverGoesBack) {
  HostClock clock;
  std::int64_t last = clock.steady_ms();
  for (int i = 0; i < 10'000; ++i) {
    const std::int64_t now = clock.steady_ms();
    ASSERT_GE(now, last);
    last = now;
  }
}

}  // namespace
}  // namespace hapax::host
