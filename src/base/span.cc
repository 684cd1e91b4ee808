#include "base/span.h"

#include <iterator>
#include <limits>

#include "base/whole_number.h"

namespace hapax::base {

namespace {

// Milliseconds are signed almost everywhere, so a span that only fits unsigned is too long.
constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();

// Adds up parts whose units must come in the order of kSpanUnits, each once.
class Sum {
 public:
  [[nodiscard]] bool add(std::uint64_t count, std::string_view unit) {
    for (; next_ < std::size(kSpanUnits); ++next_) {
      if (kSpanUnits[next_].name != unit) continue;
      const std::uint64_t factor = kSpanUnits[next_++].ms;
      if (count > (kMost - ms_) / factor) return false;
      ms_ += count * factor;
      return true;
    }
    return false;
  }
  [[nodiscard]] std::uint64_t ms() const { return ms_; }

 private:
  std::uint64_t ms_ = 0;
  std::size_t next_ = 0;
};

// The unit that a letter of ISO 8601 stands for, before or behind the T; empty: none.
std::string_view iso_unit(char letter, bool behind_t) {
  switch (letter) {
    case 'W':
      return behind_t ? "" : "w";
    case 'D':
      return behind_t ? "" : "d";
    case 'H':
      return behind_t ? "h" : "";
    case 'M':
      return behind_t ? "m" : "";
    case 'S':
      return behind_t ? "s" : "";
    default:
      return "";
  }
}

// Behind the P.
std::optional<std::uint64_t> parse_iso(std::string_view text) {
  if (text.empty() || text.ends_with('T')) return std::nullopt;
  Sum sum;
  bool behind_t = false;
  while (!text.empty()) {
    if (text.front() == 'T' && !behind_t) {
      behind_t = true;
      text.remove_prefix(1);
      continue;
    }
    const auto number = take_number(text);
    if (!number || text.empty()) return std::nullopt;
    if (!sum.add(*number, iso_unit(text.front(), behind_t))) return std::nullopt;
    text.remove_prefix(1);
  }
  return sum.ms();
}

}  // namespace

std::optional<std::uint64_t> parse_span(std::string_view text) {
  if (text.starts_with('P')) return parse_iso(text.substr(1));
  if (text.empty()) return std::nullopt;
  Sum sum;
  while (!text.empty()) {
    const auto number = take_number(text);
    const std::string_view unit = text.substr(0, text.find_first_of("0123456789"));
    if (!number || !sum.add(*number, unit)) return std::nullopt;
    text.remove_prefix(unit.size());
  }
  return sum.ms();
}

}  // namespace hapax::base
