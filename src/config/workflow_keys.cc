#include "config/workflow_keys.h"

#include <limits>
#include <utility>

#include "config/key_for.h"
#include "delivery/breaker.h"
#include "delivery/endpoint_settings.h"

namespace hapax::config {

namespace {

using delivery::words_of;

constexpr std::uint64_t kSecondMs = 1'000;
constexpr std::uint64_t kDayMs = 24 * 3'600 * kSecondMs;
constexpr Bounds kKeptSpan{kSecondMs, 3'650 * kDayMs};
constexpr Bounds kLogSpan{0, 3'650 * kDayMs};
constexpr Bounds kLogBytes{std::uint64_t{1} << 20, std::uint64_t{1} << 50};
constexpr Bounds kPauseMs{0, static_cast<std::uint64_t>(delivery::kPauseMax.count())};

// A key whose values are the words of an enumeration of the room delivery.
template <class Enum>
ConfigKey choice(std::string_view name, std::optional<Enum>& value, std::string_view meaning) {
  ConfigKey key = key_for(name, Kind::kWord, value, meaning);
  key.words = words_of(Enum{});
  return key;
}

// What holds if the key is not set: the same as where the value is used.
template <class Value>
ConfigKey with_default(ConfigKey key, const Value& value) {
  key.standard = detail::setting_of(value);
  return key;
}

// A key that is a list of values only.
template <class Value>
ConfigKey list_for(std::string_view name, Kind kind, std::vector<Value>& values,
                   std::string_view meaning, Bounds bounds = {}) {
  ConfigKey key{name, kind, meaning, bounds};
  key.put_list = [&values](const std::vector<SettingValue>& settings) {
    values.clear();
    for (const SettingValue& setting : settings) detail::assign(values.emplace_back(), setting);
  };
  key.get_list = [&values] {
    std::vector<SettingValue> settings;
    for (const Value& value : values) settings.push_back(*detail::setting_of(value));
    return settings;
  };
  return key;
}

std::string hidden_text(const std::string& text) {
  const auto read = delivery::SecretText::parse(text);
  return read ? read->hidden() : "(hidden)";
}

ConfigKey secret_for(std::string_view name, std::optional<std::string>& value,
                     std::string_view meaning) {
  ConfigKey key = key_for(name, Kind::kSecret, value, meaning);
  key.shown = [](const std::string&, const std::string& text) { return hidden_text(text); };
  return key;
}

ConfigKey database_key(std::optional<std::string>& value) {
  ConfigKey key = key_for("database", Kind::kSecret, value,
                          "Of an outbox: `postgres://…`, `sqlite:FILE`, or a reference to one");
  key.shown = [](const std::string&, const std::string& text) {
    const auto read = delivery::SecretText::parse(text);
    const bool plain = read && !delivery::has_clear_password(*read);
    return plain ? text : "postgres://(hidden)";
  };
  return key;
}

ConfigKey headers_key(std::map<std::string, std::string>& headers) {
  ConfigKey key{"headers", Kind::kSecret, "Header fields of every request, by their names"};
  key.put_named = [&headers](const std::string& name, const SettingValue& setting) {
    headers[name] = std::get<std::string>(setting);
  };
  key.get_named = [&headers] {
    std::map<std::string, SettingValue> all;
    for (const auto& [name, value] : headers) all.emplace(name, value);
    return all;
  };
  key.shown = [](const std::string& name, const std::string& text) {
    return delivery::is_secret_header(name) ? hidden_text(text) : text;
  };
  return key;
}

void describe_retries(Keys& keys, WrittenRetries& it) {
  keys.key(key_for("enabled", Kind::kFlag, it.enabled,
                   "false: one attempt, and a record that fails is a dead letter"));
  const delivery::RetryPolicy usual;
  keys.key(
      with_default(key_for("maxAttempts", Kind::kNumber, it.max_attempts,
                           "Attempts, the first one included", {1, delivery::kRetryAttemptsMax}),
                   usual.attempts_max));
  ConfigKey backoff =
      key_for("backoffMs", Kind::kNumber, it.backoff_ms,
              "Milliseconds. A number is the first pause; it doubles, and half of each pause is "
              "random. A list is followed as written, and its last pause repeats",
              kPauseMs);
  const ConfigKey list =
      list_for("backoffMs", Kind::kNumber, it.backoff_list_ms, backoff.meaning, kPauseMs);
  backoff.put_list = list.put_list;
  backoff.get_list = list.get_list;
  for (const Duration pause : std::get<delivery::BackoffList>(usual.backoff).pauses) {
    backoff.standard_list.push_back(*detail::setting_of(pause));
  }
  keys.key(backoff);
  keys.key(with_default(key_for("backoffMaxMs", Kind::kNumber, it.backoff_max_ms,
                                "Where the doubling ends", kPauseMs),
                        delivery::ExponentialBackoff{}.most));
  keys.key(with_default(
      key_for("giveUpAfter", Kind::kDuration, it.give_up_after,
              "No attempt begins later than this after the first, Retry-After included",
              {kSecondMs, 365 * kDayMs}),
      usual.give_up_after));
}

void describe_key(Keys& keys, WrittenKey& it) {
  keys.key(key_for("format", Kind::kText, it.format,
                   "The fields of the key in braces, those of keyFields and "
                   "`{header:NAME}`, `{payload:/JSON/POINTER}`; not set: those of keyFields, or "
                   "`{database}:{table}:{primaryKey}:{changeVersion}`"));
  keys.key(with_default(choice("hashAlgorithm", it.hash_algorithm, "Of the key"),
                        delivery::KeySettings{}.hash));
  keys.key(with_default(
      choice("form", it.form, "full has all bits of the hash, short 12 characters (72 bits)"),
      delivery::KeySettings{}.form));
  keys.key(with_default(key_for("includedInPayload", Kind::kFlag, it.included_in_payload,
                                "In the envelope, beside the header"),
                        delivery::KeySettings{}.in_payload));
}

void describe_documentation(Keys& keys, WrittenDocumentation& it) {
  keys.key(key_for("deduplicationRequired", Kind::kFlag, it.deduplication_required,
                   "Whether clients are told to recognise keys; false is refused over HTTP"));
  keys.key(key_for("sdkAvailable", Kind::kFlag, it.sdk_available,
                   "Whether clients are told of a library"));
  keys.key(key_for("exampleCode", Kind::kText, it.example_code,
                   "Where clients find examples, as a URL"));
}

void describe_columns(Keys& keys, delivery::OutboxColumns& it) {
  keys.key(key_for("id", Kind::kText, it.id, "The id of the record; required with `table`"));
  keys.key(key_for("payload", Kind::kText, it.payload, "Its content; required with `table`"));
  keys.key(key_for("delivered", Kind::kText, it.delivered,
                   "Null or false until Hapax has stored the row, then the time or true; required "
                   "with `table`"));
  keys.key(key_for("key", Kind::kText, it.key, "What order is kept for"));
  keys.key(key_for("type", Kind::kText, it.type, "The event type"));
  keys.key(key_for("headers", Kind::kText, it.headers, "Header fields as a JSON object"));
  keys.key(key_for("created", Kind::kText, it.created, "When it was made"));
  keys.key(key_for("attempts", Kind::kText, it.attempts,
                   "The times that the row was taken over or refused are counted here"));
  keys.key(key_for("error", Kind::kText, it.error, "Why a row cannot be stored is written here"));
  keys.key(key_for("status", Kind::kText, it.status, "`published` or `failed` is written here"));
}

void describe_signature(Keys& keys, std::vector<WrittenSourceKey>& it) {
  const Section several{"keys", "The keys; a record that is signed with one of them counts"};
  keys.list(several, it.size(), [&](Keys& in, std::size_t index) {
    if (index >= it.size()) it.resize(index + 1);
    ConfigKey key = key_for("key", Kind::kSecret, it[index].key,
                            "`whsec_` and base64, by reference: the key of publishers");
    key.required = true;
    key.shown = [](const std::string&, const std::string& text) { return hidden_text(text); };
    in.key(key);
  });
}

void describe_source(Keys& keys, WrittenSource& it) {
  keys.key(choice("type", it.type, "Where records come from"));
  keys.key(key_for("stream", Kind::kName, it.stream, "Of a stream: its name"));
  keys.key(database_key(it.database));
  keys.key(key_for("schema", Kind::kText, it.schema,
                   "Of an outbox that `hapax migrate` made: its --schema"));
  keys.key(key_for("prefix", Kind::kText, it.prefix, "The same: its --prefix"));
  keys.key(key_for("table", Kind::kText, it.table,
                   "Of a table that is already there: its name; needs `columns`"));
  keys.section({"columns", "Which column of that table holds what"},
               [&](Keys& in) { describe_columns(in, it.columns); });
  keys.section({"signature", "Records are signed when they are published; others are not sent"},
               [&](Keys& in) { describe_signature(in, it.signature_keys); });
}

void describe_auth(Keys& keys, WrittenAuth& it) {
  keys.key(with_default(choice("type", it.type, "How requests prove who sends them"),
                        delivery::AuthType::kNone));
  keys.key(key_for("user", Kind::kSecret, it.user, "Of basic"));
  keys.key(secret_for("password", it.password, "Of basic"));
  keys.key(secret_for("token", it.token, "Of bearer"));
  keys.key(key_for("tokenUrl", Kind::kText, it.token_url, "Of oauth2 (client credentials)"));
  keys.key(key_for("clientId", Kind::kSecret, it.client_id, "Of oauth2"));
  keys.key(secret_for("clientSecret", it.client_secret, "Of oauth2"));
  keys.key(key_for("scope", Kind::kText, it.scope, "Of oauth2"));
  keys.key(key_for("certificate", Kind::kFile, it.certificate, "Of mtls: PEM"));
  keys.key(key_for("key", Kind::kFile, it.key, "Of mtls: PEM, the private key"));
}

ConfigKey on_status_key(std::map<std::string, delivery::StatusWord>& rules) {
  ConfigKey key{"onStatus", Kind::kWord,
                "What an answer means, by its status (`404`) or hundred (`4xx`). Not said: 2xx "
                "delivered; 410 disable; 408, 425, 429, 3xx and 5xx retry; other 4xx reject"};
  key.words = words_of(delivery::StatusWord{});
  key.put_named = [&rules](const std::string& name, const SettingValue& setting) {
    detail::assign(rules[name], setting);
  };
  key.get_named = [&rules] {
    std::map<std::string, SettingValue> all;
    for (const auto& [name, word] : rules) all.emplace(name, *detail::setting_of(word));
    return all;
  };
  return key;
}

void describe_signing(Keys& keys, std::vector<WrittenSigningKey>& it) {
  const Section several{"keys", "The keys; while the terms of two overlap, requests have both"};
  keys.list(several, it.size(), [&](Keys& in, std::size_t index) {
    if (index >= it.size()) it.resize(index + 1);
    ConfigKey key = key_for("key", Kind::kSecret, it[index].key,
                            "`whsec_` (HMAC) or `whsk_` (Ed25519) and base64, by reference");
    key.required = true;
    key.shown = [](const std::string&, const std::string& text) { return hidden_text(text); };
    in.key(key);
    in.key(key_for("from", Kind::kText, it[index].from,
                   "It signs from then on, such as 2026-11-16T05:46:19Z; not set: always"));
    in.key(key_for("until", Kind::kText, it[index].until,
                   "It signs before then; not set: without an end"));
  });
}

void describe_breaker(Keys& keys, WrittenBreaker& it) {
  constexpr Bounds kPause{1, 3'600 * kSecondMs};
  const delivery::BreakerSettings usual;
  keys.key(key_for("failures", Kind::kNumber, it.failures,
                   "It is left alone when records of so many keys fail and none passes; not set: "
                   "4, and 2 if it does not answer",
                   {1, 1'000}));
  keys.key(with_default(key_for("pause", Kind::kDuration, it.pause,
                                "The first pause; it doubles while the endpoint fails", kPause),
                        usual.pause_first));
  keys.key(key_for("pauseMax", Kind::kDuration, it.pause_max,
                   "Where the doubling ends; not set: 30s, and 2s if it answers that it fails",
                   kPause));
  keys.key(with_default(key_for("probes", Kind::kNumber, it.probes,
                                "After a pause, requests under way at once that find out whether "
                                "it is better",
                                {1, 16}),
                        usual.probes));
}

// What a request consists of, and what its answer means.
void describe_exchange(Keys& keys, WrittenEndpoint& it) {
  keys.section({"signing", "Signatures by Standard Webhooks"},
               [&](Keys& in) { describe_signing(in, it.signing_keys); });
  keys.key(choice("body", it.body,
                  "What the body of a request is; not set: the envelope, and with at-least-once or "
                  "includedInPayload: false the payload"));
  keys.section({"cloudEvents", "Of the bodies cloudevents-…"}, [&](Keys& in) {
    in.key(key_for("source", Kind::kText, it.cloud_event.source,
                   "Where events come from, a URI reference such as /shop/orders"));
    in.key(with_default(
        choice("subject", it.cloud_event.subject, "key: the key of the record, if it has one"),
        delivery::EventSubject::kNone));
  });
  keys.key(on_status_key(it.on_status));
}

Section with_table(std::string_view name, std::string_view meaning) {
  Section section{name, meaning};
  section.table = Section::Table::kOwn;
  return section;
}

void describe_order(Keys& keys, WrittenOrdering& it) {
  keys.key(with_default(choice("key", it.key, "record: in order per record key; none: in no order"),
                        delivery::Ordering{}.key));
  keys.key(with_default(
      choice("onFailure", it.on_failure,
             "What becomes of later records of a key after a dead letter: they wait for a "
             "person (block), go on (park), or wait for a time (block-for)"),
      delivery::FailureWord::kPark));
  keys.key(key_for("blockFor", Kind::kDuration, it.block_for, "Of block-for", kKeptSpan));
}

}  // namespace

void describe_endpoint(Keys& keys, WrittenEndpoint& it) {
  constexpr Bounds kTimeout{1, 3'600 * kSecondMs};
  keys.key(key_for("name", Kind::kName, it.name, "Required in `endpoints`; its queue has it"));
  keys.key(key_for("url", Kind::kText, it.url, "Where requests go; this or `stream`"));
  keys.key(key_for("stream", Kind::kName, it.stream, "A stream of this server as the target"));
  keys.key(
      with_default(choice("method", it.method, "Of the requests"), delivery::SendMethod::kPost));
  keys.key(headers_key(it.headers));
  keys.key(list_for("eventTypes", Kind::kText, it.event_types,
                    "Which records go there; `Order*` is all that begin so; not set: all"));
  keys.key(with_default(key_for("concurrency", Kind::kNumber, it.concurrency,
                                "Requests under way at once", {1, 10'000}),
                        delivery::kConcurrencyDefault));
  keys.key(
      key_for("rate", Kind::kNumber, it.rate, "Requests a second; 0: no limit", {0, 1'000'000}));
  keys.key(choice("nature", it.nature,
                  "What the endpoint makes of a request that arrives twice: it remembers keys, it "
                  "can be asked, or neither"));
  keys.key(key_for("statusUrl", Kind::kText, it.status_url,
                   "Of probe: what is asked; `{key}` in it stands for the key"));
  keys.section({"timeouts", "How long an attempt may take"}, [&](Keys& in) {
    in.key(with_default(key_for("connect", Kind::kDuration, it.timeouts.connect,
                                "Until there is a connection", kTimeout),
                        delivery::SendTimeouts{}.connect));
    in.key(with_default(
        key_for("request", Kind::kDuration, it.timeouts.request, "The whole attempt", kTimeout),
        delivery::SendTimeouts{}.request));
  });
  keys.section({"breaker", "When an endpoint that fails is left alone"},
               [&](Keys& in) { describe_breaker(in, it.breaker); });
  keys.section({"tls", "Encryption"}, [&](Keys& in) {
    in.key(with_default(
        key_for("verify", Kind::kFlag, it.tls.verify, "Whether the certificate is checked"),
        delivery::EndpointTls{}.verify));
    in.key(key_for("caFile", Kind::kFile, it.tls.ca_file, "PEM, who is trusted"));
    in.key(key_for("serverName", Kind::kText, it.tls.server_name,
                   "The name that the certificate must have, if not that of the URL"));
  });
  keys.section({"auth", "Who we are to the endpoint"},
               [&](Keys& in) { describe_auth(in, it.auth); });
  describe_exchange(keys, it);
}

void describe_delivery(Keys& keys, WrittenDelivery& it) {
  keys.key(with_default(choice("guarantee", it.guarantee, "What is promised"),
                        delivery::DeliveryTerms{}.guarantee));
  keys.key(choice("mechanism", it.mechanism,
                  "How it is kept. It follows from the guarantee; one that cannot is refused"));
  keys.section({"deduplication", "Which records are the same"}, [&](Keys& in) {
    ConfigKey fields = list_for("keyFields", Kind::kWord, it.deduplication.key_fields,
                                "What the idempotency key is made of");
    fields.words = words_of(delivery::KeyField{});
    const delivery::KeyFormat usual;
    for (const delivery::KeyPart& part : usual.parts()) {
      fields.standard_list.push_back(*detail::setting_of(std::get<delivery::KeyField>(part)));
    }
    in.key(fields);
    in.key(with_default(key_for("ttl", Kind::kDuration, it.deduplication.ttl,
                                "How long a key is remembered", kKeptSpan),
                        delivery::DeliveryTerms{}.dedup_ttl));
  });
  keys.section({"retries", "When a delivery that failed is tried again"},
               [&](Keys& in) { describe_retries(in, it.retries); });
  keys.section({"idempotencyKey", "The key that goes with a record"},
               [&](Keys& in) { describe_key(in, it.idempotency_key); });
  keys.key(with_default(key_for("clientGuidance", Kind::kFlag, it.client_guidance,
                                "Whether clients can read what `hapax explain` says"),
                        delivery::DeliveryTerms{}.client_guidance));
  keys.section({"documentation", "What clients are told"},
               [&](Keys& in) { describe_documentation(in, it.documentation); });
}

void describe_workflow(Keys& keys, WrittenWorkflow& it) {
  ConfigKey id = key_for("id", Kind::kName, it.id, "Its name: letters, digits, '-', '_' and '.'");
  id.required = true;
  keys.key(id);
  keys.key(key_for("tenant", Kind::kText, it.tenant,
                   "Whose workflow it is; not set on a server without authentication"));
  keys.key(with_default(key_for("enabled", Kind::kFlag, it.enabled, "Whether it runs"), true));
  keys.section({"ordering", "Order"}, [&](Keys& in) { describe_order(in, it.ordering); });
  keys.section({"deadLetter", "Records that were given up"}, [&](Keys& in) {
    in.key(with_default(key_for("keep", Kind::kDuration, it.dead_letter_keep,
                                "How long a record waits for its delivery at most, then it is a "
                                "dead letter; and how long receivers are told to remember keys "
                                "for replays. Dead letters stay until they are dropped",
                                kKeptSpan),
                        delivery::kDeadLetterKeep));
  });
  keys.section({"retention", "What is kept of records that were delivered"}, [&](Keys& in) {
    in.key(with_default(
        key_for("delivered", Kind::kDuration, it.retention.delivered, "The records", kKeptSpan),
        delivery::KeepTimes{}.delivered));
    in.key(with_default(key_for("attempts", Kind::kDuration, it.retention.attempts,
                                "The log of their attempts; 0: no log is kept", kLogSpan),
                        delivery::KeepTimes{}.attempts));
    in.key(with_default(
        key_for("attemptBytes", Kind::kSize, it.retention.attempt_bytes,
                "That log at most; the oldest attempts go before their time", kLogBytes),
        delivery::KeepTimes{}.attempt_bytes));
  });
  Section delivery{"delivery", "The keys of [delivery](#delivery); what is said here wins"};
  delivery.table = Section::Table::kNone;
  keys.section(delivery, [&](Keys& in) { describe_delivery(in, it.delivery); });
  Section several{"endpoints", "Several of `endpoint`, with the same keys, each with a name"};
  several.table = Section::Table::kNone;
  keys.list(several, it.endpoints.size(), [&](Keys& in, std::size_t index) {
    if (index >= it.endpoints.size()) it.endpoints.resize(index + 1);
    describe_endpoint(in, it.endpoints[index]);
  });
  keys.section(with_table("source", "Where the records of a workflow come from"),
               [&](Keys& in) { describe_source(in, it.source); });
  keys.section(
      with_table("transform", "What is made of a record before it is sent"), [&](Keys& in) {
        in.key(key_for("jq", Kind::kText, it.transform.jq,
                       "A jq program; without one the bytes go out as they came"));
        in.key(with_default(choice("numbers", it.transform.numbers,
                                   "exact: a number that a double cannot hold makes a dead letter; "
                                   "double: it is rounded"),
                            delivery::TransformSettings{}.numbers));
      });
  keys.section(with_table("endpoint", "Where they go"),
               [&](Keys& in) { describe_endpoint(in, it.endpoint); });
}

}  // namespace hapax::config
