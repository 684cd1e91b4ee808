#include "client/webhook_sink.h"

#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/format.h"
#include "client/escape.h"
#include "client/retry_after.h"

namespace hapax::client {

namespace {

using delivery::SendResult;
using webhook::SendCause;
using webhook::SendEnding;
using webhook::SendReply;
using DeliveryOutcome = SendResult::Outcome;

constexpr std::size_t kWordsMax = 300;  // of an answer, in a reason

bool rejects(int status) {
  return status >= 400 && status < 500 && status != 408 && status != 425 && status != 429;
}

SendResult answered(const SendReply& reply) {
  SendResult result;
  if (reply.status >= 200 && reply.status < 300) return result;
  result.outcome = rejects(reply.status) ? DeliveryOutcome::kRejected : DeliveryOutcome::kTryLater;
  result.answered = rejects(reply.status) || reply.status >= 500;
  result.reason = answer_in_words(reply);
  if (result.outcome == DeliveryOutcome::kTryLater) result.after = pause_asked_by(reply);
  return result;
}

}  // namespace

Duration pause_asked_by(const SendReply& reply) {
  http::Fields fields;
  if (!reply.retry_after.empty()) fields.add("Retry-After", reply.retry_after);
  if (!reply.date.empty()) fields.add("Date", reply.date);
  return retry_after(fields);
}

std::string answer_in_words(const SendReply& reply) {
  return base::format("HTTP {} {}", reply.status, reply.body.substr(0, kWordsMax));
}

SendResult send_result_of(const SendReply& reply) {
  if (reply.ending == SendEnding::kAnswered) return answered(reply);
  SendResult result{.outcome = DeliveryOutcome::kUnknown, .reason = reply.reason};
  if (reply.ending == SendEnding::kUnknown) return result;
  result.outcome = DeliveryOutcome::kTryLater;
  if (reply.cause == SendCause::kInvalid) result.outcome = DeliveryOutcome::kRejected;
  const bool held = reply.cause == SendCause::kStopped || reply.cause == SendCause::kWithheld;
  if (held) result.outcome = DeliveryOutcome::kNotSent;
  return result;
}

void WebhookSink::start(std::span<const delivery::Outgoing* const> records,
                        std::int64_t not_after_ms, Done done) {
  HAPAX_ASSERT(records.size() == 1, "an endpoint takes one record per request");
  const bool begun =
      sender_.start(request_for(*records.front(), not_after_ms),
                    [done](const SendReply& reply) { done({send_result_of(reply)}); });
  if (!begun) done({SendResult{.outcome = DeliveryOutcome::kNotSent}});
}

webhook::SendRequest WebhookSink::request_for(const delivery::Outgoing& record,
                                              std::int64_t not_after_ms) const {
  webhook::SendRequest request{.url = options_.url, .body = record.payload};
  request.total_timeout = options_.answer_time;
  request.tls.ca_file = options_.authorities;
  request.guarded = false;  // The operator of the relay names the endpoint.
  request.may_leave = [&clock = clock_, not_after_ms] { return clock.steady_ms() < not_after_ms; };
  const auto add = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) request.headers.emplace_back(name, value);
  };
  add("Content-Type", "application/octet-stream");
  add("Idempotency-Key", as_value(record.id));
  add("Hapax-Type", as_value(record.type));
  add("Hapax-Key", as_value(record.key));
  add("Hapax-Correlation-Id", as_value(record.correlation_id));
  add("Hapax-Causation-Id", as_value(record.causation_id));
  if (!options_.token.empty()) add("Authorization", "Bearer " + options_.token);
  return request;
}

}  // namespace hapax::client
