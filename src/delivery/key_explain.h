// What the key of deliveries is made of, in words.
#pragma once

#include <string>

#include "delivery/workflow.h"

namespace hapax::delivery {

// Its records are stored under their keys, in an outbox of its own or in target streams.
[[nodiscard]] bool is_stored_under_key(const Workflow& workflow);
// What happens to the second of two records that have one key, because a format of their own makes
// no difference between them. A sentence without its full stop.
[[nodiscard]] std::string second_of_a_key(const Workflow& workflow);
// Sentences.
[[nodiscard]] std::string explain_key(const Workflow& workflow);

}  // namespace hapax::delivery
