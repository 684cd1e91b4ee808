// From what people know a record by to the keys under which a workflow sends it.
#pragma once

#include <optional>
#include <set>
#include <string>

#include <hapax/store.h>

#include "delivery/workflow.h"

namespace hapax::workflows {

// Of a transform with more outputs the later ones are not among them.
inline constexpr std::uint32_t kOutputsLookedFor = 64;

// The delivery keys of the record with that message id, or event id; none if they are not made of
// ids of this store.
[[nodiscard]] Result<std::set<std::string>> delivery_keys_of(const delivery::Workflow& workflow,
                                                             const std::string& id, Store& store);

// The stream whose records are attempted; none: rows of a database are.
[[nodiscard]] std::optional<std::string> attempted_stream_of(const delivery::Workflow& workflow);

}  // namespace hapax::workflows
