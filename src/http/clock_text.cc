#include "http/clock_text.h"

#include <chrono>
#include <cstdio>

namespace hapax::http {

std::string clock_text(Time time) {
  using namespace std::chrono;
  const sys_seconds at{floor<seconds>(time.time_since_epoch())};
  const sys_days day = floor<days>(at);
  const year_month_day date{day};
  const hh_mm_ss clock{at - day};
  char text[32];
  std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02dZ", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()));
  return text;
}

std::string decimal_text(double value) {
  char digits[64];
  std::snprintf(digits, sizeof digits, "%.3f", value);
  std::string text(digits);
  while (text.ends_with('0')) text.pop_back();
  if (text.ends_with('.')) text.push_back('0');
  return text;
}

}  // namespace hapax::http
