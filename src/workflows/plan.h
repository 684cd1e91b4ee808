// What the declaration of a workflow means for the source and the engine that run it. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "delivery/endpoint.h"
#include "delivery/engine.h"
#include "delivery/stream_source.h"
#include "delivery/workflow.h"
#include "ports/entropy.h"
#include "signing/delivery_key.h"

namespace hapax::workflows {

// The endpoint that is asked for unknown outcomes: the settings of the source need a probe of it.
// Null: none is.
[[nodiscard]] const delivery::HttpTarget* probed_target(const delivery::Workflow& workflow);

// The stream that the workflow reads.
[[nodiscard]] std::string source_stream_of(const delivery::Workflow& workflow);
// How what becomes of a record of that stream is called outside.
using KeyMaker = std::function<std::string(const Record&, std::uint64_t stream_uid,
                                           const signing::FanOut& fan_out)>;
[[nodiscard]] KeyMaker key_maker(const delivery::Workflow& workflow, std::string store_id);

// Of the engine's source: the stream itself, or the outbox of a workflow in two steps.
[[nodiscard]] delivery::StreamSourceSettings source_settings(const delivery::Workflow& workflow,
                                                             std::string owner);
// How records of that stream are called outside.
[[nodiscard]] delivery::StreamSource::KeyOf key_of(const delivery::Workflow& workflow,
                                                   std::string store_id);
[[nodiscard]] std::uint32_t concurrency_of(const delivery::EndpointSettings& endpoint);
// The entropy outlives the policy.
[[nodiscard]] delivery::EndpointPolicy policy_of(const delivery::Workflow& workflow,
                                                 const delivery::EndpointSettings& endpoint,
                                                 ports::Entropy& entropy);
[[nodiscard]] delivery::EngineSettings engine_settings(const delivery::Workflow& workflow);

}  // namespace hapax::workflows
