#include "resp/expiry.h"

#include <algorithm>
#include <limits>

#include "base/whole_number.h"
#include "base/words.h"

namespace hapax::resp {

namespace {

bool in_seconds(ExpiryUnit unit) {
  return unit == ExpiryUnit::kSeconds || unit == ExpiryUnit::kSecondsSince1970;
}
bool from_now(ExpiryUnit unit) {
  return unit == ExpiryUnit::kSeconds || unit == ExpiryUnit::kMilliseconds;
}

std::string invalid(std::string_view command) {
  return "invalid expire time in '" + std::string(command) + "' command";
}

}  // namespace

std::optional<ExpiryUnit> expiry_unit(std::string_view word) {
  if (word == "EX") return ExpiryUnit::kSeconds;
  if (word == "PX") return ExpiryUnit::kMilliseconds;
  if (word == "EXAT") return ExpiryUnit::kSecondsSince1970;
  if (word == "PXAT") return ExpiryUnit::kMillisecondsSince1970;
  return std::nullopt;
}

ExpiryOrProblem expiry_of(std::string_view amount, ExpiryUnit unit, std::string_view command) {
  const std::optional<std::int64_t> number = base::whole_number(amount);
  if (!number) return std::string(kNotANumber);
  const std::int64_t scale = in_seconds(unit) ? 1'000 : 1;
  const std::int64_t most = limits::kExpiryMax.count();
  if (*number > most / scale) return invalid(command);
  if (*number < std::numeric_limits<std::int64_t>::min() / scale) return invalid(command);
  const std::int64_t ms = *number * scale;
  if (from_now(unit)) return Expiry{Expiry::Kind::kAfter, {}, Duration{std::max(ms, -most)}};
  return Expiry{Expiry::Kind::kAt, time_from_ms(std::max<std::int64_t>(ms, 0)), {}};
}

ExpiryOrProblem expiry_from_now_on(std::string_view amount, ExpiryUnit unit,
                                   std::string_view command) {
  const std::optional<std::int64_t> number = base::whole_number(amount);
  if (number && *number <= 0) return invalid(command);
  return expiry_of(amount, unit, command);
}

std::variant<ExpireIf, std::string> read_expire_if(std::span<const std::string_view> options) {
  bool never = false;
  bool some = false;
  bool later = false;
  bool earlier = false;
  for (const std::string_view option : options) {
    const std::string word = base::upper(option);
    never = never || word == "NX";
    some = some || word == "XX";
    later = later || word == "GT";
    earlier = earlier || word == "LT";
    if (word != "NX" && word != "XX" && word != "GT" && word != "LT") {
      return "Unsupported option " + std::string(option);
    }
  }
  if (never && (some || later || earlier)) {
    return "NX and XX, GT or LT options at the same time are not compatible";
  }
  if (later && earlier) return "GT and LT options at the same time are not compatible";
  if (some && earlier) return ExpireIf::kSomeEarlier;
  if (never) return ExpireIf::kNever;
  if (later)
    return ExpireIf::kLater;  // A key that stays is later than everything: XX says no more.
  if (earlier) return ExpireIf::kEarlier;
  return some ? ExpireIf::kSome : ExpireIf::kAlways;
}

}  // namespace hapax::resp
