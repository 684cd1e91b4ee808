// An endpoint that takes one record per request, many requests at once.
#pragma once

#include <cstdint>
#include <string>

#include <hapax/time.h>

#include "delivery/sink.h"
#include "ports/clock.h"
#include "webhook/sender.h"

namespace hapax::client {

// What became of a record whose request ended so. 2xx is delivered; 4xx other than 408, 425 and 429
// rejects the record; a 5xx is an endpoint that fails; all else means that the endpoint is
// unavailable, or that nobody knows.
[[nodiscard]] delivery::SendResult send_result_of(const webhook::SendReply& reply);

// For how long an answer asks to be left alone, by Retry-After; 0 = it does not.
[[nodiscard]] Duration pause_asked_by(const webhook::SendReply& reply);

// An answer in words, for people: "HTTP 422 …".
[[nodiscard]] std::string answer_in_words(const webhook::SendReply& reply);

struct EndpointOptions {
  std::string url;
  std::string token{};        // sent as a bearer token; empty = none
  std::string authorities{};  // PEM file; empty = those of this machine
  Duration answer_time{10'000};
};

// POST with the payload as the body and Idempotency-Key = the message id.
class WebhookSink final : public delivery::Sink {
 public:
  // The sender outlives the sink.
  WebhookSink(webhook::Sender& sender, ports::Clock& clock, EndpointOptions options)
      : sender_(sender), clock_(clock), options_(std::move(options)) {}

  void start(std::span<const delivery::Outgoing* const> records, std::int64_t not_after_ms,
             Done done) override;

 private:
  [[nodiscard]] webhook::SendRequest request_for(const delivery::Outgoing& record,
                                                 std::int64_t not_after_ms) const;

  webhook::Sender& sender_;
  ports::Clock& clock_;
  const EndpointOptions options_;
};

}  // namespace hapax::client
