// Claims: the right to do the work behind a key, given to one worker at a time. The rules are in
// claims.cc, what follows from a fact in apply_claims.cc. A claim is open (in progress, failed or
// of unknown outcome; OpenClaim) or settled as completed (SettledEntry), never both.
//
// K1: a key has at most one current fence; only its holder renews or settles.
// K2: fences grow over the store's life, so a later claim always has a higher one.
// K3: a completed claim keeps its result and its fence for as long as it is remembered.
// K4: other content under the key is a conflict, whoever is working on it and however long ago.
// K5: an unknown outcome is neither claimed nor forgotten until somebody settles or resolves it.
// K6: the outcome of a claim that was opened with OnLapse::kUnknown is unknown from the end of its
//     lease on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <hapax/store.h>

#include "base/hash128.h"
#include "base/where.h"
#include "core/settled_entry.h"
#include "core/state.h"

namespace hapax::core {

class Turn;

// The open claim of a key; null if there is none or it is past forgotten_at().
[[nodiscard]] const OpenClaim* find_open_claim(const State& state, base::Hash128 key, Time now);
// What is remembered of a completed claim or an answered commit; none if it was removed by hand.
[[nodiscard]] std::optional<SettledEntry> find_settled(const State& state, base::Hash128 key,
                                                       Time now);
// For readers. The result itself is left out: whoever owns the disk fills it in.
[[nodiscard]] std::optional<ClaimStatus> claim_status(const State& state, base::Hash128 key,
                                                      Time now);

// What the next claim of the key is told about the owners before it. Null: there were none.
[[nodiscard]] Former former_of(const OpenClaim* open);
// Why the outcome of a claim is unknown whose lease ran out.
[[nodiscard]] std::string lapse_reason(const OpenClaim& open);
// Finds out that the lease of the key's owner ran out, if that makes the outcome unknown for this
// claim: a fact says so from then on, whatever becomes of the commit that the claim stands in.
void note_lapse(Turn& turn, const Claim& op, base::Hash128 key);

// Claims of unknown outcome, those that just lapsed included.
[[nodiscard]] std::uint64_t claims_unknown(const State& state, Time now);
// Completed claims that are remembered; one that was forgotten by hand counts until it would have
// been forgotten anyway. Answers of commits are none.
[[nodiscard]] std::uint64_t claims_settled(const State& state);

// Result bytes are counted as live until here: the end of their retention, rounded up so that
// results which end at about the same time share a slice of State::results_end.
[[nodiscard]] Time result_slice_end(const SettledEntry& entry);
// Whether the frame at `at` is the counted result of `key`: only such a frame is worth a
// ResultMoved.
[[nodiscard]] bool is_live_result(const State& state, base::Hash128 key, base::Where at, Time now);

// Puts an open claim into the state with everything derived from it. REQUIRES: the key has none.
void add_open_claim(State& state, base::Hash128 key, OpenClaim&& claim);

// Counts an entry as the tenant's, for as long as it and its result stay.
void charge_settled(State& state, Tenant& tenant, const SettledEntry& entry, Time now, Undo* undo);

// Removes what is past its end: at most `work_max` open claims and slices of a segment's results.
// REQUIRES: `now` is not after the log time of any fact that may still be rolled back.
std::size_t collect_claims(State& state, Time now, std::size_t work_max);

}  // namespace hapax::core
