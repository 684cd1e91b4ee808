// How much is taken of what was taken before and not settled.
#pragma once

#include <algorithm>
#include <cstdint>

namespace hapax::relay {

// Ever smaller pieces, so that a record which ends the relay is found, and in the end is alone.
[[nodiscard]] constexpr std::uint32_t piece_to_take(std::uint32_t most, std::uint32_t attempts,
                                                    std::uint32_t attempts_max) {
  if (attempts == 0) return most;
  if (attempts + 1 >= attempts_max) return 1;
  return std::max(1U, most >> std::min(2 * attempts, 31U));
}

}  // namespace hapax::relay
