// What the declaration of a workflow means for the source and the engine that run it. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <hapax/result.h>

#include "delivery/endpoint.h"
#include "delivery/engine.h"
#include "delivery/stream_source.h"
#include "delivery/workflow.h"
#include "ports/entropy.h"
#include "signing/delivery_key.h"
#include "workflows/source_signature.h"

namespace hapax::workflows {

// The endpoint that is asked for unknown outcomes: the settings of the source need a probe of it.
// Null: none is.
[[nodiscard]] const delivery::HttpTarget* probed_target(const delivery::Workflow& workflow);

// The stream that the workflow reads. REQUIRES: it reads one (source_stream()).
[[nodiscard]] std::string source_stream_of(const delivery::Workflow& workflow);
// As the header that says so has it; empty: none does.
[[nodiscard]] std::string_view type_of(const Record& record);
// V9. `payload` is that of the record; a row is marked.
[[nodiscard]] Status check_record(const SharedVerifier& verifier, const Record& record,
                                  std::string_view payload, bool is_row);
// What its publisher signed, if it did.
[[nodiscard]] SignedEvent signed_event_of(const Record& record, std::string_view payload);
// How what becomes of a record of that stream is called outside. The payload is that of the record,
// wherever it lies by now. An error: the record has no key, and is a dead letter for that reason.
using KeyMaker =
    std::function<Result<std::string>(const Record&, std::string_view payload,
                                      std::uint64_t stream_uid, const signing::FanOut& fan_out)>;
[[nodiscard]] KeyMaker key_maker(const delivery::Workflow& workflow, std::string store_id);

// Nothing: the workflow keeps no log of its attempts.
[[nodiscard]] std::optional<delivery::AttemptLogSettings> attempt_log_of(
    const delivery::Workflow& workflow);

// Of the engine's source: the stream itself, or the outbox of a workflow in two steps.
[[nodiscard]] delivery::StreamSourceSettings source_settings(const delivery::Workflow& workflow,
                                                             std::string owner);
// How records of that stream are called outside.
[[nodiscard]] delivery::StreamSource::KeyOf key_of(const delivery::Workflow& workflow,
                                                   std::string store_id,
                                                   SharedVerifier verifier = {});
[[nodiscard]] std::uint32_t concurrency_of(const delivery::EndpointSettings& endpoint);
// The entropy outlives the policy.
[[nodiscard]] delivery::EndpointPolicy policy_of(const delivery::Workflow& workflow,
                                                 const delivery::EndpointSettings& endpoint,
                                                 ports::Entropy& entropy);
// Of what takes rows into the workflow's own stream.
[[nodiscard]] delivery::EndpointPolicy intake_policy();
[[nodiscard]] delivery::EngineSettings intake_settings();
[[nodiscard]] delivery::EngineSettings engine_settings(const delivery::Workflow& workflow);

}  // namespace hapax::workflows
