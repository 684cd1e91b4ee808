#include "serve/trial_json.h"

#include "wire/json_text.h"

namespace hapax::serve {

namespace {

std::string_view word_of(delivery::SendResult::Outcome outcome) {
  using Outcome = delivery::SendResult::Outcome;
  switch (outcome) {
    case Outcome::kDelivered:
      return "delivered";
    case Outcome::kRejected:
      return "rejected";
    case Outcome::kTryLater:
      return "try-later";
    case Outcome::kUnknown:
      return "unknown";
    case Outcome::kNotSent:
      return "not-sent";
    case Outcome::kGone:
      return "gone";
  }
  return "";
}

void tell_result(wire::JsonObject& out, const delivery::SendResult& result) {
  out.add("outcome", word_of(result.outcome)).add("status", result.facts.status);
  if (!result.reason.empty()) out.add("reason", result.reason);
  if (!result.facts.answer.empty()) out.bytes("answer", result.facts.answer);
}

void tell_request(wire::JsonObject& out, const workflows::TrialRequest& request) {
  out.add("endpoint", request.endpoint);
  if (!request.key.empty()) out.add("key", request.key);
  if (!request.flaw.empty()) out.add("flaw", request.flaw);
  if (!request.stream.empty()) out.add("stream", request.stream);
  if (!request.method.empty()) {
    out.add("method", request.method).add("url", request.url).pairs("headers", request.headers);
  }
  if (!request.stream.empty() || !request.method.empty()) out.bytes("body", request.body);
  if (request.result) {
    out.object("sent", [&](wire::JsonObject& sent) { tell_result(sent, *request.result); });
  }
}

}  // namespace

std::string trial_json(const workflows::Trial& trial) {
  wire::JsonObject out;
  out.list("outputs", trial.outputs, [](wire::JsonObject& one, const delivery::Reshaped& output) {
    one.bytes("payload", output.payload);
    if (output.type) one.add("type", *output.type);
    if (output.key) one.bytes("key", *output.key);
  });
  if (!trial.dead.empty()) out.add("dead_letter", trial.dead);
  return out.list("requests", trial.requests, tell_request).text();
}

}  // namespace hapax::serve
