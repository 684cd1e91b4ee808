// The failed attempts of one record, oldest first. Bounded in number and bytes: a record that fails
// for ever costs no more than one that failed a few times.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <hapax/verdicts.h>

namespace hapax::core {

using PastAttempts = std::vector<PastAttempt>;

// C7: at most limits::kHistoryAttemptsMax attempts with limits::kHistoryBytesMax bytes of owners
// and reasons are kept, the latest ones.
void add_attempt(PastAttempts& past, PastAttempt attempt);
[[nodiscard]] bool is_within_limits(const PastAttempts& past);

// Rough memory, as State::text_bytes counts it.
[[nodiscard]] std::uint64_t past_memory(const PastAttempts& past);

// What the last nack said; empty if there was none, or it said nothing.
[[nodiscard]] std::string_view last_reason(const PastAttempts& past);

}  // namespace hapax::core
