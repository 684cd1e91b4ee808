// Transactions by name: what is remembered of them, and for how long. The rules are in commit.cc,
// what follows from a fact in apply_transactions.cc.
//
// T1: only the holder of the current epoch ends a transaction.
// T2: one that timed out is over, whether it was collected or not.
// T3: the name of one that is over is forgotten after limits::kTransactionRetention; a later one of
//     that name still has a higher epoch, for epochs are drawn from the store's one counter.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/state.h"

namespace hapax::core {

// Null: nobody began it, or it is forgotten.
[[nodiscard]] const Transaction* find_transaction(const State& state, std::string_view name,
                                                  Time now);

// Puts one into the state with everything derived from it. REQUIRES: there is none of that name.
void add_transaction(State& state, std::string name, Transaction transaction);

// Ends those that timed out and forgets names: at most `work_max` of them, at the price of those.
// REQUIRES: `now` is not after the log time of any fact that may still be rolled back.
void collect_transactions(State& state, Time now, std::size_t work_max);

}  // namespace hapax::core
