// Which queue an operation asks for a job.
#pragma once

#include <optional>
#include <variant>

#include <hapax/ops.h>

#include "base/dedup_key.h"
#include "base/tenant_frame.h"

namespace hapax::base {

// The stream of an append, the scope of a claim, or what the name of a plain key says that is set
// unless it is there. Nothing: the operation asks for no job. Its names are those of the store.
[[nodiscard]] inline std::optional<StoreName> queue_of(const Op& op) {
  if (const auto* append = std::get_if<Append>(&op)) return split_name(append->stream);
  if (const auto* claim = std::get_if<Claim>(&op)) return split_name(claim->scope);
  const auto* set = std::get_if<Set>(&op);
  if (set == nullptr || set->mode != SetMode::kAbsent) return std::nullopt;
  const StoreName name = split_name(set->name);
  const auto key = parse_dedup_key(name.name);
  if (!key) return std::nullopt;
  return StoreName{name.tenant, key->queue};
}

}  // namespace hapax::base
