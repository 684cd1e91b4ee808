// What the rules of consumers share among themselves: consumers.cc, receive.cc, receipts.cc,
// redrive.cc. Nobody else includes it.
#pragma once

#include <string_view>

#include "core/turn.h"

namespace hapax::core {

// Makes a consumer that does not exist yet, unless a limit or its own settings forbid it.
Result<Consumer*> make_consumer(Turn& turn, const Stream& stream, std::string_view name,
                                const ConsumerSettings& settings);

// Where a record that is copied came from. One that was redriven before keeps where it came from
// first, and how often.
Result<Lineage> first_lineage(Turn& turn, const Stream& stream, Sequence sequence);

// The last attempt of a record failed: it becomes a dead letter. C6: the dead letter and the end of
// the record for this consumer become true together, so a record is never in both places and never
// in none. A7: without room for it nothing happens and the record stays (kQuotaExceeded). After
// another error the turn is rolled back by whoever runs it, as for every refusal.
Status bury(Turn& turn, const Stream& stream, const Consumer& consumer, Sequence sequence,
            AttemptEnding ending, std::string_view reason);

}  // namespace hapax::core
