// What an answer of an endpoint means, as its declaration says. Pure.
#pragma once

#include <span>

#include "delivery/endpoint_settings.h"
#include "delivery/sink.h"
#include "webhook/exchange.h"

namespace hapax::workflows {

// What became of a record whose request ended so. Without a rule for its status an answer means
// what it means to client::send_result_of, and 410 that the endpoint is gone.
[[nodiscard]] delivery::SendResult result_of(const webhook::SendReply& reply,
                                             std::span<const delivery::StatusRule> rules);

}  // namespace hapax::workflows
