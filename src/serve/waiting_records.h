// What waits of a workflow in the store, and what was given up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <hapax/result.h>
#include <hapax/store.h>

#include "delivery/workflow.h"

namespace hapax::serve {

// The stream that the workflow consumes; nothing: its records are elsewhere.
[[nodiscard]] std::optional<std::string> consumed_stream(const delivery::Workflow& workflow);

// Nothing: there is no such stream.
[[nodiscard]] Result<std::optional<StreamStats>> find_stream(Store& store, std::string_view stream);

struct WaitingRecords {
  std::uint64_t waiting = 0;  // not acknowledged
  std::uint64_t in_flight = 0;
};
// Before the consumer has begun it will take every record that is there.
void count_waiting(WaitingRecords& records, const StreamStats& stream, std::string_view consumer);

}  // namespace hapax::serve
