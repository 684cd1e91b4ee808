#include <utility>

#include "base/time_text.h"
#include "config/workflow_maker.h"

namespace hapax::config {

namespace {

// What is empty is not written.
std::optional<std::string> if_any(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

WrittenSource write_source(const delivery::WorkflowSource& source) {
  WrittenSource out;
  out.type = static_cast<delivery::SourceType>(source.index());
  if (const auto* stream = std::get_if<delivery::FromStream>(&source)) out.stream = stream->stream;
  const auto* outbox = std::get_if<delivery::FromOutbox>(&source);
  if (outbox == nullptr) return out;
  out.database = outbox->database.written();
  if (const auto* own = std::get_if<delivery::OwnOutboxTables>(&outbox->tables)) {
    out.schema = if_any(own->schema);
    out.prefix = if_any(own->prefix);
  } else {
    const auto& mapped = std::get<delivery::MappedOutboxTable>(outbox->tables);
    out.table = mapped.table;
    out.columns = mapped.columns;
  }
  return out;
}

WrittenAuth write_auth(const delivery::EndpointAuth& auth) {
  WrittenAuth out;
  out.type = static_cast<delivery::AuthType>(auth.index());
  if (const auto* basic = std::get_if<delivery::BasicAuth>(&auth)) {
    out.user = basic->user.written();
    out.password = basic->password.written();
  } else if (const auto* bearer = std::get_if<delivery::BearerAuth>(&auth)) {
    out.token = bearer->token.written();
  } else if (const auto* oauth = std::get_if<delivery::OAuth2Auth>(&auth)) {
    out.token_url = oauth->token_url.text();
    out.client_id = oauth->client_id.written();
    out.client_secret = oauth->client_secret.written();
    out.scope = if_any(oauth->scope);
  } else if (const auto* mutual = std::get_if<delivery::MutualTlsAuth>(&auth)) {
    out.certificate = mutual->certificate_file;
    out.key = mutual->key_file;
  }
  return out;
}

std::optional<std::string> write_moment(const std::optional<Time>& time) {
  return time ? std::optional(base::rfc3339_ms(*time)) : std::nullopt;
}

void write_exchange(WrittenEndpoint& out, const delivery::HttpTarget& target) {
  for (const delivery::SigningTerm& term : target.signing) {
    out.signing_keys.push_back(
        {term.key.written(), write_moment(term.from), write_moment(term.until)});
  }
  if (const auto* event = std::get_if<delivery::CloudEventBody>(&target.body)) {
    out.body = event->structured ? delivery::BodyWord::kCloudEventStructured
                                 : delivery::BodyWord::kCloudEventBinary;
    out.cloud_event = {event->source, event->subject};
  } else if (std::holds_alternative<delivery::EnvelopeBody>(target.body)) {
    out.body = delivery::BodyWord::kEnvelope;
  } else if (std::holds_alternative<delivery::PayloadBody>(target.body)) {
    out.body = delivery::BodyWord::kPayload;
  }
  for (const delivery::StatusRule& rule : target.on_status) {
    out.on_status[rule.statuses()] = rule.becomes;
  }
}

void write_http(WrittenEndpoint& out, const delivery::HttpTarget& target) {
  out.url = target.url.text();
  out.method = target.method;
  for (const delivery::EndpointHeader& header : target.headers) {
    out.headers[header.name] = header.value.written();
  }
  out.timeouts = {target.timeouts.connect, target.timeouts.request};
  out.tls = {target.tls.verify, if_any(target.tls.ca_file), if_any(target.tls.server_name)};
  out.auth = write_auth(target.auth);
  if (const auto* probe = std::get_if<delivery::NatureProbe>(&target.nature)) {
    out.nature = delivery::NatureWord::kProbe;
    out.status_url = probe->status_url.text();
  } else if (std::holds_alternative<delivery::NatureIdempotent>(target.nature)) {
    out.nature = delivery::NatureWord::kIdempotent;
  } else if (std::holds_alternative<delivery::NatureManual>(target.nature)) {
    out.nature = delivery::NatureWord::kManual;
  }
  write_exchange(out, target);
}

WrittenEndpoint write_endpoint(const delivery::EndpointSettings& endpoint) {
  WrittenEndpoint out;
  out.name = if_any(endpoint.name);
  out.event_types = endpoint.event_types;
  out.concurrency = endpoint.concurrency;
  out.rate = endpoint.rate;
  const delivery::BreakerTerms& breaker = endpoint.breaker;
  out.breaker = {breaker.failures, breaker.pause, breaker.pause_max, breaker.probes};
  if (const delivery::HttpTarget* http = endpoint.http()) write_http(out, *http);
  if (const delivery::StreamTarget* stream = endpoint.stream()) out.stream = stream->stream;
  return out;
}

WrittenRetries write_retries(const delivery::RetryPolicy& policy) {
  const auto ms = [](Duration span) { return static_cast<std::uint64_t>(span.count()); };
  WrittenRetries out;
  out.enabled = policy.attempts_max > 1;
  out.max_attempts = policy.attempts_max;
  out.give_up_after = policy.give_up_after;
  if (const auto* list = std::get_if<delivery::BackoffList>(&policy.backoff)) {
    for (const Duration pause : list->pauses) out.backoff_list_ms.push_back(ms(pause));
  } else {
    const auto& doubling = std::get<delivery::ExponentialBackoff>(policy.backoff);
    out.backoff_ms = ms(doubling.first);
    out.backoff_max_ms = ms(doubling.most);
  }
  return out;
}

WrittenDelivery write_terms(const delivery::DeliveryTerms& terms) {
  WrittenDelivery out;
  out.guarantee = terms.guarantee;
  out.mechanism = terms.mechanism;
  out.deduplication.ttl = terms.dedup_ttl;
  out.retries = write_retries(terms.retries);
  out.idempotency_key = {terms.key.format.text(), terms.key.hash, terms.key.form,
                         terms.key.in_payload};
  out.client_guidance = terms.client_guidance;
  out.documentation = {terms.documentation.deduplication_required,
                       terms.documentation.sdk_available, if_any(terms.documentation.example_code)};
  return out;
}

WrittenOrdering write_ordering(const delivery::Ordering& ordering) {
  using delivery::FailureWord;
  WrittenOrdering out;
  out.key = ordering.key;
  out.on_failure = FailureWord::kPark;
  if (std::holds_alternative<delivery::BlockKey>(ordering.on_failure)) {
    out.on_failure = FailureWord::kBlock;
  }
  if (const auto* wait = std::get_if<delivery::BlockKeyFor>(&ordering.on_failure)) {
    out.on_failure = FailureWord::kBlockFor;
    out.block_for = wait->time;
  }
  return out;
}

}  // namespace

WrittenWorkflow write_workflow(const delivery::Workflow& workflow) {
  WrittenWorkflow out;
  out.id = workflow.id.text();
  out.tenant = if_any(workflow.tenant);
  out.enabled = workflow.enabled;
  if (workflow.source) out.source = write_source(*workflow.source);
  for (const delivery::SecretText& key : workflow.source_keys) {
    out.source.signature_keys.push_back({key.written()});
  }
  if (workflow.transform) out.transform = {workflow.transform->jq, workflow.transform->numbers};
  const auto& endpoints = workflow.endpoints;
  if (endpoints.size() == 1 && endpoints[0].name.empty()) {
    out.endpoint = write_endpoint(endpoints[0]);
  } else {
    for (const auto& one : endpoints) out.endpoints.push_back(write_endpoint(one));
  }
  out.delivery = write_terms(workflow.delivery);
  if (workflow.ordering) out.ordering = write_ordering(*workflow.ordering);
  out.dead_letter_keep = workflow.dead_letter_keep;
  out.retention = {workflow.retention.delivered, workflow.retention.attempts,
                   workflow.retention.attempt_bytes};
  // Written, it would shorten what the database of an outbox keeps.
  const auto& source = workflow.source;
  const bool outbox = source && std::holds_alternative<delivery::FromOutbox>(*source);
  if (outbox && !workflow.retention.shortens_outbox) out.retention.delivered.reset();
  return out;
}

}  // namespace hapax::config
