// What outboxes of databases know of an event.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <hapax/result.h>

namespace hapax::cli {

struct OutboxesToTrace {
  std::vector<std::string> from;
  std::string schema = "hapax";
  std::string prefix = "hapax_";
};

struct EventInOutbox {
  std::string json{};
  std::vector<std::pair<std::int64_t, std::string>> happened{};  // when, what
  std::string note{};                                            // where it is now
};

// Of all of these outboxes; what is not there has a note and no JSON.
[[nodiscard]] Result<std::vector<EventInOutbox>> trace_in_outboxes(const OutboxesToTrace& outboxes,
                                                                   const std::string& id);

}  // namespace hapax::cli
