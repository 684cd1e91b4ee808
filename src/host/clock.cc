#include "host/clock.h"

#include <ctime>

#include "base/assert.h"

namespace hapax::host {
namespace {

std::int64_t read_ms(clockid_t clock) {
  timespec now{};
  HAPAX_ASSERT(clock_gettime(clock, &now) == 0, "the machine has this clock");
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace

std::int64_t HostClock::wall_ms() { return read_ms(CLOCK_REALTIME); }

// Not CLOCK_MONOTONIC (std::chrono::steady_clock): it stands still during a suspend, and the wall
// time gained meanwhile would look like a jump to be clamped.
std::int64_t HostClock::steady_ms() { return read_ms(CLOCK_BOOTTIME); }

}  // namespace hapax::host
