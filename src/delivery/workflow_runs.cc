#include "delivery/workflow_runs.h"

#include <algorithm>

#include "base/format.h"

namespace hapax::delivery {

namespace {

constexpr std::string_view kLater = "this version does not run workflows ";

bool is_stored(const SecretText& text) {
  const auto& pieces = text.pieces();
  return std::any_of(pieces.begin(), pieces.end(), [](const SecretText::Piece& piece) {
    const auto* reference = std::get_if<SecretReference>(&piece);
    return reference != nullptr && reference->place == SecretReference::Place::kStored;
  });
}

bool needs_stored_secret(const HttpTarget& target) {
  const bool header = std::any_of(target.headers.begin(), target.headers.end(),
                                  [](const EndpointHeader& one) { return is_stored(one.value); });
  if (header) return true;
  const bool signing = std::any_of(target.signing.begin(), target.signing.end(),
                                   [](const SigningTerm& one) { return is_stored(one.key); });
  if (signing) return true;
  if (const auto* basic = std::get_if<BasicAuth>(&target.auth)) {
    return is_stored(basic->user) || is_stored(basic->password);
  }
  if (const auto* oauth = std::get_if<OAuth2Auth>(&target.auth)) {
    return is_stored(oauth->client_id) || is_stored(oauth->client_secret);
  }
  const auto* bearer = std::get_if<BearerAuth>(&target.auth);
  return bearer != nullptr && is_stored(bearer->token);
}

std::optional<std::string> why_not_target(const EndpointSettings& endpoint) {
  const HttpTarget* target = endpoint.http();
  if (target == nullptr) return "into a stream";
  if (needs_stored_secret(*target)) return "with ${secret:NAME}";
  return std::nullopt;
}

// What the nature of an endpoint promises of an unknown outcome: somebody is asked about it.
bool needs_outcomes(const HttpTarget& target) {
  return std::holds_alternative<NatureManual>(target.nature) ||
         std::holds_alternative<NatureProbe>(target.nature);
}

std::optional<std::string> why_not_nature(const Workflow& workflow) {
  const HttpTarget* target = workflow.endpoints.front().http();
  const Guarantee guarantee = workflow.delivery.guarantee;
  if (target == nullptr || guarantee == Guarantee::kExactlyOnce || !needs_outcomes(*target)) {
    return std::nullopt;
  }
  const bool manual = std::holds_alternative<NatureManual>(target->nature);
  // One attempt, which stays unknown: a person is all there is.
  if (manual && guarantee == Guarantee::kAtMostOnce) return std::nullopt;
  return base::format("with nature {} and guarantee {}", manual ? "manual" : "probe",
                      word_for(guarantee));
}

std::optional<std::string> why_not_terms(const Workflow& workflow) {
  if (const auto why = why_not_nature(workflow)) return why;
  if (workflow.delivery.key.format.fields() != KeyFormat().fields()) {
    return "with an idempotencyKey.format of their own";
  }
  const auto on_failure = workflow.order().on_failure;
  if (!std::holds_alternative<ParkRecord>(on_failure)) return "with ordering.onFailure block";
  return std::nullopt;
}

}  // namespace

std::optional<std::string> why_not_run(const Workflow& workflow) {
  if (workflow.draft()) return "is a draft: it lacks a source or an endpoint";
  if (!workflow.enabled) return "is not enabled";
  const auto later = [](std::string_view what) {
    return base::format("is declared only: {}{}", kLater, what);
  };
  if (std::holds_alternative<FromOutbox>(*workflow.source)) {
    return later("whose source is an outbox");
  }
  if (workflow.transform) return later("with a transform");
  if (workflow.endpoints.size() != 1) return later("with several endpoints");
  if (const auto why = why_not_target(workflow.endpoints.front())) return later(*why);
  if (const auto why = why_not_terms(workflow)) return later(*why);
  return std::nullopt;
}

}  // namespace hapax::delivery
