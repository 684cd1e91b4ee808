#include "delivery/workflow_check.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/format.h"
#include "base/span.h"
#include "base/time_text.h"
#include "delivery/key_explain.h"

namespace hapax::delivery {

namespace {

using Weight = WorkflowFinding::Weight;

template <class Kind>
bool comes_from(const Workflow& workflow) {
  return workflow.source && std::holds_alternative<Kind>(*workflow.source);
}

const std::string* source_stream(const Workflow& workflow) {
  if (!workflow.source) return nullptr;
  const auto* from = std::get_if<FromStream>(&*workflow.source);
  return from == nullptr ? nullptr : &from->stream;
}

// The same text for the same outbox, if there is one; nothing for a workflow that will not run.
std::optional<std::string> outbox_of(const Workflow& workflow) {
  if (workflow.draft() || !workflow.enabled || !comes_from<FromOutbox>(workflow)) return {};
  const FromOutbox& from = std::get<FromOutbox>(*workflow.source);
  std::string text = from.database.written();
  if (const auto* own = std::get_if<OwnOutboxTables>(&from.tables)) {
    return base::format("{} {} {}", text, own->schema, own->prefix);
  }
  return base::format("{} table {}", text, std::get<MappedOutboxTable>(from.tables).table);
}

class WorkflowCheck {
 public:
  WorkflowCheck(const Workflow& workflow, const WorkflowSurroundings& around)
      : workflow_(workflow), terms_(workflow.delivery), around_(around) {}

  std::vector<WorkflowFinding> run() && {
    whole();
    key_fields();
    key_form();
    mechanism();
    retries();
    source();
    for (std::size_t i = 0; i < workflow_.endpoints.size(); ++i) endpoint(i);
    names_of_endpoints();
    loops();
    return std::move(findings_);
  }

 private:
  void refuse(std::string path, std::string sentence) {
    findings_.push_back({Weight::kRefuse, std::move(path), std::move(sentence)});
  }
  void warn(std::string path, std::string sentence) {
    findings_.push_back({Weight::kWarn, std::move(path), std::move(sentence)});
  }
  [[nodiscard]] bool over_http() const {
    return std::any_of(workflow_.endpoints.begin(), workflow_.endpoints.end(),
                       [](const EndpointSettings& endpoint) { return endpoint.http() != nullptr; });
  }
  // The longest that one attempt takes, over all endpoints.
  [[nodiscard]] Duration attempt_max() const {
    Duration most{0};
    for (const EndpointSettings& endpoint : workflow_.endpoints) {
      if (const HttpTarget* http = endpoint.http()) most = std::max(most, http->timeouts.request);
    }
    return most;
  }

  void whole() {
    if (around_.index != nullptr && around_.index->first_like(workflow_) != &workflow_) {
      refuse("id", base::format("'{}' is declared twice; a workflow has an id of its own",
                                workflow_.id.text()));
    }
    if (!workflow_.draft()) return;
    const bool both = !workflow_.source && workflow_.endpoints.empty();
    warn(workflow_.source ? "endpoint" : "source",
         base::format("{} missing: the workflow is a draft, and does not run",
                      both ? "and endpoint are" : "is"));
  }

  // A4: the key tells one change from another. Records with one key are one effect: the second is
  // not sent, or is taken for a repetition.
  void key_fields() {
    const KeyFormat& format = terms_.key.format;
    if (format.is_default()) return;
    if (terms_.guarantee == Guarantee::kAtLeastOnce && !is_stored_under_key(workflow_)) return;
    const std::string path = format.has_more_than_fields() ? "delivery.idempotencyKey.format"
                                                           : "delivery.deduplication.keyFields";
    const bool by_id = format.has(KeyField::kPrimaryKey);
    if (!by_id && !format.has_record_part()) {
      refuse(path,
             base::format("lacks primaryKey, and has no field of the record in its place: all "
                          "records of a table would have one key, and all but the first "
                          "would be swallowed for the ttl of {}",
                          span_text(terms_.dedup_ttl)));
      return;
    }
    if (format.has(KeyField::kChangeVersion)) return change_version(path, by_id);
    if (!by_id) {
      warn(path, base::format("makes no difference between records with the same {}: {}",
                              fields_text(format), second_of_a_key(workflow_)));
    } else if (!workflow_.source && !format.has_record_part()) {
      refuse(path, base::format("lacks changeVersion: every later change of a row would have the "
                                "key of the first one and be swallowed for the ttl of {}; add "
                                "changeVersion",
                                span_text(terms_.dedup_ttl)));
    } else if (!format.has_record_part()) {
      warn(path, base::format("lacks changeVersion: records of this source have ids of their own, "
                              "so nothing is swallowed; with database changes as the source, "
                              "every later change of a row would be, for the ttl of {}",
                              span_text(terms_.dedup_ttl)));
    }
  }

  // An id names one change, so only a record without an id has a version.
  void change_version(const std::string& path, bool by_id) {
    if (by_id || !workflow_.source) return;
    if (!comes_from<FromStream>(workflow_)) {
      refuse(path,
             "has changeVersion without primaryKey: the records of this source have an id, "
             "which is the primaryKey, and no version, so each would be a dead letter; add "
             "primaryKey");
      return;
    }
    warn(path,
         "has changeVersion without primaryKey: a record of the stream has its message id as "
         "the primaryKey, or its sequence as the changeVersion, so each that has a message "
         "id would be a dead letter; add primaryKey");
  }

  [[nodiscard]] static std::string fields_text(const KeyFormat& format) {
    std::string text;
    for (const KeyPart& part : format.parts()) {
      base::append_format(text, "{}{}", text.empty() ? "" : ", ", text_of(part));
    }
    return text;
  }

  void key_form() {
    if (terms_.key.form != KeyForm::kShort) return;
    warn(
        "delivery.idempotencyKey.form",
        base::format("is short: 12 base64 characters are {} bits, not 256; among 2^26 (67 million) "
                     "remembered keys two are equal with a chance of about 1 in 2^21 (2 million), "
                     "and the second record would be taken for a repetition",
                     kShortKeyBits));
  }

  void mechanism() {
    if (!terms_.mechanism) return;
    if (!keeps(*terms_.mechanism, terms_.guarantee)) {
      refuse("delivery.mechanism",
             base::format("{} cannot keep the guarantee {}; leave it out, and it follows from the "
                          "guarantee",
                          word_for(*terms_.mechanism), word_for(terms_.guarantee)));
    } else if (*terms_.mechanism == Mechanism::kKafkaOffsets && workflow_.source) {
      warn("delivery.mechanism",
           "is kafka-offsets, and the source is not Kafka: the positions of the source are "
           "committed in the same way");
    }
  }

  void retries() {
    const RetryPolicy& policy = terms_.retries;
    if (policy.attempts_max <= 1) {
      if (terms_.guarantee == Guarantee::kAtMostOnce) return;
      warn("delivery.retries.enabled",
           base::format("allows 1 attempt under {}: the first failure of a record makes it a dead "
                        "letter, and a person has to replay it",
                        word_for(terms_.guarantee)));
      return;
    }
    if (terms_.guarantee == Guarantee::kAtMostOnce) {
      warn("delivery.retries",
           base::format("allows {} attempts, and at-most-once makes 1: a retry could be a second "
                        "delivery",
                        policy.attempts_max));
      return;
    }
    horizon();
  }

  void horizon() {
    if (terms_.guarantee == Guarantee::kAtLeastOnce) return;
    const RetryPolicy& policy = terms_.retries;
    const RetryHorizon horizon = horizon_of(policy, attempt_max());
    const std::string path = "delivery.deduplication.ttl";
    const std::string ttl = span_text(terms_.dedup_ttl);
    if (terms_.dedup_ttl < horizon.schedule) {
      refuse(path,
             base::format("{} is shorter than the retries: {} attempts with pauses of {} and "
                          "requests of {} last up to {} (giveUpAfter {}); a repetition after {} "
                          "would be taken for a new record",
                          ttl, policy.attempts_max, span_text(horizon.pauses),
                          span_text(horizon.attempts), span_text(horizon.schedule),
                          span_text(policy.give_up_after), ttl));
    } else if (terms_.dedup_ttl < horizon.stretched) {
      warn(path, base::format("{} is shorter than giveUpAfter {}: the retries last up to {} by "
                              "themselves, but an endpoint that answers Retry-After can stretch "
                              "them to {}",
                              ttl, span_text(policy.give_up_after), span_text(horizon.schedule),
                              span_text(horizon.stretched)));
    }
  }

  void source() {
    for (std::size_t i = 0; i < workflow_.source_keys.size(); ++i) {
      secret(base::format("source.signature.keys.{}.key", i), workflow_.source_keys[i]);
    }
    if (!comes_from<FromOutbox>(workflow_)) return;
    const FromOutbox& from = std::get<FromOutbox>(*workflow_.source);
    if (around_.origin == WorkflowOrigin::kTenant) {
      refuse("source.type",
             "is outbox, whose database this server would open; only the operator's file can say "
             "so");
    }
    if (has_clear_password(from.database)) {
      warn("source.database",
           "holds a password in clear text; write it as ${env:NAME}, ${file:PATH} or "
           "${secret:NAME}");
    }
    references("source.database", from.database);
    if (around_.index == nullptr) return;
    const Workflow* first = around_.index->first_from_outbox(workflow_);
    if (first == nullptr || first == &workflow_) return;
    refuse("source.database",
           base::format("is the outbox of workflow '{}', too: each record would go to one of the "
                        "two; give that workflow several endpoints, or disable one of them",
                        first->id.text()));
  }

  // A tenant must not read what the server's process can read.
  void references(const std::string& path, const SecretText& text) {
    if (around_.origin == WorkflowOrigin::kOperator) return;
    for (const SecretText::Piece& piece : text.pieces()) {
      const auto* reference = std::get_if<SecretReference>(&piece);
      if (reference == nullptr || reference->place == SecretReference::Place::kStored) continue;
      refuse(path,
             "refers to a variable or a file of the server; a tenant's secrets are stored "
             "with PUT /secrets/NAME and written as ${secret:NAME}");
      return;
    }
  }

  void secret(const std::string& path, const SecretText& text) {
    if (text.has_clear_text() && around_.origin == WorkflowOrigin::kTenant) {
      refuse(path,
             "is a secret in clear text, which the store would keep; store it with PUT "
             "/secrets/NAME and write it as ${secret:NAME}");
    } else if (text.has_clear_text()) {
      warn(path,
           "is a secret in clear text; write it as ${env:NAME}, ${file:PATH} or "
           "${secret:NAME}");
    }
    references(path, text);
  }

  [[nodiscard]] std::string path_of(std::size_t index) const {
    return workflow_.endpoints.size() == 1 && workflow_.endpoints[0].name.empty()
               ? "endpoint"
               : base::format("endpoints.{}", index);
  }

  void endpoint(std::size_t index) {
    const EndpointSettings& endpoint = workflow_.endpoints[index];
    const std::string path = path_of(index);
    if (const HttpTarget* http = endpoint.http()) http_target(path, *http);
    if (const StreamTarget* to = endpoint.stream()) stream_target(path, *to);
    if (endpoint.concurrency.value_or(1) > 1 && !workflow_.ordering) {
      warn(path + ".concurrency",
           base::format("is {}, and ordering is not said: up to {} records are under way at once, "
                        "in order per record key only, and records without a key in no order; say "
                        "ordering.key: record or none",
                        *endpoint.concurrency, *endpoint.concurrency));
    }
  }

  void http_target(const std::string& path, const HttpTarget& http) {
    unencrypted(path + ".url", http.url);
    if (http.url.encrypted() && !http.tls.verify) {
      warn(path + ".tls.verify",
           "is false: whoever stands between can read and answer every request; give tls.caFile "
           "instead");
    }
    for (const EndpointHeader& header : http.headers) {
      const std::string at = base::format("{}.headers.{}", path, header.name);
      if (is_secret_header(header.name)) {
        secret(at, header.value);
      } else {
        references(at, header.value);
      }
    }
    auth(path + ".auth", http.auth);
    nature(path, http);
    signing(path + ".signing", http);
    body(path + ".body", http);
    if (terms_.documentation.deduplication_required == false &&
        terms_.guarantee != Guarantee::kAtMostOnce) {
      refuse("delivery.documentation.deduplicationRequired",
             "is false, and that would be told to clients: over HTTP an answer can be lost after "
             "the client has acted, so the client has to recognise the key of a repeated request");
    }
  }

  void unencrypted(const std::string& path, const WebUrl& url) {
    if (url.encrypted() || url.loopback()) return;
    warn(path, base::format("is http to '{}', which is not this machine: records and credentials "
                            "cross the network in clear text; use https",
                            url.host()));
  }

  void auth(const std::string& path, const EndpointAuth& auth) {
    if (const auto* basic = std::get_if<BasicAuth>(&auth)) {
      references(path + ".user", basic->user);
      secret(path + ".password", basic->password);
    } else if (const auto* bearer = std::get_if<BearerAuth>(&auth)) {
      secret(path + ".token", bearer->token);
    } else if (const auto* oauth = std::get_if<OAuth2Auth>(&auth)) {
      unencrypted(path + ".tokenUrl", oauth->token_url);
      references(path + ".clientId", oauth->client_id);
      secret(path + ".clientSecret", oauth->client_secret);
    } else if (std::holds_alternative<MutualTlsAuth>(auth) &&
               around_.origin == WorkflowOrigin::kTenant) {
      refuse(path + ".type",
             "is mtls, whose files are those of the server; only the operator's "
             "file can say so");
    }
  }

  void nature(const std::string& path, const HttpTarget& http) {
    if (const auto* probe = std::get_if<NatureProbe>(&http.nature)) {
      unencrypted(path + ".statusUrl", probe->status_url);
    }
    if (terms_.guarantee != Guarantee::kExactlyOnce) return;
    if (!std::holds_alternative<NatureNotSaid>(http.nature)) return;
    warn(path + ".nature",
         "is not said: a request whose answer is lost may have taken effect, and only the endpoint "
         "can say so; what remains is that such a record is parked until a person decides (as with "
         "manual); declare idempotent if the endpoint remembers keys, or probe if statusUrl can be "
         "asked");
  }

  // Without a key in its term nothing is sent.
  void signing(const std::string& path, const HttpTarget& http) {
    for (std::size_t i = 0; i < http.signing.size(); ++i) {
      secret(base::format("{}.keys.{}.key", path, i), http.signing[i].key);
    }
    if (http.signing.empty()) return;
    std::vector<SigningTerm> terms = http.signing;
    std::sort(terms.begin(), terms.end(), [](const SigningTerm& a, const SigningTerm& b) {
      return a.from.value_or(Time::min()) < b.from.value_or(Time::min());
    });
    Time covered = terms.front().from.value_or(Time::min());
    for (const SigningTerm& term : terms) {
      const Time from = term.from.value_or(Time::min());
      if (from > covered) {
        warn(path, base::format("has no key from {} to {}: nothing is sent meanwhile, and records "
                                "wait; let the terms of keys overlap",
                                base::rfc3339_seconds(covered), base::rfc3339_seconds(from)));
      }
      covered = std::max(covered, term.until.value_or(Time::max()));
    }
    if (covered == Time::max()) return;
    warn(path, base::format("has no key from {} on: nothing is sent then, and records wait; add "
                            "the next key before",
                            base::rfc3339_seconds(covered)));
  }

  void body(const std::string& path, const HttpTarget& http) {
    if (!std::holds_alternative<EnvelopeBody>(http.body) || terms_.key.in_payload) return;
    refuse(path,
           "is envelope, which holds the key, and delivery.idempotencyKey.includedInPayload is "
           "false; leave one of them out");
  }

  void stream_target(const std::string& path, const StreamTarget& to) {
    if (const std::string* from = source_stream(workflow_); from != nullptr && *from == to.stream) {
      refuse(path + ".stream",
             base::format("is the source '{}' itself: every record would come back forever",
                          to.stream));
    }
    const RetryHorizon horizon = horizon_of(terms_.retries, attempt_max());
    for (const StreamWindow& known : around_.streams) {
      if (known.tenant != workflow_.tenant || known.stream != to.stream) continue;
      if (known.window.is_forever() || terms_.guarantee == Guarantee::kAtMostOnce) continue;
      const Duration window = std::chrono::seconds{known.window.raw()};
      if (window >= horizon.stretched) continue;
      refuse(path + ".stream",
             base::format("'{}' remembers ids for {}, and a record is sent again for up to {} "
                          "(giveUpAfter): a late repetition would be stored twice",
                          to.stream, span_text(window), span_text(horizon.stretched)));
    }
  }

  void names_of_endpoints() {
    std::set<std::string> seen;
    for (std::size_t i = 0; i < workflow_.endpoints.size(); ++i) {
      const std::string& name = workflow_.endpoints[i].name;
      if (seen.insert(name).second) continue;
      refuse(base::format("endpoints.{}.name", i),
             base::format("'{}' is there twice; each endpoint has a queue under its name", name));
    }
  }

  // Workflows that feed each other through streams. One that feeds itself was refused already.
  void loops() {
    constexpr std::size_t kStreamsMax = 1'000;  // that are followed from one workflow
    const std::string* start = source_stream(workflow_);
    if (start == nullptr || around_.index == nullptr) return;
    std::set<std::string> reached;
    std::vector<std::string> waiting{*start};
    while (!waiting.empty() && reached.size() < kStreamsMax) {
      const std::string stream = std::move(waiting.back());
      waiting.pop_back();
      for (const std::string& next : around_.index->targets_of(workflow_.tenant, stream)) {
        if (reached.insert(next).second) waiting.push_back(next);
      }
    }
    const auto feeds_itself = [&](const EndpointSettings& endpoint) {
      return endpoint.stream() != nullptr && endpoint.stream()->stream == *start;
    };
    const auto& endpoints = workflow_.endpoints;
    if (std::any_of(endpoints.begin(), endpoints.end(), feeds_itself)) return;
    if (!reached.contains(*start)) return;
    warn("source.stream",
         base::format("'{}' is fed by workflows that this one feeds; unless a filter ends it, a "
                      "record goes round forever",
                      *start));
  }

  const Workflow& workflow_;
  const DeliveryTerms& terms_;
  const WorkflowSurroundings& around_;
  std::vector<WorkflowFinding> findings_;
};

}  // namespace

WorkflowIndex::WorkflowIndex(std::span<const Workflow> all) {
  for (const Workflow& workflow : all) {
    first_.emplace(Name(workflow.tenant, workflow.id.text()), &workflow);
    if (auto outbox = outbox_of(workflow)) outboxes_.emplace(*std::move(outbox), &workflow);
    const std::string* from = source_stream(workflow);
    if (from == nullptr) continue;
    for (const EndpointSettings& endpoint : workflow.endpoints) {
      if (endpoint.stream() == nullptr) continue;
      targets_[Name(workflow.tenant, *from)].push_back(endpoint.stream()->stream);
    }
  }
}

const Workflow* WorkflowIndex::first_like(const Workflow& workflow) const {
  const auto found = first_.find(Name(workflow.tenant, workflow.id.text()));
  return found == first_.end() ? nullptr : found->second;
}

const Workflow* WorkflowIndex::first_from_outbox(const Workflow& workflow) const {
  const auto outbox = outbox_of(workflow);
  if (!outbox) return nullptr;
  const auto found = outboxes_.find(*outbox);
  return found == outboxes_.end() ? nullptr : found->second;
}

std::span<const std::string> WorkflowIndex::targets_of(const std::string& tenant,
                                                       const std::string& stream) const {
  const auto found = targets_.find(Name(tenant, stream));
  if (found == targets_.end()) return {};
  return found->second;
}

std::vector<WorkflowFinding> check_workflow(const Workflow& workflow,
                                            const WorkflowSurroundings& surroundings) {
  return WorkflowCheck(workflow, surroundings).run();
}

std::string span_text(Duration span) {
  auto left = static_cast<std::uint64_t>(std::max<std::int64_t>(span.count(), 0));
  std::string text;
  for (const base::SpanUnit& unit : base::kSpanUnits) {
    if (unit.name == "w" || left < unit.ms) continue;
    base::append_format(text, "{}{}", left / unit.ms, unit.name);
    left %= unit.ms;
  }
  return text.empty() ? "0s" : text;
}

}  // namespace hapax::delivery
