// Streams that belong to workflows. Their names begin with that of the workflow, so that all that
// one workflow has in the store can lie together.
#pragma once

#include <string>
#include <string_view>

#include <hapax/result.h>
#include <hapax/store.h>

#include "delivery/workflow.h"

namespace hapax::workflows {

// What is posted to the workflow is kept there.
[[nodiscard]] std::string events_stream_of(const delivery::WorkflowId& id);
// Ids are known for as long as the workflow remembers keys. An event stays until it was given up
// at the latest, and as long after that as delivered records and dead letters are kept.
[[nodiscard]] StreamSettings events_settings_of(const delivery::Workflow& workflow);

// A stream that is there with other settings gets these; a change that would forget something is
// refused, as it is for everybody.
[[nodiscard]] Status make_stream(Store& store, std::string_view stream,
                                 const StreamSettings& settings);

}  // namespace hapax::workflows
