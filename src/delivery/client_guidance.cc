#include "delivery/client_guidance.h"

#include <algorithm>

#include "base/format.h"
#include "delivery/workflow_check.h"

namespace hapax::delivery {

namespace {

constexpr std::string_view kRecogniseKey =
    "Store the key in the transaction that does the work, and answer a request whose key is "
    "already stored with success (2xx) and without doing the work again. ";

const HttpTarget* first_http(const Workflow& workflow) {
  for (const EndpointSettings& endpoint : workflow.endpoints) {
    if (endpoint.http() != nullptr) return endpoint.http();
  }
  return nullptr;
}

// In the body it is where nobody said that it is not.
std::string where_key_is(const Workflow& workflow, const HttpTarget& target) {
  const KeySettings& key = workflow.delivery.key;
  const bool usual = std::holds_alternative<BodyNotSaid>(target.body) &&
                     workflow.delivery.guarantee != Guarantee::kAtLeastOnce && key.in_payload;
  const bool body = usual || std::holds_alternative<EnvelopeBody>(target.body);
  return base::format(
      "Each request has the key of its record in the header fields webhook-id and "
      "Idempotency-Key{}. ",
      body ? ", and as idempotencyKey in its body" : "");
}

std::string_view after_lost_answer(const EndpointNature& nature) {
  if (std::holds_alternative<NatureIdempotent>(nature)) {
    return "the request comes again under the same key";
  }
  if (std::holds_alternative<NatureProbe>(nature)) {
    return "Hapax asks your status URL for the key, and sends again if it is not known there";
  }
  return "a person decides whether the request is sent again";
}

std::string guarantee_text(const Workflow& workflow, const HttpTarget& target) {
  switch (workflow.delivery.guarantee) {
    case Guarantee::kAtMostOnce:
      return "It delivers at most once: nothing is sent twice, and a record can be missing. "
             "Compare "
             "with the source where that matters. ";
    case Guarantee::kAtLeastOnce:
      return "It delivers at least once: a request can arrive again when it is retried. Make the "
             "work harmless to repeat, for example by an upsert instead of an insert. ";
    case Guarantee::kIdempotentKeys:
      return base::format(
          "It delivers under idempotent keys. {}A request can arrive more than once, always under "
          "the same key. {}",
          where_key_is(workflow, target), kRecogniseKey);
    case Guarantee::kExactlyOnce:
      break;
  }
  return base::format(
      "It delivers under exactly-once: an attempt is on disk before it is sent, and none begins "
      "while the outcome of another is not known. {}Over HTTP an answer can still be lost after "
      "you have done the work; then {}. {}",
      where_key_is(workflow, target), after_lost_answer(target.nature), kRecogniseKey);
}

std::string documentation_text(const ClientDocumentation& told) {
  std::string text;
  if (told.sdk_available == true) {
    text +=
        "Libraries verify requests for you: hapax/webhook.h in C++, and those of Standard Webhooks "
        "in other languages. ";
  }
  if (!told.example_code.empty()) base::append_format(text, "Examples: {} ", told.example_code);
  return text;
}

}  // namespace

std::string client_guidance(const Workflow& workflow) {
  const DeliveryTerms& terms = workflow.delivery;
  if (!terms.client_guidance) return {};
  std::string text = base::format("This is about the workflow '{}'. ", workflow.id.text());
  if (const HttpTarget* target = first_http(workflow)) {
    text += guarantee_text(workflow, *target);
    if (terms.guarantee != Guarantee::kAtMostOnce) {
      base::append_format(
          text, "Remember for at least {}, and for {} more if dead letters are replayed. ",
          span_text(terms.retries.give_up_after), span_text(workflow.dead_letter_keep));
    }
    if (!target->signing.empty()) {
      text += "Requests are signed (Standard Webhooks): verify webhook-signature before you act. ";
    }
  } else {
    text +=
        "It stores records in a stream. A reader that acts outside of the store must make its act "
        "harmless to repeat, because it can end between the act and its acknowledgement. ";
  }
  text += documentation_text(terms.documentation);
  text.pop_back();
  return text;
}

}  // namespace hapax::delivery
