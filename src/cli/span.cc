#include "cli/span.h"

#include <charconv>
#include <utility>

#include "base/iso_span.h"

namespace hapax::cli {

namespace {

constexpr std::int64_t kSpanMax = std::int64_t{36'500} * 86'400'000;
constexpr std::pair<std::string_view, std::int64_t> kSpanFactors[] = {
    {"ms", 1}, {"s", 1'000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}, {"w", 604'800'000},
};

}  // namespace

std::optional<Duration> span_of(std::string_view text) {
  if (const auto iso = base::iso_span_ms(text)) {
    if (*iso > std::uint64_t{kSpanMax}) return std::nullopt;
    return Duration{static_cast<std::int64_t>(*iso)};
  }
  std::int64_t count = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (failed != std::errc{} || count < 0) return std::nullopt;
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  for (const auto& [word, factor] : kSpanFactors) {
    if (unit == word && count <= kSpanMax / factor) return Duration{count * factor};
  }
  return std::nullopt;
}

}  // namespace hapax::cli
