#include "cli/span.h"

#include "base/span.h"

namespace hapax::cli {

std::optional<Duration> span_of(std::string_view text) {
  constexpr std::uint64_t kMost = std::uint64_t{36'500} * 86'400'000;
  const auto ms = base::parse_span(text);
  if (!ms || *ms > kMost) return std::nullopt;
  return Duration{static_cast<std::int64_t>(*ms)};
}

}  // namespace hapax::cli
