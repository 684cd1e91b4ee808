#include "delivery/workflow_runs.h"

#include <algorithm>

#include "base/format.h"

namespace hapax::delivery {

namespace {

constexpr std::string_view kLater = "this version does not run workflows ";

std::optional<std::string> why_not_source(const Workflow& workflow) {
  const auto is_stored = [](const SecretText& key) {
    return key.refers_to(SecretReference::Place::kStored);
  };
  if (std::any_of(workflow.source_keys.begin(), workflow.source_keys.end(), is_stored)) {
    return "with ${secret:NAME} in source.signature";
  }
  const auto* outbox = std::get_if<FromOutbox>(&*workflow.source);
  if (outbox == nullptr) return std::nullopt;
  if (outbox->database.refers_to(SecretReference::Place::kStored)) {
    return "with ${secret:NAME} in source.database";
  }
  return std::nullopt;
}

// What nature manual and probe promise of an unknown outcome needs a guarantee that keeps it.
std::optional<std::string> why_not_nature(Guarantee guarantee, const EndpointNature& nature) {
  const bool manual = std::holds_alternative<NatureManual>(nature);
  const bool probe = std::holds_alternative<NatureProbe>(nature);
  if (!manual && !probe) return std::nullopt;
  if (guarantee == Guarantee::kExactlyOnce) return std::nullopt;
  // One attempt, which stays unknown: a person is all there is.
  if (manual && guarantee == Guarantee::kAtMostOnce) return std::nullopt;
  return base::format("with nature {} and guarantee {}", manual ? "manual" : "probe",
                      word_for(guarantee));
}

// The attempts of a workflow are of one kind, so its endpoints must agree on what becomes of those
// with an unknown outcome; and one endpoint can be asked.
std::optional<std::string> why_not_natures(const Workflow& workflow) {
  const Guarantee guarantee = workflow.delivery.guarantee;
  const HttpTarget* first = nullptr;
  for (const EndpointSettings& endpoint : workflow.endpoints) {
    const HttpTarget* target = endpoint.http();
    if (target == nullptr) continue;
    if (const auto why = why_not_nature(guarantee, target->nature)) return why;
    if (first == nullptr) {
      first = target;
      continue;
    }
    if (guarantee != Guarantee::kExactlyOnce) continue;
    const bool repeats = std::holds_alternative<NatureIdempotent>(first->nature);
    if (std::holds_alternative<NatureIdempotent>(target->nature) != repeats) {
      return "with endpoints of different nature and guarantee exactly-once";
    }
    if (std::holds_alternative<NatureProbe>(first->nature) ||
        std::holds_alternative<NatureProbe>(target->nature)) {
      return "with nature probe and several endpoints";
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> why_not_run(const Workflow& workflow) {
  if (workflow.draft()) return "is a draft: it lacks a source or an endpoint";
  if (!workflow.enabled) return "is not enabled";
  const auto later = [](std::string_view what) {
    return base::format("is declared only: {}{}", kLater, what);
  };
  if (const auto why = why_not_source(workflow)) return later(*why);
  if (const auto why = why_not_natures(workflow)) return later(*why);
  return std::nullopt;
}

}  // namespace hapax::delivery
