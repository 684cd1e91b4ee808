#include "config/load.h"

#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/format.h"
#include "config/publish.h"
#include "config/unsupported.h"

namespace hapax::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

Loaded read(const std::string& text, std::vector<Variable> variables = {}) {
  return load(ConfigFile{"h.yaml", text}, variables);
}

std::vector<std::string> texts(const std::vector<ConfigFinding>& findings) {
  std::vector<std::string> all;
  for (const ConfigFinding& finding : findings) all.push_back(finding.text());
  return all;
}

std::vector<std::string> errors(const std::string& text, std::vector<Variable> variables = {}) {
  return texts(read(text, std::move(variables)).findings.errors);
}

// The block as document D prints it.
constexpr const char* kBlock = R"(exactly_once_config:
  enabled: true

  deduplication:
    redis_cluster: "redis://redis-cluster:6379"
    default_ttl: "1h"
    max_ttl: "24h"
    key_prefix: "dedup"

  outbox:
    enabled: true
    table_name: "outbox_events"
    batch_size: 100
    poll_interval: "5s"
    max_retries: 3

  monitoring:
    metrics_enabled: true
    prometheus_endpoint: ":9090"
    log_level: "info"

  security:
    require_auth: true
    storage_quota_mb: 100
)";

TEST(Load, ReadsEveryKindOfValue) {
  const Loaded loaded = read(R"(
server:
  data: /srv/hapax
  http: {address: "", tls: }
  resp: {address: "[::1]:7000", tls: {certificate: c.pem, key: k.pem}}
  loops: 4
  drain: 1m30s
store: {memory_max: 512MiB, segment_bytes: 1000000}
log: {format: json, level: warning}
auth: {jwt: {keys: [{file: a.pem, algorithm: ES256, id: "1"}, {jwks: b.json}], leeway: 0s}}
streams:
  - stream: orders
    window_s: 2d
    id_scope: group
    retention_age_ms: 5000
  - {stream: forever, window_s: forever, record_bytes_max: 2KiB}
)");
  EXPECT_THAT(texts(loaded.findings.errors), IsEmpty());
  const Config& config = loaded.config;
  EXPECT_EQ(config.server.http.address, "");
  EXPECT_EQ(config.server.resp.tls.key, "k.pem");
  EXPECT_EQ(config.server.drain, Duration{90'000});
  EXPECT_EQ(config.store.memory_max, std::uint64_t{512} << 20);
  EXPECT_EQ(config.store.segment_bytes, 1'000'000U);
  EXPECT_EQ(config.log.level, LogLevel::kWarning);
  EXPECT_EQ(config.auth.jwt.keys.at(0).algorithm, Algorithm::kEs256);
  EXPECT_EQ(config.auth.jwt.leeway, Duration{0});
  const StreamSettings& orders = config.streams.at(0).settings;
  EXPECT_EQ(orders.window, Window{std::chrono::days{2}});
  EXPECT_EQ(orders.id_scope, IdScope::kGroup);
  EXPECT_EQ(orders.retention.age, Duration{5'000});
  EXPECT_TRUE(config.streams.at(1).settings.window.is_forever());
  EXPECT_EQ(config.streams.at(1).settings.record_bytes_max, 2'048U);
}

TEST(Load, SpansAreUnderstoodAsIso8601WritesThem) {
  const Loaded loaded =
      read("server: {drain: PT1M30S}\nstreams: [{stream: orders, window_s: P7D}]\n");
  ASSERT_THAT(texts(loaded.findings.errors), IsEmpty());
  EXPECT_EQ(loaded.config.server.drain, Duration{90'000});
  EXPECT_EQ(loaded.config.streams.at(0).settings.window, Window{std::chrono::days{7}});
  EXPECT_THAT(errors("server: {drain: P1M}\n"), SizeIs(1));
}

TEST(Load, NothingIsADefaultConfiguration) {
  for (const char* text : {"", "# only words\n", "server:\nstreams:\n", "{}"}) {
    EXPECT_THAT(errors(text), IsEmpty()) << text;
  }
}

TEST(Load, EveryErrorIsToldWithItsPlaceAndTheNearestName) {
  EXPECT_THAT(
      errors("sever: {}\n"
             "server:\n"
             "  htpp: {}\n"
             "  loops: many\n"
             "  readers: 0\n"
             "  drain: 30\n"
             "  open_to_all: yes\n"
             "  data: [a]\n"
             "  loops: 2\n"
             "log: {level: warming}\n"),
      ElementsAre(
          "h.yaml:1:1: sever is not known; did you mean 'server'?",
          "h.yaml:3:3: server.htpp is not known; did you mean 'http'?",
          "h.yaml:4:10: server.loops must be a whole number from 1 to 64, not 'many'",
          "h.yaml:5:12: server.readers must be a whole number from 1 to 256, not '0'",
          "h.yaml:6:10: server.drain must be a span of time from 0s to 1h such as 30s, 5m or 24h, "
          "not '30'",
          "h.yaml:7:16: server.open_to_all must be true or false, not 'yes'",
          "h.yaml:8:9: server.data must be a path, not a list",
          "h.yaml:9:3: server.loops is there twice, first in line 4",
          "h.yaml:10:14: log.level must be one of debug, info, warning, error, not 'warming'; did "
          "you mean 'warning'?"));
}

TEST(Load, AWrongElementDoesNotHideTheNextOne) {
  EXPECT_THAT(errors("streams:\n- a\n-\n- {stram: b, stream: c}\n"),
              ElementsAre("h.yaml:2:3: streams.0 must be a section, not 'a'",
                          "h.yaml:4:1: streams.1.stream is missing",
                          "h.yaml:4:4: streams.2.stram is not known; did you mean 'stream'?"));
}

TEST(Load, AtMostTwentyErrorsAreTold) {
  std::string text;
  for (int i = 0; i < 25; ++i) base::append_format(text, "x{}: 1\n", i);
  const Loaded loaded = read(text);
  EXPECT_EQ(loaded.findings.errors.size(), 20U);
  EXPECT_EQ(loaded.findings.errors_more, 5U);
}

TEST(Load, WhatYamlWouldMisunderstandIsRefused) {
  EXPECT_THAT(errors("auth: {jwt: {issuer: 12, keys: [{jwks: x}]}}"),
              ElementsAre(HasSubstr("write it in quotes")));
  EXPECT_THAT(errors("server: {loops: \"2\"}"), ElementsAre(HasSubstr("without quotes")));
  EXPECT_THAT(errors("server: {loops: }"), ElementsAre(HasSubstr("has no value")));
  EXPECT_THAT(errors("server: &a {}\nstore: *a"), ElementsAre(HasSubstr("h.yaml:1:9: anchors")));
  EXPECT_THAT(errors("server: !!map {}"), ElementsAre(HasSubstr("tags")));
  EXPECT_THAT(errors("a: 1\n---\nb: 2"), ElementsAre(HasSubstr("second document")));
  EXPECT_THAT(errors("server: {loops: 2\n"), ElementsAre(HasSubstr("h.yaml:2:1: ")));
  EXPECT_THAT(errors("[1]"), ElementsAre(HasSubstr("is a section")));
  EXPECT_THAT(errors("? {a: b}\n: c"), ElementsAre(HasSubstr("a key must be text")));
  EXPECT_THAT(errors(std::string(40, '[')), ElementsAre(HasSubstr("too many levels")));
}

// The words of the library do not say what to mend.
TEST(Load, WhatIsNotYamlIsToldWithWhatToDo) {
  const auto is = [](const char* text) { return ElementsAre(HasSubstr(text)); };
  EXPECT_THAT(errors("server:\n\tdata: x\n"), is("h.yaml:2:6: a tab at the beginning of the line"));
  EXPECT_THAT(errors("server:\n  data: x\n   drain: 1s\n"), is(":3:"));
  EXPECT_THAT(errors("server:\n  data: x\n drain: 1s\n"), is("check the indentation"));
  EXPECT_THAT(errors("streams: [{stream: a\n"), is("'}' or ',' is missing"));
  EXPECT_THAT(errors("log: {level: warning\nserver: {data: x}\n"), is("'}' or ',' is missing"));
  EXPECT_THAT(errors("streams: [a\n"), is("']' or ',' is missing"));
  EXPECT_THAT(errors("server: data: x\n"), is("a colon where no key can be"));
}

TEST(Load, BytesThatWouldEndOrFalsifyTheFileAreRefused) {
  // The library takes the byte 4 for the end: what follows would not be read.
  EXPECT_THAT(errors("log: {}\n \x04\nserver: 1"), ElementsAre(HasSubstr("h.yaml:2:2: a control")));
  EXPECT_THAT(errors("log: \xff"), ElementsAre(HasSubstr("not UTF-8")));
  EXPECT_THAT(errors(std::string((1 << 20) + 1, ' ')), ElementsAre(HasSubstr("at most")));
}

TEST(Load, KeysThatBelongTogetherAreChecked) {
  EXPECT_THAT(errors("server: {http: {tls: {key: k}}}"), ElementsAre(HasSubstr("both files")));
  EXPECT_THAT(errors("server: {http: {address: ''}, resp: {address: ''}}"),
              ElementsAre(HasSubstr("nobody could connect")));
  EXPECT_THAT(errors("server: {http: {address: example.com:80}}"),
              ElementsAre(HasSubstr("server.http.address is wrong")));
  EXPECT_THAT(errors("auth:"), ElementsAre(HasSubstr("says nothing")));
  EXPECT_THAT(errors("auth: {jwt: {issuer: me}}"), ElementsAre(HasSubstr("has no keys")));
  EXPECT_THAT(errors("auth: {jwt: {keys: [{file: a}]}}"), ElementsAre(HasSubstr("algorithm")));
  EXPECT_THAT(errors("auth: {jwt: {keys: [{id: a}]}}"), ElementsAre(HasSubstr("file or jwks")));
  EXPECT_THAT(errors("auth: {jwt: {keys: [{file: a, algorithm: none}]}}"),
              ElementsAre(HasSubstr("one of HS256")));
  EXPECT_THAT(errors("streams: [{stream: a}, {stream: a}]"), ElementsAre(HasSubstr("twice")));
  EXPECT_THAT(errors("streams: [{window_s: 5}]"),
              ElementsAre(HasSubstr("streams.0.stream is missing")));
  EXPECT_THAT(errors("streams: [{stream: \"\\x01a\"}]"), ElementsAre(HasSubstr("a name")));
}

TEST(Load, AFaultHidesNoneElsewhere) {
  EXPECT_THAT(errors("server: {loops: x, http: {address: ''}, resp: {address: ''}}\n"
                     "exactly_once_config: {security: {jwt_signing_key: hunter2}}\n"
                     "auth: {jwt: {issuer: me}}\n"
                     "streams: [{stream: a}, {stream: a}]"),
              UnorderedElementsAre(HasSubstr("server.loops"), HasSubstr("nobody could connect"),
                                   HasSubstr("jwt_signing_key"), HasSubstr("has no keys"),
                                   HasSubstr("twice")));
}

// It would be about values that nobody wrote.
TEST(Load, WhatWasNotUnderstoodIsNotJudged) {
  EXPECT_THAT(errors("auth: {required: true, jwt: {keys: 5}}"), ElementsAre(HasSubstr("a list")));
  EXPECT_THAT(errors("streams: [{stream: a, tenant: 5}, {stream: a}]"),
              ElementsAre(HasSubstr("tenant")));
  EXPECT_THAT(errors("auth: [", {{"HAPAX_AUTH_REQUIRED", "true"}}), SizeIs(1));
}

TEST(Load, ATenantTakesFromTheDefaultWhatItDoesNotSay) {
  const Loaded loaded = read(
      "tenants: {default: {rate: 10, storage_max: 1GiB, streams_max: 5}, "
      "acme: {rate: 0, memory_max: 1MiB, transactions_max: 2}}");
  EXPECT_THAT(texts(loaded.findings.errors), IsEmpty());
  EXPECT_EQ(loaded.config.tenants.of("acme").rate, 0U);
  EXPECT_EQ(loaded.config.tenants.of("acme").storage_max, std::uint64_t{1} << 30);
  EXPECT_EQ(loaded.config.tenants.of("acme").streams_max, 5U);
  EXPECT_EQ(loaded.config.tenants.of("acme").memory_max, std::uint64_t{1} << 20);
  EXPECT_EQ(loaded.config.tenants.of("acme").transactions_max, 2U);
  EXPECT_EQ(loaded.config.tenants.of("other").rate, 10U);
  EXPECT_FALSE(loaded.config.tenants.of("other").memory_max);
}

TEST(Load, TheEnvironmentWinsOverTheFile) {
  const Loaded loaded =
      read("server: {loops: 2, readers: 3}", {{"HAPAX_SERVER_LOOPS", "5"},
                                              {"HAPAX_SERVER_HTTP_ADDRESS", ""},
                                              {"HAPAX_TENANTS_DEFAULT_TTL_MAX", "1h"},
                                              {"HAPAX_URL", "x"},
                                              {"HAPAX_LIMIT_DIR", "x"},
                                              {"HAPAX_GOLDEN_MAKE", "x"}});
  EXPECT_THAT(texts(loaded.findings.errors), IsEmpty());
  EXPECT_EQ(loaded.config.server.loops, 5U);
  EXPECT_EQ(loaded.config.server.readers, 3U);
  EXPECT_EQ(loaded.config.server.http.address, "");
  EXPECT_EQ(loaded.config.tenants.others.ttl_max, Duration{3'600'000});
}

TEST(Load, AVariableThatOverridesNothingIsAnError) {
  EXPECT_THAT(errors("", {{"HAPAX_SERVER_LOPS", "5"}}),
              ElementsAre("HAPAX_SERVER_LOPS: overrides no key; lists and named sections are in "
                          "the file only; did you mean HAPAX_SERVER_LOOPS?"));
  EXPECT_THAT(errors("", {{"HAPAX_TENANTS_ACME_RATE", "5"}}), testing::SizeIs(1));
  EXPECT_THAT(errors("", {{"HAPAX_STREAMS", "a"}}), testing::SizeIs(1));
  EXPECT_THAT(errors("", {{"HAPAX_SERVER_LOOPS", "0"}}),
              ElementsAre("HAPAX_SERVER_LOOPS: must be a whole number from 1 to 64, not '0'"));
}

// The block asks for authentication, and says nothing of who could sign in.
std::string block() { return std::string(kBlock) + "auth: {tokens_file: t}\n"; }

TEST(ExactlyOnce, TheBlockIsUnderstoodAndWhatMeansNothingIsTold) {
  EXPECT_THAT(errors(kBlock), ElementsAre(HasSubstr("nobody could sign in")));
  const Loaded loaded = read(block() + "tenants: {acme: {rate: 5}, shop: {rate: 5}}\n");
  EXPECT_THAT(texts(loaded.findings.errors), IsEmpty());
  const Config& config = loaded.config;
  ASSERT_EQ(config.streams.size(), 2U);
  EXPECT_EQ(config.streams[0].stream, "outbox_events");
  EXPECT_EQ(config.streams[0].tenant, "acme");
  EXPECT_EQ(config.streams[1].tenant, "shop");
  EXPECT_EQ(config.streams[1].settings.window, Window{std::chrono::hours{1}});
  EXPECT_EQ(config.streams[1].settings.retention.age, Duration{std::chrono::days{7}});
  EXPECT_TRUE(config.streams[1].settings.retention.acked_by_all);
  EXPECT_EQ(config.tenants.outbox.stream, "outbox_events");
  EXPECT_EQ(config.tenants.outbox.retention, config.streams[1].settings.retention);
  EXPECT_EQ(config.tenants.outbox.attempts_max, 4U);
  EXPECT_EQ(config.tenants.others.ttl_default, Duration{std::chrono::hours{1}});
  EXPECT_EQ(config.tenants.others.ttl_max, Duration{std::chrono::hours{24}});
  EXPECT_EQ(config.tenants.others.total_max, 100'000'000U);
  EXPECT_EQ(config.metrics.address, ":9090");
  EXPECT_EQ(config.log.level, LogLevel::kInfo);
  EXPECT_TRUE(config.auth.required);
  EXPECT_THAT(
      texts(loaded.findings.warnings),
      ElementsAre(HasSubstr("h.yaml:5:5: exactly_once_config.deduplication.redis_cluster"),
                  HasSubstr("key_prefix"), HasSubstr("batch_size"), HasSubstr("poll_interval")));
}

TEST(ExactlyOnce, TheDefaultOfATenantIsTheWindowOfItsStreams) {
  const Loaded loaded = read(
      "exactly_once_config: {deduplication: {default_ttl: 1h, max_ttl: 12h}}\n"
      "auth: {tokens_file: t}\n"
      "tenants: {acme: {ttl_default: 2h}, long: {ttl_default: 13h}}\n"
      "streams: [{stream: s, tenant: acme}, {stream: s, tenant: long}, {stream: s, tenant: other},"
      " {stream: t, tenant: acme, window_s: 60}]\n");
  EXPECT_THAT(texts(loaded.findings.errors), IsEmpty());
  std::vector<std::uint32_t> windows;
  for (const Stream& stream : loaded.config.streams)
    windows.push_back(stream.settings.window.raw());
  EXPECT_THAT(windows, ElementsAre(7200U, 12U * 3600, 3600U, 60U));
  EXPECT_EQ(read("tenants: {default: {ttl_max: 12h}}\nstreams: [{stream: s}]")
                .config.streams.at(0)
                .settings.window,
            Window{std::chrono::hours{12}});
}

TEST(ExactlyOnce, RetriesWithoutAnOutboxAreTold) {
  const Loaded loaded = read("exactly_once_config: {outbox: {max_retries: 3}}");
  EXPECT_THAT(texts(loaded.findings.warnings), ElementsAre(HasSubstr("outbox.enabled is not set")));
  EXPECT_EQ(loaded.config.tenants.outbox.stream, "");
}

TEST(PerformanceSlos, AreUnderstood) {
  const Loaded loaded = read(
      "performance_slos:\n"
      "  idempotency_check_latency_p99: 5ms\n"
      "  dedup_key_write_latency_p99: 10ms\n"
      "  outbox_processing_latency_p95: 50ms\n"
      "  storage_utilization_threshold: 80%\n"
      "  hit_rate_target: 0.95\n");
  EXPECT_THAT(texts(loaded.findings.errors), IsEmpty());
  const std::map<std::string, double> targets = loaded.config.performance_slos.targets();
  EXPECT_EQ(targets.size(), 5U);
  EXPECT_DOUBLE_EQ(targets.at("outbox_processing_latency_p95"), 0.05);
  EXPECT_DOUBLE_EQ(targets.at("storage_utilization_threshold"), 0.8);
  EXPECT_DOUBLE_EQ(targets.at("hit_rate_target"), 0.95);
  for (const char* const wrong : {"80 percent", "120%", "'-1%'", "'%'"}) {
    EXPECT_THAT(errors("performance_slos: {hit_rate_target: " + std::string(wrong) + "}"),
                ElementsAre(HasSubstr("a share such as 80%")))
        << wrong;
  }
}

TEST(ExactlyOnce, TheOutboxIsOfATenantIfThereAreTenants) {
  const std::string outbox = "exactly_once_config: {outbox: {enabled: true, table_name: mine}}\n";
  const Loaded open = read(outbox);
  ASSERT_EQ(open.config.streams.size(), 1U);
  EXPECT_EQ(open.config.streams[0].tenant, "");
  const Loaded unnamed = read(outbox + "auth: {tokens_file: t}\n");
  EXPECT_THAT(unnamed.config.streams, IsEmpty());
  EXPECT_THAT(texts(unnamed.findings.warnings),
              ElementsAre(HasSubstr("let each create its stream 'mine'")));
  const Loaded own = read(outbox +
                          "auth: {tokens_file: t}\n"
                          "tenants: {acme: {rate: 5}}\n"
                          "streams: [{stream: mine, tenant: acme, window_s: 60}]\n");
  ASSERT_EQ(own.config.streams.size(), 1U);
  EXPECT_EQ(own.config.streams[0].settings.window, Window{std::chrono::seconds{60}});
}

TEST(ExactlyOnce, OurOwnKeysWinAndSecretsAreRefused) {
  const Loaded loaded = read(
      "exactly_once_config:\n"
      "  deduplication: {default_ttl: 1h}\n"
      "  monitoring: {log_level: debug}\n"
      "  security: {storage_quota_mb: {acme: 2, default: 1}}\n"
      "log: {level: error}\n"
      "streams: [{stream: a, window_s: 60}, {stream: b}]\n");
  EXPECT_THAT(texts(loaded.findings.errors), IsEmpty());
  EXPECT_EQ(loaded.config.log.level, LogLevel::kError);
  EXPECT_EQ(loaded.config.streams.at(0).settings.window, Window{std::chrono::seconds{60}});
  EXPECT_EQ(loaded.config.streams.at(1).settings.window, Window{std::chrono::hours{1}});
  EXPECT_EQ(loaded.config.tenants.of("acme").total_max, 2'000'000U);
  EXPECT_EQ(loaded.config.tenants.of("other").total_max, 1'000'000U);
  EXPECT_THAT(texts(loaded.findings.warnings), ElementsAre(HasSubstr("log.level is given too")));
  const auto refused = errors("exactly_once_config: {security: {jwt_signing_key: hunter2}}");
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_THAT(refused[0], HasSubstr("auth.jwt.keys"));
  EXPECT_THAT(refused[0], testing::Not(HasSubstr("hunter2")));
}

TEST(Check, RequiredAuthenticationNeedsSomebodyWhoCanSignIn) {
  EXPECT_THAT(errors("auth: {required: true}"), ElementsAre(HasSubstr("nobody could sign in")));
  EXPECT_THAT(errors("auth: {required: true, tokens_file: t}"), IsEmpty());
}

TEST(Unsupported, WhatHasNoEffectIsTold) {
  EXPECT_THAT(unsupported(read("auth: {tokens_file: t}\nstreams: [{stream: s}]").config).ignored,
              ElementsAre(HasSubstr("of no tenant")));
  EXPECT_THAT(unsupported(read("streams: [{stream: s, tenant: a}]").config).ignored,
              ElementsAre(HasSubstr("nobody can sign in to")));
  const Unsupported none = unsupported(Config{});
  EXPECT_THAT(none.refusals, IsEmpty());
  EXPECT_THAT(none.ignored, IsEmpty());
}

// What to_json prints is a file again, with the same values: YAML contains JSON.
TEST(Publish, ValuesArePrintedAsTheyAreRead) {
  const Loaded loaded = read(block());
  const std::string printed = to_json(loaded.config);
  const Loaded again = read(printed);
  EXPECT_THAT(texts(again.findings.errors), IsEmpty());
  EXPECT_EQ(to_json(again.config), printed);
  EXPECT_THAT(printed, testing::Not(HasSubstr("redis-cluster")));
  EXPECT_EQ(to_json(read(to_json(Config{})).config), to_json(Config{}));
}

TEST(Publish, EveryVariableNameIsOfOneKey) {
  const std::string tables = reference_tables();
  std::set<std::string> names;
  std::size_t keys = 0;
  for (std::size_t at = 0; (at = tables.find("\n| `", at)) != std::string::npos;) {
    at += 4;
    std::string name = tables.substr(at, tables.find('`', at) - at);
    for (char& c : name) c = c == '.' ? '_' : c;
    names.insert(name);
    ++keys;
  }
  EXPECT_GT(keys, 60U);
  EXPECT_EQ(names.size(), keys);
}

}  // namespace
}  // namespace hapax::config
