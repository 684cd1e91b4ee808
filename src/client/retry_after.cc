#include "client/retry_after.h"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <iomanip>
#include <locale>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

namespace hapax::client {

namespace {

std::optional<std::int64_t> seconds_of_date(std::string_view text) {
  std::tm parts{};
  std::istringstream in{std::string(text)};
  in.imbue(std::locale::classic());
  in >> std::get_time(&parts, "%a, %d %b %Y %H:%M:%S GMT");
  if (in.fail() || in.peek() != std::istringstream::traits_type::eof()) return {};
  return ::timegm(&parts);
}

std::optional<std::int64_t> seconds_asked(const http::Fields& fields) {
  const std::string_view text = fields.get("Retry-After");
  std::int64_t seconds = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  const bool is_number = !text.empty() && end == text.data() + text.size();
  if (is_number && problem == std::errc::result_out_of_range) return kRetryAfterMax.count();
  if (is_number && problem == std::errc{}) return seconds;
  const auto until = seconds_of_date(text);
  const auto now = seconds_of_date(fields.get("Date"));
  if (!until || !now) return {};
  return *until - *now;
}

}  // namespace

Duration retry_after(const http::Fields& fields) {
  const std::int64_t most = kRetryAfterMax.count() / 1'000;
  return Duration{std::clamp<std::int64_t>(seconds_asked(fields).value_or(0), 0, most) * 1'000};
}

}  // namespace hapax::client
