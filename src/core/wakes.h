// What a fact gives to those who wait. Facts wake, not operations: a record that a transaction
// brings, one that a redrive puts back and one that another process appended are the same fact.
#pragma once

#include <string_view>
#include <variant>

#include "base/hash128.h"
#include "core/facts.h"
#include "core/state.h"

namespace hapax::core {

struct NoWake {};
struct StreamWake {
  std::string_view stream;
  std::string_view consumer{};  // empty: everybody who waits for the stream
};
struct ClaimWake {
  base::Hash128 claim;
};
using Wake = std::variant<NoWake, StreamWake, ClaimWake>;

// C11: what a consumer cannot be handed now, it can be handed only after a fact that wakes it, or
// after Received::next_due. The views are those of the state and of the fact.
// REQUIRES: the fact is not applied yet: afterwards its stream or consumer may be gone.
[[nodiscard]] Wake wake_of(const State& state, const Fact& fact);

}  // namespace hapax::core
