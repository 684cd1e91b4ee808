#include "config/workflows.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/load.h"
#include "config/publish.h"
#include "config/unsupported.h"

namespace hapax::config {
namespace {

using namespace delivery;  // NOLINT(google-build-using-namespace)
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

Loaded load_text(const std::string& text, std::vector<Variable> variables = {}) {
  return load(ConfigFile{"h.yaml", text}, variables);
}
std::vector<std::string> lines(const std::vector<ConfigFinding>& findings) {
  std::vector<std::string> all;
  for (const ConfigFinding& finding : findings) all.push_back(finding.text());
  return all;
}
std::vector<std::string> errors_of(const std::string& text) {
  return lines(load_text(text).findings.errors);
}

// A workflow that says everything that belongs together, from and to where the arguments say.
std::string workflow_text(const std::string& source, const std::string& endpoint,
                          const std::string& more = "") {
  return "workflows:\n  - id: orders\n    source: {" + source + "}\n    endpoint: {" + endpoint +
         "}\n" + more;
}
const std::string kStream = "type: stream, stream: orders";
const std::string kUrl = "url: 'https://erp.example/orders'";

// The first Workflow of a file without errors.
Workflow first_workflow(const std::string& text) {
  const Loaded loaded = load_text(text);
  EXPECT_THAT(lines(loaded.findings.errors), IsEmpty()) << text;
  if (loaded.config.workflows.empty()) return Workflow{WorkflowId::parse("none").value()};
  return loaded.config.workflows.front();
}

// Document A, option 4: its three workflows, as printed there.
constexpr const char* kThree = R"(workflows:
  - id: sales-orders-to-erp
    delivery:
      guarantee: exactly-once
      mechanism: transactional-outbox
      deduplication:
        keyFields: [database, table, primaryKey]
        ttl: 30d
    
  - id: product-sync-to-search
    delivery:
      guarantee: at-least-once
      mechanism: kafka-offsets
      retries:
        maxAttempts: 5
        backoffMs: [1000, 2000, 5000, 10000, 30000]
    
  - id: audit-logs-to-warehouse
    delivery:
      guarantee: idempotent-keys
      mechanism: generated-keys
      clientGuidance: true
)";

// Document A, default configuration, as printed there.
constexpr const char* kDefaults = R"(# Default for new workflows
delivery:
  guarantee: idempotent-keys
  mechanism: generated-keys
  
  # Idempotency key generation
  idempotencyKey:
    format: "{database}:{table}:{primaryKey}:{changeVersion}"
    hashAlgorithm: SHA256
    includedInPayload: true
  
  # Retry behavior (platform-side)
  retries:
    enabled: true
    maxAttempts: 5
    backoffMs: [1000, 2000, 5000, 10000, 30000]
    giveUpAfter: 1h
  
  # Client guidance
  documentation:
    deduplicationRequired: true
    sdkAvailable: true
    exampleCode: "https://docs.platform/client-dedup-examples"
)";

TEST(Workflows, TheDocumentsThreeAreUnderstood) {
  const Loaded loaded = load_text(kThree);
  // A4: the key of the first one lacks the version of the change.
  EXPECT_THAT(lines(loaded.findings.errors),
              ElementsAre(AllOf(HasSubstr("h.yaml:7:9: workflows.0.delivery.deduplication.keyFields"
                                          " lacks changeVersion"),
                                HasSubstr("30d"))));
  EXPECT_THAT(lines(loaded.findings.warnings),
              ElementsAre(HasSubstr("h.yaml:2:5: workflows.0.source and endpoint are missing"),
                          HasSubstr("h.yaml:10:5: workflows.1.source and endpoint are missing"),
                          HasSubstr("h.yaml:18:5: workflows.2.source and endpoint are missing")));
  ASSERT_EQ(loaded.config.workflows.size(), 3U);
  const DeliveryTerms& sales = loaded.config.workflows[0].delivery;
  EXPECT_EQ(sales.guarantee, Guarantee::kExactlyOnce);
  EXPECT_EQ(sales.mechanism, Mechanism::kTransactionalOutbox);
  EXPECT_EQ(sales.key.format.text(), "{database}:{table}:{primaryKey}");
  EXPECT_EQ(sales.dedup_ttl, std::chrono::days{30});
  const DeliveryTerms& products = loaded.config.workflows[1].delivery;
  EXPECT_EQ(products.guarantee, Guarantee::kAtLeastOnce);
  EXPECT_EQ(products.retries.attempts_max, 5U);
  EXPECT_EQ(std::get<BackoffList>(products.retries.backoff).pauses.back(), Duration{30'000});
  const DeliveryTerms& audit = loaded.config.workflows[2].delivery;
  EXPECT_EQ(audit.guarantee, Guarantee::kIdempotentKeys);
  EXPECT_TRUE(audit.client_guidance);
}

TEST(Workflows, TheDocumentsDefaultsAreOurs) {
  const std::string workflow = workflow_text(kStream, kUrl);
  Workflow told = first_workflow(kDefaults + workflow);
  EXPECT_EQ(told.delivery.documentation.deduplication_required, true);
  EXPECT_EQ(told.delivery.documentation.sdk_available, true);
  EXPECT_EQ(told.delivery.documentation.example_code,
            "https://docs.platform/client-dedup-examples");
  EXPECT_EQ(told.delivery.mechanism, Mechanism::kGeneratedKeys);
  told.delivery.documentation = {};
  told.delivery.mechanism.reset();
  EXPECT_EQ(told, first_workflow(workflow));
}

TEST(Workflows, BothOfTheDocumentTogether) {
  const Loaded loaded = load_text(std::string(kDefaults) + kThree);
  ASSERT_EQ(loaded.config.workflows.size(), 3U);
  const DeliveryTerms& sales = loaded.config.workflows[0].delivery;
  // The mechanism and the key are the workflow's own, the rest is as in the defaults.
  EXPECT_EQ(sales.mechanism, Mechanism::kTransactionalOutbox);
  EXPECT_EQ(sales.key.format.text(), "{database}:{table}:{primaryKey}");
  EXPECT_EQ(sales.documentation.sdk_available, true);
  EXPECT_EQ(loaded.findings.errors.size(), 1U);
}

TEST(Workflows, AWorkflowWinsOverTheDefaultsKeyByKey) {
  const std::string defaults =
      "delivery: {guarantee: at-least-once, mechanism: kafka-offsets, retries: {maxAttempts: 9, "
      "backoffMs: 100, giveUpAfter: 2h}, deduplication: {keyFields: [primaryKey, changeVersion]}}"
      "\n";
  const Workflow workflow = first_workflow(
      defaults + workflow_text(kStream, kUrl,
                               "    delivery: {guarantee: idempotent-keys, retries: {backoffMs: "
                               "[5, 7]}}\n"));
  EXPECT_EQ(workflow.delivery.guarantee, Guarantee::kIdempotentKeys);
  EXPECT_EQ(workflow.delivery.mechanism, std::nullopt);  // it was that of the other guarantee
  EXPECT_EQ(workflow.delivery.retries.attempts_max, 9U);
  EXPECT_EQ(workflow.delivery.retries.give_up_after, std::chrono::hours{2});
  EXPECT_EQ(workflow.delivery.retries.backoff, Backoff(BackoffList{{Duration{5}, Duration{7}}}));
  EXPECT_EQ(workflow.delivery.key.format.text(), "{primaryKey}:{changeVersion}");
  const Workflow plain = first_workflow(defaults + workflow_text(kStream, kUrl));
  EXPECT_EQ(std::get<ExponentialBackoff>(plain.delivery.retries.backoff).first, Duration{100});
}

TEST(Workflows, TheEnvironmentReachesTheDefaults) {
  const Loaded loaded = load_text(
      workflow_text(kStream, kUrl),
      {{"HAPAX_DELIVERY_GUARANTEE", "at-least-once"}, {"HAPAX_DELIVERY_RETRIES_MAXATTEMPTS", "2"}});
  EXPECT_THAT(lines(loaded.findings.errors), IsEmpty());
  EXPECT_EQ(loaded.config.workflows.at(0).delivery.guarantee, Guarantee::kAtLeastOnce);
  EXPECT_EQ(loaded.config.workflows.at(0).delivery.retries.attempts_max, 2U);
}

TEST(Workflows, AllErrorsAreToldAtOnceWithPlaceAndNearestName) {
  EXPECT_THAT(
      errors_of("workflows:\n"
                "  - id: a\n"
                "    delivery:\n"
                "      retrys: {}\n"
                "      guarantee: exactly-one\n"
                "      deduplication: {keyFields: [database, primarykey], ttl: 30}\n"
                "      retries: {backoffMs: soon, maxAttempts: 0}\n"
                "  - delivery: {retries: {backoffMs: [1, x]}}\n"
                "  - id: b\n"
                "    endpont: {}\n"
                "    endpoint: {eventTypes: Order, headers: [a]}\n"),
      ElementsAre(
          "h.yaml:4:7: workflows.0.delivery.retrys is not known; did you mean 'retries'?",
          "h.yaml:5:18: workflows.0.delivery.guarantee must be one of at-most-once, at-least-once, "
          "idempotent-keys, exactly-once, not 'exactly-one'; did you mean 'exactly-once'?",
          "h.yaml:6:45: workflows.0.delivery.deduplication.keyFields.1 must be one of database, "
          "table, primaryKey, changeVersion, eventType, groupKey, not 'primarykey'; did you mean "
          "'primaryKey'?",
          HasSubstr("h.yaml:6:63: workflows.0.delivery.deduplication.ttl must be a span of time"),
          HasSubstr("h.yaml:7:28: workflows.0.delivery.retries.backoffMs must be a whole number"),
          HasSubstr("h.yaml:7:47: workflows.0.delivery.retries.maxAttempts must be a whole"),
          "h.yaml:8:5: workflows.1.id is missing",
          HasSubstr("h.yaml:8:41: workflows.1.delivery.retries.backoffMs.1 must be a whole number"),
          "h.yaml:10:5: workflows.2.endpont is not known; did you mean 'endpoint'?",
          "h.yaml:11:28: workflows.2.endpoint.eventTypes must be a list, each text, not 'Order'",
          HasSubstr("h.yaml:11:44: workflows.2.endpoint.headers must be names, each with text")));
}

TEST(Workflows, KeysThatDoNotBelongTogetherAreRefused) {
  const auto told = [](const std::string& source, const std::string& endpoint,
                       const std::string& more = "") {
    return errors_of(workflow_text(source, endpoint, more));
  };
  const auto is = [](const std::string& what) { return ElementsAre(HasSubstr(what)); };
  EXPECT_THAT(told("stream: a", kUrl), is("workflows.0.source.type is missing"));
  EXPECT_THAT(told("type: stream", kUrl), is("workflows.0.source.stream is missing"));
  EXPECT_THAT(told("type: http, stream: a", kUrl), is("source.stream is only of a stream"));
  EXPECT_THAT(told("type: stream, stream: a, table: t", kUrl), is("source.table is only of"));
  EXPECT_THAT(told("type: outbox", kUrl), is("source.database is missing"));
  EXPECT_THAT(told("type: outbox, database: 'mysql://p'", kUrl), is("must begin with postgres://"));
  EXPECT_THAT(
      told("type: outbox, database: '${env:D}', table: t, columns: {id: i, payload: p}", kUrl),
      is("source.columns.delivered is missing"));
  EXPECT_THAT(told("type: outbox, database: '${env:D}', columns: {id: i}", kUrl), is("add table"));
  EXPECT_THAT(told(kStream, "method: PUT"), is("workflows.0.endpoint needs either url or stream"));
  EXPECT_THAT(told(kStream, kUrl + ", stream: a"), is("needs either url or stream"));
  EXPECT_THAT(told(kStream, "url: erp"), is("endpoint.url must be a URL"));
  EXPECT_THAT(told(kStream, "stream: out, method: PUT"), is("endpoint.method is only of"));
  EXPECT_THAT(told(kStream, "stream: out, tls: {verify: false}"), is("endpoint.tls is only of"));
  EXPECT_THAT(told(kStream, kUrl + ", method: GET"), is("must be one of POST, PUT, PATCH"));
  EXPECT_THAT(told(kStream, kUrl + ", nature: probe"), is("endpoint.statusUrl is missing"));
  EXPECT_THAT(told(kStream, kUrl + ", nature: probe, statusUrl: 'https://a/'"), is("{key}"));
  EXPECT_THAT(told(kStream, kUrl + ", statusUrl: 'https://a/'"), is("is only of probe"));
  EXPECT_THAT(told(kStream, kUrl + ", auth: {type: bearer}"), is("auth.token is missing"));
  EXPECT_THAT(told(kStream, kUrl + ", auth: {token: '${env:T}'}"), is("is only of bearer"));
  EXPECT_THAT(told(kStream, kUrl + ", auth: {type: mtls, certificate: c}"), is("auth.key is"));
  EXPECT_THAT(told(kStream, kUrl + ", headers: {'a b': c}"), is("a name that no header"));
  EXPECT_THAT(told(kStream, kUrl, "    transform: {numbers: double}\n"), is("transform.jq is"));
  EXPECT_THAT(told(kStream, kUrl, "    endpoints: [{name: a, stream: b}]\n"),
              is("endpoints and endpoint exclude each other"));
  EXPECT_THAT(told(kStream, kUrl, "    ordering: {onFailure: block-for}\n"),
              is("ordering.blockFor is missing"));
  EXPECT_THAT(told(kStream, kUrl, "    ordering: {blockFor: 5m}\n"), is("only of block-for"));
  EXPECT_THAT(told(kStream, kUrl, "    delivery: {idempotencyKey: {format: '{tabel}'}}\n"),
              is("h.yaml:5:33: workflows.0.delivery.idempotencyKey.format names a field"));
  EXPECT_THAT(told(kStream, kUrl,
                   "    delivery: {idempotencyKey: {format: '{primaryKey}'}, deduplication: "
                   "{keyFields: [primaryKey, table]}}\n"),
              is("name different fields"));
  EXPECT_THAT(told(kStream, kUrl, "    delivery: {deduplication: {keyFields: [table, table]}}\n"),
              is("has table twice"));
  EXPECT_THAT(told(kStream, kUrl + ", headers: {X-A: a, x-a: b}"),
              is("headers.x-a is there twice"));
  std::string pauses = "1";
  for (int i = 0; i < 100; ++i) pauses += ",1";
  EXPECT_THAT(told(kStream, kUrl, "    delivery: {retries: {backoffMs: [" + pauses + "]}}\n"),
              is("has 101 pauses, at most 100"));
  EXPECT_THAT(errors_of("workflows: [{id: 'a b'}]"), is("workflows.0.id must be 1 to 100 letters"));
  EXPECT_THAT(errors_of("workflows: [{id: a, endpoints: [{stream: b}]}]"),
              is("endpoints.0.name is missing"));
}

TEST(Workflows, WhatARequestConsistsOfIsUnderstoodStrictly) {
  const auto told = [](const std::string& endpoint) {
    return errors_of(workflow_text(kStream, endpoint));
  };
  const auto is = [](const std::string& what) { return ElementsAre(HasSubstr(what)); };
  EXPECT_THAT(told(kUrl + ", signing: {}"), is("endpoint.signing has no keys"));
  EXPECT_THAT(told(kUrl + ", signing: {keys: [{}]}"), is("signing.keys.0.key is missing"));
  EXPECT_THAT(told(kUrl + ", signing: {keys: [{key: ''}]}"), is("signing.keys.0.key is missing"));
  EXPECT_THAT(told(kUrl + ", signing: {keys: [{key: '${env:K}', from: soon}]}"),
              is("h.yaml:4:86: workflows.0.endpoint.signing.keys.0.from must be a time in UTC"));
  EXPECT_THAT(told(kUrl + ", signing: {keys: [{key: '${env:K}', from: '2026-01-02T00:00:00Z', "
                          "until: '2026-01-02T00:00:00Z'}]}"),
              is("signing.keys.0.until is not later than from"));
  std::string keys;
  for (int i = 0; i < 11; ++i) keys += "{key: '${env:K}'}, ";
  EXPECT_THAT(told(kUrl + ", signing: {keys: [" + keys + "]}"), is("has 11 keys, at most 10"));
  EXPECT_THAT(told(kUrl + ", body: cloudevents-binary"), is("cloudEvents.source is missing"));
  EXPECT_THAT(told(kUrl + ", body: cloudevents-binary, cloudEvents: {source: 'a b'}"),
              is("cloudEvents.source must be a URI reference"));
  EXPECT_THAT(told(kUrl + ", cloudEvents: {source: a}"), is("cloudEvents.source is only of"));
  EXPECT_THAT(told(kUrl + ", body: payload, cloudEvents: {subject: key}"),
              is("cloudEvents.subject is only of"));
  EXPECT_THAT(told(kUrl + ", body: cloudevent"), is("must be one of envelope, payload"));
  EXPECT_THAT(told(kUrl + ", onStatus: {600: retry}"), is("a name that is neither a status"));
  EXPECT_THAT(told(kUrl + ", onStatus: {404: ignore}"),
              is("onStatus.404 must be one of delivered"));
  EXPECT_THAT(told("stream: out, body: payload"), is("endpoint.body is only of"));
  EXPECT_THAT(told("stream: out, signing: {keys: [{key: '${env:K}'}]}"), is("signing is only of"));
  EXPECT_THAT(told("stream: out, onStatus: {404: retry}"), is("endpoint.onStatus is only of"));
}

// A small file must not grow without end: each workflow has a copy of the defaults.
TEST(Workflows, WhatIsCopiedIsBounded) {
  const std::string long_text(2'001, 'x');
  EXPECT_THAT(errors_of("delivery: {documentation: {exampleCode: " + long_text + "}}\n" +
                        workflow_text(kStream, kUrl)),
              ElementsAre(HasSubstr("exampleCode has more than 2000 bytes")));
  std::string many = "workflows:\n";
  for (int i = 0; i < 10'001; ++i) many += "- {id: a}\n";
  EXPECT_THAT(errors_of(many), ElementsAre(HasSubstr("workflows has 10001 elements")));
}

TEST(Workflows, FindingsStandAtTheirPlaceInTheFile) {
  const Loaded loaded = load_text(
      "delivery:\n  deduplication: {ttl: 2m}\n"
      "streams: [{stream: out, window_s: 60}]\n"
      "workflows:\n"
      "  - id: a\n    source: {type: stream, stream: in}\n    endpoint: {stream: out}\n"
      "  - id: a\n    source: {type: stream, stream: in}\n"
      "    endpoint: {url: 'http://erp.example'}\n"
      "  - id: c\n    source: {type: stream, stream: s}\n    endpoint: {stream: s}\n");
  EXPECT_THAT(
      lines(loaded.findings.errors),
      UnorderedElementsAre(HasSubstr("h.yaml:2:19: workflows.1.delivery.deduplication.ttl 2m is"),
                           HasSubstr("h.yaml:7:16: workflows.0.endpoint.stream 'out' remembers"),
                           HasSubstr("h.yaml:8:5: workflows.1.id 'a' is declared twice"),
                           HasSubstr("h.yaml:13:16: workflows.2.endpoint.stream is the source")));
  EXPECT_THAT(lines(loaded.findings.warnings),
              testing::Contains(HasSubstr("h.yaml:10:16: workflows.1.endpoint.url is http to")));
}

TEST(Workflows, KeysOfPublishersAreReadAndHidden) {
  const std::string text = workflow_text(
      kStream + ", signature: {keys: [{key: whsec_hunter2}, {key: '${env:OLD}'}]}", kUrl);
  const Workflow read = first_workflow(text);
  ASSERT_EQ(read.source_keys.size(), 2U);
  EXPECT_EQ(read.source_keys[1].written(), "${env:OLD}");
  EXPECT_THAT(to_json(read, Secrets::kHidden), Not(HasSubstr("hunter2")));
  EXPECT_THAT(errors_of(workflow_text(kStream + ", signature: {}", kUrl)),
              ElementsAre(HasSubstr("source.signature has no keys")));
}

TEST(Workflows, ABreakerIsOfAnEndpointOverHttp) {
  const Workflow read = first_workflow(workflow_text(
      kStream, kUrl + ", breaker: {failures: 7, pause: 2s, pauseMax: 1m, probes: 3}"));
  const delivery::BreakerTerms said{
      .failures = 7, .pause = Duration{2'000}, .pause_max = Duration{60'000}, .probes = 3};
  EXPECT_EQ(read.endpoints.at(0).breaker, said);
  EXPECT_THAT(errors_of(workflow_text(kStream, "stream: out, breaker: {failures: 7}")),
              ElementsAre(HasSubstr("endpoint.breaker is only of an endpoint with url")));
  EXPECT_THAT(errors_of(workflow_text(kStream, kUrl + ", breaker: {pause: 2m, pauseMax: 1m}")),
              ElementsAre(HasSubstr("endpoint.breaker.pause is longer than pauseMax")));
  EXPECT_THAT(errors_of(workflow_text(kStream, kUrl + ", breaker: {probes: 17}")),
              ElementsAre(HasSubstr("endpoint.breaker.probes")));
}

// Every kind of thing that a workflow can say.
const std::vector<std::string>& every_workflow_text() {
  static const std::vector<std::string> kAll{
      "workflows: [{id: draft}]",
      workflow_text(kStream, kUrl),
      workflow_text("type: http", "stream: out, eventTypes: [A, 'B*'], concurrency: 3, rate: 5"),
      workflow_text(kStream + ", signature: {keys: [{key: '${env:NEW}'}, {key: '${env:OLD}'}]}",
                    kUrl),
      workflow_text(kStream, kUrl + ", breaker: {failures: 7, pause: 2s, pauseMax: 1m, probes: 3}"),
      workflow_text(kStream, kUrl,
                    "    delivery: {idempotencyKey: {format: 'x{payload:/a~1b}{header:X-A}'}}\n"),
      workflow_text("type: outbox, database: 'sqlite:shop.db', schema: s, prefix: p_",
                    kUrl + ", method: PATCH, nature: manual, auth: {type: basic, user: me, "
                           "password: '${file:/run/secrets/p}'}"),
      // The table of document B.
      workflow_text(
          "type: outbox, database: '${env:SHOP}', table: public.outbox, columns: {id: id, "
          "key: aggregate_id, type: event_type, payload: payload, created: created_at, "
          "delivered: published_at}",
          kUrl + ", nature: probe, statusUrl: 'https://erp.example/status/{key}', auth: "
                 "{type: bearer, token: '${secret:erp}'}"),
      // The table of document D.
      workflow_text(
          "type: outbox, database: '${env:SHOP}', table: outbox_events, columns: {id: id, "
          "key: aggregate_id, type: event_type, payload: data, headers: metadata, "
          "created: created_at, delivered: published_at, attempts: retry_count, error: "
          "last_error, status: status}",
          kUrl + ", timeouts: {connect: 1s, request: 2s}, tls: {verify: false, caFile: "
                 "ca.pem, serverName: erp}, auth: {type: mtls, certificate: c, key: k}"),
      // The table of document A.
      workflow_text("type: outbox, database: '${env:SHOP}', table: outbox_events, columns: {id: "
                    "event_id, payload: payload, headers: headers, created: created_at, delivered: "
                    "delivered_at, attempts: delivery_attempts, error: last_error}",
                    kUrl + ", headers: {Authorization: 'Bearer ${env:T}', X-Source: shop}, auth: "
                           "{type: oauth2, tokenUrl: 'https://id.example/t', clientId: me, "
                           "clientSecret: '${env:S}', scope: orders}",
                    "    ordering: {key: none, onFailure: block}\n"
                    "    transform: {jq: '.data | {id}', numbers: double}\n"
                    "    enabled: false\n    tenant: acme\n"),
      workflow_text(kStream, kUrl,
                    "    ordering: {onFailure: block-for, blockFor: 10m}\n"
                    "    deadLetter: {keep: 7d}\n    retention: {delivered: 1d, attempts: 2d, "
                    "attemptBytes: 64MiB}\n"
                    "    delivery: {guarantee: exactly-once, mechanism: transactional-outbox, "
                    "clientGuidance: true, deduplication: {ttl: 40d}, retries: {backoffMs: 250, "
                    "backoffMaxMs: 60000, maxAttempts: 12, giveUpAfter: 3d}, idempotencyKey: "
                    "{form: short, includedInPayload: false}, documentation: "
                    "{deduplicationRequired: true}}\n"),
      workflow_text(kStream, kUrl, "    delivery: {retries: {enabled: false, maxAttempts: 4}}\n"),
      workflow_text(
          kStream,
          kUrl + ", signing: {keys: [{key: '${env:OLD}', until: '2026-11-16T05:46:19Z'}, {key: "
                 "'${env:NEW}', from: '2026-11-01T00:00:00.500Z'}]}, body: cloudevents-binary, "
                 "cloudEvents: {source: /shop/orders, subject: key}, onStatus: {404: retry, 4xx: "
                 "dead-letter, '409': delivered}"),
      workflow_text(kStream, kUrl + ", body: cloudevents-structured, cloudEvents: {source: s}"),
      workflow_text(kStream, kUrl + ", body: envelope"),
      workflow_text(kStream, kUrl + ", body: payload"),
      "workflows: [{id: fan, source: {type: stream, stream: s}, endpoints: [{name: a, stream: b}, "
      "{name: b, url: 'https://b.example'}]}]",
  };
  return kAll;
}

TEST(Workflows, WhatIsWrittenAsJsonIsReadAsTheSame) {
  for (const std::string& text : every_workflow_text()) {
    const Workflow workflow = first_workflow(text);
    const std::string json = to_json(workflow, Secrets::kWritten);
    const auto again = workflow_from_json(json);
    ASSERT_TRUE(again.ok()) << json << "\n" << again.error().text();
    EXPECT_EQ(*again, workflow) << json;
    EXPECT_EQ(to_json(*again, Secrets::kWritten), json);
    EXPECT_THAT(json, Not(HasSubstr("{}")));
    EXPECT_THAT(json, Not(HasSubstr("\"\"")));
  }
}

// A configuration that is printed gives the same workflows when it is read.
TEST(Workflows, APrintedConfigurationHasTheSameWorkflows) {
  for (const std::string& text : every_workflow_text()) {
    const Loaded loaded = load_text(text);
    const Loaded again = load_text(to_json(loaded.config));
    EXPECT_THAT(lines(again.findings.errors), IsEmpty());
    EXPECT_EQ(again.config.workflows, loaded.config.workflows) << to_json(loaded.config);
  }
}

// A default must not shorten what `hapax migrate --retention` said.
TEST(Workflows, OnlyARetentionThatSomebodySaidHoldsInADatabase) {
  const std::string outbox = "type: outbox, database: '${env:SHOP}'";
  const std::string says = "    retention: {delivered: 30d}\n";
  EXPECT_FALSE(first_workflow(workflow_text(outbox, kUrl)).retention.shortens_outbox);
  const Workflow said = first_workflow(workflow_text(outbox, kUrl, says));
  EXPECT_TRUE(said.retention.shortens_outbox);
  EXPECT_FALSE(first_workflow(workflow_text(kStream, kUrl, says)).retention.shortens_outbox);
  const auto again = workflow_from_json(to_json(said, Secrets::kWritten));
  EXPECT_EQ(again.value(), said);
}

TEST(Workflows, SecretsAreNotShown) {
  const std::string text = workflow_text(
      "type: outbox, database: 'postgres://u:hunter2@h/db'",
      kUrl +
          ", headers: {X-Api-Key: hunter2, Authorization: 'Bearer ${env:T}', X-Source: shop}, "
          "auth: {type: basic, user: shop, password: hunter2}, signing: {keys: [{key: "
          "whsec_hunter2}]}");
  const Loaded loaded = load_text(text);
  ASSERT_EQ(loaded.config.workflows.size(), 1U);
  const std::string all = to_json(loaded.config);
  const std::string one = to_json(loaded.config.workflows[0], Secrets::kHidden);
  for (const std::string& shown : {all, one}) {
    EXPECT_THAT(shown, Not(HasSubstr("hunter2")));
    EXPECT_THAT(shown, HasSubstr("Bearer ${env:T}"));
    EXPECT_THAT(shown, HasSubstr("shop"));
  }
  EXPECT_THAT(to_json(loaded.config.workflows[0], Secrets::kWritten), HasSubstr("hunter2"));
  for (const std::string& line : lines(loaded.findings.warnings)) {
    EXPECT_THAT(line, Not(HasSubstr("hunter2")));
  }
  EXPECT_THAT(errors_of(workflow_text(kStream, kUrl + ", auth: {type: bearer, token: "
                                                      "'${vault:hunter2}'}")),
              ElementsAre(AllOf(HasSubstr("endpoint.auth.token has a reference"),
                                Not(HasSubstr("hunter2")))));
}

TEST(Workflows, DifferencesAreToldValueByValue) {
  const auto tell = [](const std::string& before, const std::string& after) {
    std::vector<std::string> all;
    for (const auto& one : differences(first_workflow(before), first_workflow(after))) {
      all.push_back(one.path + ": " + one.before + " -> " + one.after);
    }
    return all;
  };
  for (const std::string& text : every_workflow_text()) EXPECT_THAT(tell(text, text), IsEmpty());
  EXPECT_THAT(tell(workflow_text(kStream, kUrl + ", headers: {X-Api-Key: hunter2, X-A: a}"),
                   workflow_text(kStream, kUrl + ", headers: {X-Api-Key: hunter3}, nature: manual",
                                 "    delivery: {retries: {maxAttempts: 6, backoffMs: [1]}}\n")),
              ElementsAre("delivery.retries.backoffMs: [1000,2000,5000,10000,30000] -> [1]",
                          "delivery.retries.maxAttempts: 5 -> 6", "endpoint.headers.X-A: \"a\" -> ",
                          "endpoint.headers.X-Api-Key: \"(hidden)\" -> \"(hidden)\"",
                          "endpoint.nature:  -> \"manual\""));
}

TEST(Workflows, AJsonTextHasTheErrorsOfTheFileAllAtOnce) {
  const auto read = workflow_from_json(
      R"({"id":"a","enabled":"true","delivery":{"retrys":{},"guarantee":3},"source":[1]})");
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, Errc::kInvalidArgument);
  EXPECT_THAT(
      read.error().detail,
      AllOf(HasSubstr("enabled must be true or false; write it without quotes\n"),
            HasSubstr("delivery.retrys is not known; did you mean 'retries'?"),
            HasSubstr("delivery.guarantee must be one of"), HasSubstr("source must be a section")));
  EXPECT_FALSE(workflow_from_json("{").ok());
  EXPECT_FALSE(workflow_from_json("[]").ok());
  EXPECT_FALSE(workflow_from_json("null").ok());
  EXPECT_FALSE(workflow_from_json(R"({"id":"a","id":"b"})").ok());
  EXPECT_THAT(workflow_from_json(R"({"id":"a","source":{"type":"stream"}})").error().detail,
              HasSubstr("source.stream is missing"));
}

TEST(Workflows, AServerSaysWhichOnesItDoesNotRun) {
  EXPECT_THAT(unsupported(load_text(workflow_text(kStream, kUrl)).config).ignored, IsEmpty());
  EXPECT_THAT(unsupported(load_text(workflow_text("type: http", kUrl)).config).ignored, IsEmpty());
  const std::string manual = "url: https://erp.example/o, nature: manual";
  EXPECT_THAT(unsupported(load_text(workflow_text(kStream, manual)).config).ignored,
              ElementsAre(AllOf(HasSubstr("'orders' is declared only"),
                                HasSubstr("with nature manual and guarantee idempotent-keys"))));
}

}  // namespace
}  // namespace hapax::config
