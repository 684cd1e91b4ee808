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

namespace {

// As many digits as that at this place.
std::optional<int> digits_at(std::string_view text, std::size_t at, std::size_t count) {
  int number = 0;
  if (text.size() < at + count) return {};
  for (const char c : text.substr(at, count)) {
    if (c < '0' || c > '9') return {};
    number = number * 10 + (c - '0');
  }
  return number;
}

}  // namespace

std::optional<Time> parse_rfc3339(std::string_view text) {
  using namespace std::chrono;
  constexpr std::string_view kForm = "dddd-dd-ddTdd:dd:dd";
  const bool with_ms = text.size() == kForm.size() + 5 && text[kForm.size()] == '.';
  if (!text.ends_with('Z') || (text.size() != kForm.size() + 1 && !with_ms)) return {};
  for (std::size_t at = 0; at < kForm.size(); ++at) {
    if (kForm[at] != 'd' && text[at] != kForm[at]) return {};
  }
  const auto y = digits_at(text, 0, 4);
  const auto mo = digits_at(text, 5, 2);
  const auto d = digits_at(text, 8, 2);
  const auto h = digits_at(text, 11, 2);
  const auto mi = digits_at(text, 14, 2);
  const auto s = digits_at(text, 17, 2);
  const auto ms = with_ms ? digits_at(text, 20, 3) : std::optional{0};
  if (!y || !mo || !d || !h || !mi || !s || !ms || *h > 23 || *mi > 59 || *s > 59) return {};
  const year_month_day date{year{*y}, month{static_cast<unsigned>(*mo)},
                            day{static_cast<unsigned>(*d)}};
  if (!date.ok()) return {};
  const auto at = sys_days{date} + hours{*h} + minutes{*mi} + seconds{*s} + milliseconds{*ms};
  return time_from_ms(duration_cast<milliseconds>(at.time_since_epoch()).count());
}

}  // namespace hapax::base
