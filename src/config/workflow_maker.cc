#include "config/workflow_maker.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/format.h"
#include "base/time_text.h"
#include "base/words.h"

namespace hapax::config {

namespace {

using namespace delivery;  // NOLINT(google-build-using-namespace): every type here is of that room.

// Of texts in the defaults: every workflow has a copy.
constexpr std::size_t kTextMax = 2'000;
// Every request has a signature of each that is in its term.
constexpr std::size_t kSigningKeysMax = 10;

template <class To, class From>
void take_given(To& to, const std::optional<From>& from) {
  if (from) to = *from;
}

// What a workflow does not say is as in the defaults.
template <class Value>
std::optional<Value> first_of(const std::optional<Value>& own, const std::optional<Value>& usual) {
  return own ? own : usual;
}

bool is_header_name(std::string_view name) {
  const auto fits = [](char c) {
    return c > ' ' && c < 0x7f &&
           std::string_view("()<>@,;:\\\"/[]?={}").find(c) == std::string_view::npos;
  };
  return !name.empty() && std::all_of(name.begin(), name.end(), fits);
}

// The characters of RFC 3986.
bool is_uri_text(std::string_view text) {
  constexpr std::string_view kMarks = "-._~:/?#[]@!$&'()*+,;=%";
  return std::all_of(text.begin(), text.end(), [&](char c) {
    const char lower = base::to_lower(c);
    return (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') ||
           kMarks.find(c) != std::string_view::npos;
  });
}

class WorkflowMaker {
 public:
  WorkflowMaker(const WrittenWorkflow& written, const WrittenDelivery& defaults,
                const std::string& path, const Given& given, ConfigFindings& findings)
      : written_(written), defaults_(defaults), path_(path), given_(given), findings_(findings) {}

  std::optional<Workflow> make() {
    const auto id = WorkflowId::parse(written_.id);
    if (!id) {
      error("id", id.error().detail);
      return std::nullopt;
    }
    Workflow workflow{*id};
    take_given(workflow.tenant, written_.tenant);
    take_given(workflow.enabled, written_.enabled);
    workflow.source = source();
    workflow.source_keys = source_keys();
    workflow.transform = transform();
    workflow.endpoints = endpoints();
    workflow.delivery = terms();
    workflow.ordering = ordering();
    take_given(workflow.dead_letter_keep, written_.dead_letter_keep);
    take_given(workflow.retention.delivered, written_.retention.delivered);
    take_given(workflow.retention.attempts, written_.retention.attempts);
    take_given(workflow.retention.attempt_bytes, written_.retention.attempt_bytes);
    const auto& source = workflow.source;
    workflow.retention.shortens_outbox =
        source && std::holds_alternative<FromOutbox>(*source) && written_.retention.delivered;
    if (failed_) return std::nullopt;
    return workflow;
  }

 private:
  void error(const std::string& key, const std::string& what) {
    failed_ = true;
    const std::string path = path_.empty() ? key : path_ + "." + key;
    findings_.error(place_of(given_, path), path + " " + what);
  }
  // Whether something was written under that key, even if it is empty.
  [[nodiscard]] bool given(const std::string& key) const {
    return given_.contains(path_.empty() ? key : path_ + "." + key);
  }
  // A key that means nothing here because of another one.
  template <class Value>
  void only_of(const std::string& key, const std::optional<Value>& value, std::string_view what) {
    if (value) error(key, base::format("is only of {}", what));
  }

  // REQUIRES: was read as Kind::kSecret, or is nothing, which is an error.
  SecretText secret(const std::string& key, const std::optional<std::string>& text) {
    if (!text || text->empty()) {
      error(key, "is missing");
      return {};
    }
    auto read = SecretText::parse(*text);
    if (!read) error(key, read.error().detail);
    return read ? *std::move(read) : SecretText();
  }
  std::optional<WebUrl> url(const std::string& key, const std::optional<std::string>& text) {
    auto read = WebUrl::parse(text.value_or(""));
    if (read) return *std::move(read);
    error(key, text ? read.error().detail : "is missing");
    return std::nullopt;
  }

  std::optional<WorkflowSource> source() {
    const WrittenSource& it = written_.source;
    if (it == WrittenSource{}) return std::nullopt;
    if (!it.type) {
      error("source.type", "is missing; it is one of outbox, stream, http");
      return std::nullopt;
    }
    if (*it.type != SourceType::kStream) only_of("source.stream", it.stream, "a stream");
    if (*it.type != SourceType::kOutbox) {
      only_of("source.database", it.database, "an outbox");
      only_of("source.schema", it.schema, "an outbox");
      only_of("source.prefix", it.prefix, "an outbox");
      only_of("source.table", it.table, "an outbox");
      if (it.columns != OutboxColumns{}) error("source.columns", "is only of an outbox");
    }
    switch (*it.type) {
      case SourceType::kOutbox:
        return outbox(it);
      case SourceType::kStream:
        if (!it.stream) error("source.stream", "is missing");
        return FromStream{it.stream.value_or("")};
      case SourceType::kHttp:
        return FromHttp{};
    }
    return std::nullopt;
  }

  // A section that says nothing would look as if signatures were verified.
  std::vector<SecretText> source_keys() {
    const auto& written = written_.source.signature_keys;
    if (given("source.signature") && !given("source.signature.keys")) {
      error("source.signature", "has no keys; nothing would be verified");
    }
    if (written.size() > kSigningKeysMax) {
      error("source.signature.keys",
            base::format("has {} keys, at most {}", written.size(), kSigningKeysMax));
      return {};
    }
    std::vector<SecretText> keys;
    for (std::size_t i = 0; i < written.size(); ++i) {
      keys.push_back(secret(base::format("source.signature.keys.{}.key", i), written[i].key));
    }
    return keys;
  }

  FromOutbox outbox(const WrittenSource& it) {
    FromOutbox from{secret("source.database", it.database), OwnOutboxTables{}};
    const std::string text = it.database.value_or("");
    const auto begins = [&](std::string_view with) { return text.starts_with(with); };
    if (!text.empty() && !begins("postgres://") && !begins("postgresql://") && !begins("sqlite:") &&
        !begins("${")) {
      // It may hold a password: it is not repeated.
      error("source.database", "must begin with postgres://, sqlite: or a reference ${…}");
    }
    if (!it.table) {
      if (it.columns != OutboxColumns{}) error("source.columns", "is only of a table; add table");
      from.tables = OwnOutboxTables{it.schema.value_or(""), it.prefix.value_or("")};
      return from;
    }
    only_of("source.schema", it.schema, "an outbox that hapax migrate made; write SCHEMA.TABLE");
    only_of("source.prefix", it.prefix, "an outbox that hapax migrate made");
    if (it.table->empty()) error("source.table", "must not be empty");
    const OutboxColumns& columns = it.columns;
    if (columns.id.empty()) error("source.columns.id", "is missing");
    if (columns.payload.empty()) error("source.columns.payload", "is missing");
    if (columns.delivered.empty()) error("source.columns.delivered", "is missing");
    from.tables = MappedOutboxTable{*it.table, columns};
    return from;
  }

  std::optional<TransformSettings> transform() {
    const WrittenTransform& it = written_.transform;
    if (it == WrittenTransform{}) return std::nullopt;
    if (!it.jq || it.jq->empty()) error("transform.jq", "is missing");
    TransformSettings settings{it.jq.value_or("")};
    take_given(settings.numbers, it.numbers);
    return settings;
  }

  std::vector<EndpointSettings> endpoints() {
    std::vector<EndpointSettings> all;
    const bool single = written_.endpoint != WrittenEndpoint{};
    if (single && !written_.endpoints.empty()) {
      error("endpoints", "and endpoint exclude each other; move the one into the list");
      return all;
    }
    if (single) add_endpoint("endpoint", written_.endpoint, all);
    for (std::size_t i = 0; i < written_.endpoints.size(); ++i) {
      const std::string path = base::format("endpoints.{}", i);
      if (!written_.endpoints[i].name) error(path + ".name", "is missing");
      add_endpoint(path, written_.endpoints[i], all);
    }
    return all;
  }

  void add_endpoint(const std::string& path, const WrittenEndpoint& it,
                    std::vector<EndpointSettings>& all) {
    if (it.url.has_value() == it.stream.has_value()) {
      return error(path, "needs either url or stream");
    }
    EndpointSettings settings{it.name.value_or(""), StreamTarget{it.stream.value_or("")}};
    settings.event_types = it.event_types;
    settings.concurrency = it.concurrency;
    take_given(settings.rate, it.rate);
    settings.breaker = breaker(path + ".breaker", it.breaker);
    if (it.stream) {
      stream_has_no_http(path, it);
    } else if (auto target = http_target(path, it)) {
      settings.target = *std::move(target);
    }
    all.push_back(std::move(settings));
  }

  void stream_has_no_http(const std::string& path, const WrittenEndpoint& it) {
    constexpr std::string_view kHttp = "an endpoint with url";
    only_of(path + ".method", it.method, kHttp);
    only_of(path + ".nature", it.nature, kHttp);
    only_of(path + ".statusUrl", it.status_url, kHttp);
    if (!it.headers.empty()) error(path + ".headers", base::format("is only of {}", kHttp));
    if (it.auth != WrittenAuth{}) error(path + ".auth", base::format("is only of {}", kHttp));
    if (it.tls != WrittenTls{}) error(path + ".tls", base::format("is only of {}", kHttp));
    if (it.breaker != WrittenBreaker{})
      error(path + ".breaker", base::format("is only of {}", kHttp));
    if (it.timeouts != WrittenTimeouts{}) {
      error(path + ".timeouts", base::format("is only of {}", kHttp));
    }
    only_of(path + ".body", it.body, kHttp);
    if (!it.signing_keys.empty()) error(path + ".signing", base::format("is only of {}", kHttp));
    if (it.cloud_event != WrittenCloudEvent{}) {
      error(path + ".cloudEvents", base::format("is only of {}", kHttp));
    }
    if (!it.on_status.empty()) error(path + ".onStatus", base::format("is only of {}", kHttp));
  }

  BreakerTerms breaker(const std::string& path, const WrittenBreaker& it) {
    if (it.pause && it.pause_max && *it.pause > *it.pause_max) {
      error(path + ".pause", "is longer than pauseMax");
    }
    return {it.failures, it.pause, it.pause_max, it.probes};
  }

  std::optional<HttpTarget> http_target(const std::string& path, const WrittenEndpoint& it) {
    const auto where = url(path + ".url", it.url);
    if (!where) return std::nullopt;
    HttpTarget target{*where};
    take_given(target.method, it.method);
    constexpr std::size_t kHeadersMax = 100;
    if (it.headers.size() > kHeadersMax) {
      error(path + ".headers",
            base::format("has {} names, at most {}", it.headers.size(), kHeadersMax));
    }
    std::set<std::string> seen;
    for (const auto& [name, value] : it.headers) {
      auto read = SecretText::parse(value);
      if (!is_header_name(name)) {
        error(path + ".headers", "has a name that no header can have");
      } else if (!seen.insert(base::lower(name)).second) {
        error(path + ".headers." + name, "is there twice; names of headers have no case");
      } else if (!read) {
        error(path + ".headers." + name, read.error().detail);
      } else {
        target.headers.push_back({name, *std::move(read)});
      }
    }
    target.auth = auth(path + ".auth", it.auth);
    take_given(target.timeouts.connect, it.timeouts.connect);
    take_given(target.timeouts.request, it.timeouts.request);
    take_given(target.tls.verify, it.tls.verify);
    take_given(target.tls.ca_file, it.tls.ca_file);
    take_given(target.tls.server_name, it.tls.server_name);
    target.nature = nature(path, it);
    target.signing = signing(path + ".signing", it.signing_keys);
    target.body = body(path, it);
    target.on_status = on_status(path + ".onStatus", it.on_status);
    return target;
  }

  // A section that says nothing would look as if requests were signed.
  std::vector<SigningTerm> signing(const std::string& path,
                                   const std::vector<WrittenSigningKey>& keys) {
    std::vector<SigningTerm> terms;
    if (given(path) && !given(path + ".keys")) {
      error(path, "has no keys; requests would not be signed");
    }
    if (keys.size() > kSigningKeysMax) {
      error(path + ".keys", base::format("has {} keys, at most {}", keys.size(), kSigningKeysMax));
      return terms;
    }
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const std::string at = base::format("{}.keys.{}", path, i);
      SigningTerm term{secret(at + ".key", keys[i].key)};
      term.from = moment(at + ".from", keys[i].from);
      term.until = moment(at + ".until", keys[i].until);
      if (term.from && term.until && *term.from >= *term.until) {
        error(at + ".until", "is not later than from; the key would never sign");
      }
      terms.push_back(std::move(term));
    }
    return terms;
  }

  std::optional<Time> moment(const std::string& key, const std::optional<std::string>& text) {
    if (!text) return std::nullopt;
    const auto time = base::parse_rfc3339(*text);
    if (!time) error(key, "must be a time in UTC such as 2026-11-16T05:46:19Z");
    return time;
  }

  EndpointBody body(const std::string& path, const WrittenEndpoint& it) {
    const bool event =
        it.body == BodyWord::kCloudEventBinary || it.body == BodyWord::kCloudEventStructured;
    if (!event) {
      constexpr std::string_view kEvents = "the bodies cloudevents-binary and -structured";
      only_of(path + ".cloudEvents.source", it.cloud_event.source, kEvents);
      only_of(path + ".cloudEvents.subject", it.cloud_event.subject, kEvents);
    }
    if (it.body == BodyWord::kEnvelope) return EnvelopeBody{};
    if (it.body == BodyWord::kPayload) return PayloadBody{};
    if (!event) return BodyNotSaid{};
    CloudEventBody told{it.body == BodyWord::kCloudEventStructured,
                        it.cloud_event.source.value_or("")};
    take_given(told.subject, it.cloud_event.subject);
    if (told.source.empty()) {
      error(path + ".cloudEvents.source", "is missing; a CloudEvent says where it comes from");
    } else if (!is_uri_text(told.source) || told.source.size() > kTextMax) {
      error(path + ".cloudEvents.source",
            "must be a URI reference such as /shop/orders; write other characters as %XX");
    }
    return told;
  }

  std::vector<StatusRule> on_status(const std::string& path,
                                    const std::map<std::string, StatusWord>& rules) {
    std::vector<StatusRule> all;
    for (const auto& [statuses, word] : rules) {
      if (const auto rule = StatusRule::parse(statuses, word)) {
        all.push_back(*rule);
      } else {
        error(path, "has a name that is neither a status (404) nor a hundred (4xx) of 2 to 5");
      }
    }
    return all;
  }

  EndpointNature nature(const std::string& path, const WrittenEndpoint& it) {
    if (it.nature != NatureWord::kProbe) only_of(path + ".statusUrl", it.status_url, "probe");
    if (!it.nature) return NatureNotSaid{};
    switch (*it.nature) {
      case NatureWord::kIdempotent:
        return NatureIdempotent{};
      case NatureWord::kManual:
        return NatureManual{};
      case NatureWord::kProbe:
        break;
    }
    const auto status = url(path + ".statusUrl", it.status_url);
    if (!status) return NatureNotSaid{};
    if (status->text().find("{key}") == std::string::npos) {
      error(path + ".statusUrl", "must hold {key}, which stands for the key that is asked for");
    }
    return NatureProbe{*status};
  }

  EndpointAuth auth(const std::string& path, const WrittenAuth& it) {
    const AuthType type = it.type.value_or(AuthType::kNone);
    if (type != AuthType::kBasic) {
      only_of(path + ".user", it.user, "basic");
      only_of(path + ".password", it.password, "basic");
    }
    if (type != AuthType::kBearer) only_of(path + ".token", it.token, "bearer");
    if (type != AuthType::kOAuth2) {
      only_of(path + ".tokenUrl", it.token_url, "oauth2");
      only_of(path + ".clientId", it.client_id, "oauth2");
      only_of(path + ".clientSecret", it.client_secret, "oauth2");
      only_of(path + ".scope", it.scope, "oauth2");
    }
    if (type != AuthType::kMutualTls) {
      only_of(path + ".certificate", it.certificate, "mtls");
      only_of(path + ".key", it.key, "mtls");
    }
    switch (type) {
      case AuthType::kNone:
        return NoAuth{};
      case AuthType::kBasic:
        return BasicAuth{secret(path + ".user", it.user), secret(path + ".password", it.password)};
      case AuthType::kBearer:
        return BearerAuth{secret(path + ".token", it.token)};
      case AuthType::kOAuth2:
        return oauth2(path, it);
      case AuthType::kMutualTls:
        break;
    }
    if (it.certificate.value_or("").empty()) error(path + ".certificate", "is missing");
    if (it.key.value_or("").empty()) error(path + ".key", "is missing");
    return MutualTlsAuth{it.certificate.value_or(""), it.key.value_or("")};
  }

  EndpointAuth oauth2(const std::string& path, const WrittenAuth& it) {
    const auto token_url = url(path + ".tokenUrl", it.token_url);
    SecretText id = secret(path + ".clientId", it.client_id);
    SecretText password = secret(path + ".clientSecret", it.client_secret);
    if (!token_url) return NoAuth{};
    return OAuth2Auth{*token_url, std::move(id), std::move(password), it.scope.value_or("")};
  }

  DeliveryTerms terms() {
    const WrittenDelivery& own = written_.delivery;
    const WrittenDelivery& usual = defaults_;
    DeliveryTerms terms;
    take_given(terms.guarantee, first_of(own.guarantee, usual.guarantee));
    // The mechanism of the defaults belongs to their guarantee.
    const bool same = !own.guarantee || own.guarantee == usual.guarantee;
    terms.mechanism = same ? first_of(own.mechanism, usual.mechanism) : own.mechanism;
    take_given(terms.dedup_ttl, first_of(own.deduplication.ttl, usual.deduplication.ttl));
    terms.key = key(own.idempotency_key, usual.idempotency_key);
    terms.retries = retries(own.retries, usual.retries);
    take_given(terms.client_guidance, first_of(own.client_guidance, usual.client_guidance));
    const WrittenDocumentation& told = own.documentation;
    const WrittenDocumentation& usual_told = usual.documentation;
    terms.documentation.deduplication_required =
        first_of(told.deduplication_required, usual_told.deduplication_required);
    terms.documentation.sdk_available = first_of(told.sdk_available, usual_told.sdk_available);
    take_given(terms.documentation.example_code,
               first_of(told.example_code, usual_told.example_code));
    if (terms.documentation.example_code.size() > kTextMax) {
      error("delivery.documentation.exampleCode", base::format("has more than {} bytes", kTextMax));
    }
    return terms;
  }

  KeySettings key(const WrittenKey& own, const WrittenKey& usual) {
    KeySettings settings;
    take_given(settings.hash, first_of(own.hash_algorithm, usual.hash_algorithm));
    take_given(settings.form, first_of(own.form, usual.form));
    take_given(settings.in_payload, first_of(own.included_in_payload, usual.included_in_payload));
    // What the workflow says in either way wins over what the defaults say in either way.
    const bool says = own.format || !written_.delivery.deduplication.key_fields.empty();
    const WrittenDelivery& from = says ? written_.delivery : defaults_;
    settings.format = format(from.idempotency_key.format, from.deduplication.key_fields);
    return settings;
  }

  KeyFormat format(const std::optional<std::string>& text, const std::vector<KeyField>& fields) {
    for (auto field = fields.begin(); field != fields.end(); ++field) {
      if (std::find(fields.begin(), field, *field) == field) continue;
      error("delivery.deduplication.keyFields", base::format("has {} twice", word_for(*field)));
      return {};
    }
    if (!text) return fields.empty() ? KeyFormat() : KeyFormat::of(fields);
    if (text->size() > kTextMax) {
      error("delivery.idempotencyKey.format", base::format("has more than {} bytes", kTextMax));
      return {};
    }
    const auto read = KeyFormat::parse(*text);
    if (!read) {
      error("delivery.idempotencyKey.format", read.error().detail);
      return {};
    }
    if (!fields.empty() && read->parts() != KeyFormat::of(fields).parts()) {
      error("delivery.idempotencyKey.format",
            "and delivery.deduplication.keyFields name different fields; leave one of them out");
    }
    return *read;
  }

  RetryPolicy retries(const WrittenRetries& own, const WrittenRetries& usual) {
    RetryPolicy policy;
    take_given(policy.attempts_max, first_of(own.max_attempts, usual.max_attempts));
    if (first_of(own.enabled, usual.enabled) == false) policy.attempts_max = 1;
    take_given(policy.give_up_after, first_of(own.give_up_after, usual.give_up_after));
    const bool says = own.backoff_ms || !own.backoff_list_ms.empty();
    const WrittenRetries& from = says ? own : usual;
    if (from.backoff_list_ms.size() > kPausesMax) {
      error("delivery.retries.backoffMs",
            base::format("has {} pauses, at most {}", from.backoff_list_ms.size(), kPausesMax));
      return policy;
    }
    const auto most = first_of(own.backoff_max_ms, usual.backoff_max_ms);
    const auto ms = [](std::uint64_t number) {
      return Duration{static_cast<std::int64_t>(number)};
    };
    if (!from.backoff_list_ms.empty()) {
      BackoffList list;
      for (const std::uint64_t pause : from.backoff_list_ms) list.pauses.push_back(ms(pause));
      policy.backoff = std::move(list);
    } else if (from.backoff_ms) {
      ExponentialBackoff doubling{ms(*from.backoff_ms)};
      if (most) doubling.most = ms(*most);
      policy.backoff = doubling;
    }
    if (own.backoff_max_ms && std::holds_alternative<BackoffList>(policy.backoff)) {
      error("delivery.retries.backoffMaxMs", "is only of a backoffMs that is a number");
    }
    return policy;
  }

  std::optional<Ordering> ordering() {
    const WrittenOrdering& it = written_.ordering;
    if (it == WrittenOrdering{}) return std::nullopt;
    Ordering ordering;
    take_given(ordering.key, it.key);
    if (it.on_failure != FailureWord::kBlockFor) {
      only_of("ordering.blockFor", it.block_for, "block-for");
    }
    if (it.on_failure == FailureWord::kBlock) ordering.on_failure = BlockKey{};
    if (it.on_failure == FailureWord::kBlockFor) {
      if (!it.block_for) error("ordering.blockFor", "is missing");
      ordering.on_failure = BlockKeyFor{it.block_for.value_or(Duration{0})};
    }
    return ordering;
  }

  const WrittenWorkflow& written_;
  const WrittenDelivery& defaults_;
  const std::string& path_;
  const Given& given_;
  ConfigFindings& findings_;
  bool failed_ = false;
};

}  // namespace

std::optional<delivery::Workflow> make_workflow(const WrittenWorkflow& written,
                                                const WrittenDelivery& defaults,
                                                const std::string& path, const Given& given,
                                                ConfigFindings& findings) {
  return WorkflowMaker(written, defaults, path, given, findings).make();
}

}  // namespace hapax::config
