// The state as bytes, for snapshots. The entries of `ids` and `settled` are not among them: the
// engine writes those chunk by chunk. Neither is what follows from the rest (who waits for what,
// which names exist, how many bytes of a segment are needed): decoding rebuilds or checks it.
// docs/internals/snapshot-format.md gives the bytes.
//
// B1: equal states give equal bytes, whatever order their facts and collections came in.
// B2: a state that decodes keeps every rule that the code relies on; no input makes decoding fail
//     in another way than by an error that says what is wrong and where.
#pragma once

#include <string>
#include <string_view>

#include <hapax/result.h>

#include "core/state.h"

namespace hapax::core {

// Appends to `out`. What waits for collect() is left out: trimmed runs, deleted streams.
// REQUIRES: no change that can still be rolled back.
void encode_state(const State& state, std::string& out);

// Fills a new State; after an error it must be thrown away. Log times are expected to lie between
// 1970 and the year 10889, as those of ids do.
[[nodiscard]] Status decode_state(std::string_view bytes, State& into);

// B2, for what the engine reads: what is wrong with an entry of a snapshot taken at `now`, or "".
[[nodiscard]] std::string wrong_with(const IdEntry& entry, Time now);
[[nodiscard]] std::string wrong_with(const SettledEntry& entry, Time now, Fence next);

// B2: whether the state and the entries of a snapshot taken at `now` fit together.
[[nodiscard]] Status check_restored(const State& state, Time now);

// Everything that an answer after `now` could depend on: two states are equal if and only if this
// is. Other than the snapshot it has the living ids and settled claims, and it does not have what
// is over at `now` (B1: collect() may or may not have come by). For tests and the simulation.
[[nodiscard]] std::string canonical(const State& state, Time now);

}  // namespace hapax::core
