// Plain keys that stand for a job, as "exactly once patterns" on Redis names them:
// dedup:{queue}:{job}.
#pragma once

#include <optional>
#include <string_view>

namespace hapax::base {

inline constexpr std::string_view kDedupPrefix = "dedup:";

struct DedupKey {
  std::string_view queue;
  std::string_view job;
};

// Of a name as its tenant knows it. Nothing: it stands for no job.
[[nodiscard]] constexpr std::optional<DedupKey> parse_dedup_key(std::string_view name) {
  if (!name.starts_with(kDedupPrefix)) return std::nullopt;
  name.remove_prefix(kDedupPrefix.size());
  const std::size_t colon = name.find(':');
  if (colon == 0 || colon == std::string_view::npos) return std::nullopt;
  return DedupKey{name.substr(0, colon), name.substr(colon + 1)};
}

}  // namespace hapax::base
