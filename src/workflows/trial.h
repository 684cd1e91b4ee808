// One sample record on its way through a workflow. Nothing of it is stored; whether it is sent,
// once, is for the caller to say.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hapax/result.h>
#include <hapax/time.h>
#include <hapax/verdicts.h>

#include "delivery/sink.h"
#include "delivery/transforming.h"
#include "delivery/workflow.h"
#include "workflows/endpoint_caller.h"

namespace hapax::workflows {

// What would go to one endpoint. Secrets are hidden in it.
struct TrialRequest {
  std::string endpoint{};  // its name; empty: the only one
  std::string stream{};    // it would be stored there; empty: it is a request
  std::string key{};       // of the delivery
  std::string method{};
  std::string url{};
  std::vector<std::pair<std::string, std::string>> headers{};
  std::string body{};
  std::string flaw{};                            // why nothing would go out; empty: it would
  std::optional<delivery::SendResult> result{};  // of what was sent
};

struct Trial {
  std::vector<delivery::Reshaped> outputs{};  // of the transform, or the record itself
  std::string dead{};                         // why the record would be a dead letter
  std::vector<TrialRequest> requests{};
};

struct TrialPorts {
  EndpointReach reach;                // of the workflow
  delivery::Transforming* transform;  // null: the workflow has none
  std::string store_id;
  std::uint64_t stream_uid = 0;  // of the source stream
  bool send = false;
};

// A trial occupies a thread that answers others, too, and its answer is in memory.
inline constexpr std::size_t kTrialBytesMax = std::size_t{32} << 20;  // of all its requests
inline constexpr Duration kTrialSpan{60'000};  // no request begins after that, or goes on

// Waits for the transform, and for answers if it sends. kLimitExceeded: more than kTrialBytesMax.
// Signatures of publishers are not checked.
[[nodiscard]] Result<Trial> try_workflow(const delivery::Workflow& workflow, const Record& sample,
                                         const TrialPorts& ports);

}  // namespace hapax::workflows
