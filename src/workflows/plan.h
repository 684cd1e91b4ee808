// What the declaration of a workflow means for the source and the engine that run it. Pure.
#pragma once

#include <string>

#include "delivery/endpoint.h"
#include "delivery/engine.h"
#include "delivery/stream_source.h"
#include "delivery/workflow.h"
#include "ports/entropy.h"

namespace hapax::workflows {

// The endpoint that is asked for unknown outcomes: the settings of the source need a probe of it.
// Null: none is.
[[nodiscard]] const delivery::HttpTarget* probed_target(const delivery::Workflow& workflow);
[[nodiscard]] delivery::StreamSourceSettings source_settings(const delivery::Workflow& workflow,
                                                             std::string owner);
// How records of the source stream are called outside.
[[nodiscard]] delivery::StreamSource::KeyOf key_of(const delivery::Workflow& workflow,
                                                   std::string store_id);
[[nodiscard]] std::uint32_t concurrency_of(const delivery::EndpointSettings& endpoint);
// The entropy outlives the policy.
[[nodiscard]] delivery::EndpointPolicy policy_of(const delivery::Workflow& workflow,
                                                 const delivery::EndpointSettings& endpoint,
                                                 ports::Entropy& entropy);
[[nodiscard]] delivery::EngineSettings engine_settings(const delivery::Workflow& workflow);

}  // namespace hapax::workflows
