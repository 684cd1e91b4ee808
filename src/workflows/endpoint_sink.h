// An endpoint of a workflow: one record per request, with its key, in the shape that the workflow
// declares.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <hapax/result.h>

#include "delivery/sink.h"
#include "delivery/workflow.h"
#include "envelope/content.h"
#include "ports/clock.h"
#include "webhook/sender.h"

namespace hapax::workflows {

// What all requests to an endpoint have in common: its URL, header fields, credentials and limits.
[[nodiscard]] Result<webhook::SendRequest> blank_request(const delivery::HttpTarget& target);

class EndpointSink final : public delivery::Sink {
 public:
  // The sender outlives the sink. kPreconditionFailed: a secret is not there; kInvalidArgument: a
  // request could never be sent.
  [[nodiscard]] static Result<std::unique_ptr<EndpointSink>> make(
      const delivery::DeliveryTerms& terms, const delivery::HttpTarget& target,
      webhook::Sender& sender, ports::Clock& clock);

  void start(std::span<const delivery::Outgoing* const> records, std::int64_t not_after_ms,
             Done done) override;

 private:
  EndpointSink(webhook::Sender& sender, ports::Clock& clock, webhook::SendRequest blank,
               envelope::BodyShape shape)
      : sender_(sender), clock_(clock), blank_(std::move(blank)), shape_(shape) {}

  [[nodiscard]] bool is_configured(std::string_view name) const;
  [[nodiscard]] Result<webhook::SendRequest> request_for(const delivery::Outgoing& record,
                                                         std::int64_t not_after_ms) const;

  webhook::Sender& sender_;
  ports::Clock& clock_;
  const webhook::SendRequest blank_;  // what all requests have in common
  const envelope::BodyShape shape_;
};

}  // namespace hapax::workflows
