// A workflow in two steps: what becomes of a record on its way through the workflow's outbox, and
// how it is read back there. Pure.
//
// The outbox holds one record for each output and endpoint. Its message id is the key of the
// delivery; its first header tells the endpoint, the time of the source record, and how often that
// was replayed; the other headers are those that the endpoint is to get.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "delivery/stager.h"
#include "delivery/stream_source.h"
#include "delivery/workflow.h"
#include "workflows/source_signature.h"

namespace hapax::workflows {

// Whether it has an outbox: endpoints that are no streams.
[[nodiscard]] bool has_outbox(const delivery::Workflow& workflow);

[[nodiscard]] delivery::StagerSettings stager_settings(const delivery::Workflow& workflow,
                                                       std::string owner);
[[nodiscard]] delivery::Stager::Compose compose_of(const delivery::Workflow& workflow,
                                                   std::string store_id,
                                                   SharedVerifier verifier = {});
// Where a record of the outbox is to go. Nothing: it was not put there by its workflow.
struct StagedOrigin {
  std::string endpoint;
  Time time{};               // of the source record
  std::uint32_t replay = 0;  // how often that had been replayed by then
};
[[nodiscard]] std::optional<StagedOrigin> staged_origin_of(const Record& record);
// Reads back what compose_of() wrote. Endpoints that are no streams count from 0, as declared.
[[nodiscard]] delivery::StreamSource::Route route_from_outbox(const delivery::Workflow& workflow);

}  // namespace hapax::workflows
