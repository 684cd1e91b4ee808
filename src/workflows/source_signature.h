// Whether a record is as its publisher signed it, for workflows that say source.signature.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>

#include <hapax/event_signature.h>
#include <hapax/result.h>

#include "delivery/workflow.h"

namespace hapax::workflows {

// Null: records need no signature.
using SharedVerifier = std::shared_ptr<const EventVerifier>;

// An error as of reveal() and EventVerifier::make(), within source.signature.
[[nodiscard]] Result<SharedVerifier> make_verifier(const delivery::Workflow& workflow);

// V9: kInvalidArgument if the record must not be sent.
[[nodiscard]] Status check_signature(const SharedVerifier& verifier, const SignedEvent& event,
                                     std::span<const std::pair<std::string, std::string>> headers);

// Whether a header of that name is a signature, which says nothing of what is made of the record.
[[nodiscard]] bool is_signature_header(std::string_view name);

}  // namespace hapax::workflows
