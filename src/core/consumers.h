// What others may ask about consumers. Their rules are in turn.h (run) and state.h (apply).
#pragma once

#include <hapax/store.h>

#include "core/state.h"

namespace hapax::core {

// Everything up to it is acked by every consumer of the stream; 0 if it has none.
[[nodiscard]] Sequence acked_by_all(const State& state, const Stream& stream);

[[nodiscard]] ConsumerStats consumer_stats(const Stream& stream, const Consumer& consumer);

// What the consumer of that name, if there is one (not null), is not done with.
[[nodiscard]] UnackedPage list_unacked(const Stream& stream, const Consumer* consumer,
                                       const UnackedScan& scan);

}  // namespace hapax::core
