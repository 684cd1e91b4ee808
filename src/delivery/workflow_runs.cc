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
  if (const auto* basic = std::get_if<BasicAuth>(&target.auth)) {
    return is_stored(basic->user) || is_stored(basic->password);
  }
  const auto* bearer = std::get_if<BearerAuth>(&target.auth);
  return bearer != nullptr && is_stored(bearer->token);
}

std::optional<std::string> why_not_target(const EndpointSettings& endpoint) {
  const HttpTarget* target = endpoint.http();
  if (target == nullptr) return "into a stream";
  if (std::holds_alternative<OAuth2Auth>(target->auth)) return "with auth type oauth2";
  // What these promise of an unknown outcome needs exactly-once.
  if (std::holds_alternative<NatureProbe>(target->nature)) return "with nature probe";
  if (std::holds_alternative<NatureManual>(target->nature)) return "with nature manual";
  if (!target->tls.server_name.empty()) return "with tls.serverName";
  if (needs_stored_secret(*target)) return "with ${secret:NAME}";
  return std::nullopt;
}

std::optional<std::string> why_not_source(const Workflow& workflow) {
  if (std::holds_alternative<FromStream>(*workflow.source)) return std::nullopt;
  const auto* outbox = std::get_if<FromOutbox>(&*workflow.source);
  if (outbox == nullptr) return "whose source is HTTP";
  if (!std::holds_alternative<OwnOutboxTables>(outbox->tables)) {
    return "whose source is a table that hapax migrate did not make";
  }
  if (is_stored(outbox->database)) return "with ${secret:NAME}";
  // Lanes note nothing before a record is sent.
  const Guarantee guarantee = workflow.delivery.guarantee;
  if (guarantee == Guarantee::kAtMostOnce || guarantee == Guarantee::kExactlyOnce) {
    return base::format("from an outbox with guarantee {}", word_for(guarantee));
  }
  return std::nullopt;
}

std::optional<std::string> why_not_terms(const Workflow& workflow) {
  const Guarantee guarantee = workflow.delivery.guarantee;
  if (guarantee == Guarantee::kAtMostOnce || guarantee == Guarantee::kExactlyOnce) {
    return base::format("with guarantee {}", word_for(guarantee));
  }
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
  if (const auto why = why_not_source(workflow)) return later(*why);
  if (workflow.transform) return later("with a transform");
  if (workflow.endpoints.size() != 1) return later("with several endpoints");
  if (const auto why = why_not_target(workflow.endpoints.front())) return later(*why);
  if (const auto why = why_not_terms(workflow)) return later(*why);
  return std::nullopt;
}

}  // namespace hapax::delivery
