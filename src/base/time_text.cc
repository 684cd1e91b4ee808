#include "base/time_text.h"

#include <chrono>
#include <cstdio>

namespace hapax::base {

namespace {

// Without the zone.
std::string to_seconds(std::chrono::sys_seconds at) {
  using namespace std::chrono;
  const sys_days day = floor<days>(at);
  const year_month_day date{day};
  const hh_mm_ss clock{at - day};
  char text[48];
  std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()));
  return text;
}

std::chrono::sys_seconds seconds_of(Time time) {
  return std::chrono::sys_seconds{
      std::chrono::floor<std::chrono::seconds>(std::chrono::milliseconds{to_ms(time)})};
}

}  // namespace

std::string rfc3339_seconds(Time time) { return to_seconds(seconds_of(time)) + "Z"; }

std::string rfc3339_ms(Time time) {
  const std::chrono::sys_seconds at = seconds_of(time);
  const std::int64_t rest = to_ms(time) - 1'000 * at.time_since_epoch().count();
  char fraction[32];
  std::snprintf(fraction, sizeof fraction, ".%03dZ", static_cast<int>(rest));
  return to_seconds(at) + fraction;
}

}  // namespace hapax::base
