#include "delivery/key_explain.h"

#include <algorithm>

#include "base/format.h"
#include "delivery/workflow_check.h"

namespace hapax::delivery {

bool is_stored_under_key(const Workflow& workflow) {
  const auto is_stream = [](const EndpointSettings& each) { return each.stream() != nullptr; };
  return workflow.transform || workflow.endpoints.size() > 1 ||
         std::any_of(workflow.endpoints.begin(), workflow.endpoints.end(), is_stream);
}

std::string second_of_a_key(const Workflow& workflow) {
  constexpr std::string_view kOther = "with another payload it becomes a dead letter";
  const Guarantee guarantee = workflow.delivery.guarantee;
  const std::string ttl = span_text(workflow.delivery.dedup_ttl);
  if (is_stored_under_key(workflow)) {
    return base::format(
        "while the first one is remembered (at least {}, deduplication.ttl; in a target stream, "
        "its window), the second one is not sent; {}",
        ttl, kOther);
  }
  if (guarantee == Guarantee::kAtMostOnce || guarantee == Guarantee::kExactlyOnce) {
    return base::format(
        "for {} (deduplication.ttl) after the first one was delivered, the second one is "
        "acknowledged without being sent; {}",
        ttl, kOther);
  }
  return "both are sent, under one key, and an endpoint that recognises keys takes the second one "
         "for a repetition of the first";
}

std::string explain_key(const Workflow& workflow) {
  const KeySettings& key = workflow.delivery.key;
  const std::string_view part =
      key.form == KeyForm::kShort ? "the first 72 bits of the SHA-256" : "the SHA-256";
  if (key.format.is_default()) {
    return base::format(
        "The key of a record is {} of where it comes from and of nothing else, so it is the same "
        "on every attempt and every replay.",
        part);
  }
  return base::format(
      "The key of a record is {} of {} and the values of its fields. A record that lacks one of "
      "the fields has no key: it is a dead letter, and nothing is sent. Records with the same "
      "values count as one effect: {}.",
      part, key.format.text(), second_of_a_key(workflow));
}

}  // namespace hapax::delivery
