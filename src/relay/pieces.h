// How a batch is taken again that was taken before and never settled.
//
// Y5: one of its records may have ended the relay that sent it. So the batch is taken again in ever
// smaller pieces, and in the end its lane is suspect: one record of it is taken, while the relay
// takes nothing of any other lane. A relay may also have been killed from outside, so a death
// counts against a record only if the record was taken alone, and the source has written that down
// before it hands the record out.
#pragma once

#include <algorithm>
#include <cstdint>

namespace hapax::relay {

// A batch is taken so often before its first record is taken alone.
inline constexpr std::uint32_t kTakesBeforeAlone = 5;

// `unsettled`: how often the batch was taken and not settled.
[[nodiscard]] constexpr bool is_suspect(std::uint32_t unsettled) {
  return unsettled >= kTakesBeforeAlone;
}
[[nodiscard]] constexpr std::uint32_t piece_to_take(std::uint32_t most, std::uint32_t unsettled) {
  return is_suspect(unsettled) ? 1 : std::max(1U, most >> (2 * unsettled));
}
// What `unsettled` is once such a piece was settled: pieces grow again as they shrank, because what
// ended relays may be right behind. `counted` has that taking in it.
inline constexpr std::uint32_t kUnsettledAfterAlone = kTakesBeforeAlone - 2;
[[nodiscard]] constexpr std::uint32_t unsettled_after(std::uint32_t counted) {
  return counted < 2 ? 0 : std::min(counted - 2, kUnsettledAfterAlone);
}
// The number of this attempt: what was taken among others was none.
[[nodiscard]] constexpr std::uint32_t attempt_of(std::uint32_t unsettled) {
  return is_suspect(unsettled) ? unsettled - kTakesBeforeAlone + 1 : 1;
}

}  // namespace hapax::relay
