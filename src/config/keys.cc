#include "config/keys.h"

#include <type_traits>

#include "config/alerts.h"
#include "config/key_for.h"
#include "config/workflow_keys.h"

namespace hapax::config {

namespace {

constexpr std::uint64_t kKiB = std::uint64_t{1} << 10;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
constexpr std::uint64_t kTiB = std::uint64_t{1} << 40;
constexpr std::uint64_t kSecond = 1'000;
constexpr std::uint64_t kHour = 3'600 * kSecond;
constexpr std::uint64_t kDay = 24 * kHour;
constexpr Bounds kAnySpan{0, 3'650 * kDay};

ConfigKey reloaded(ConfigKey key) {
  key.reloaded = true;
  return key;
}
ConfigKey required(ConfigKey key) {
  key.required = true;
  return key;
}

void describe_door(Keys& keys, DoorConfig& door) {
  keys.key(key_for("address", Kind::kAddress, door.address,
                   "Where it listens; port 0 takes a free one, empty means not at all"));
  const Section tls{"tls", "Encryption; both files, or none"};
  keys.section(tls, [&](Keys& in) {
    in.key(reloaded(key_for("certificate", Kind::kFile, door.tls.certificate,
                            "PEM, the chain with the server's own certificate first")));
    in.key(reloaded(key_for("key", Kind::kFile, door.tls.key, "PEM, the private key")));
  });
}

ConfigKey address_list(std::string_view name, std::vector<std::string>& values,
                       std::string_view meaning) {
  ConfigKey key{name, Kind::kText, meaning};
  key.put_list = [&values](const std::vector<SettingValue>& settings) {
    values.clear();
    for (const SettingValue& setting : settings) values.push_back(std::get<std::string>(setting));
  };
  key.get_list = [&values] { return std::vector<SettingValue>(values.begin(), values.end()); };
  return key;
}

// What the operator says of endpoints that tenants add over the API.
void describe_endpoints(Keys& keys, Server& server) {
  auto& it = server.endpoints;
  keys.key(address_list("allow", it.allow,
                        "Addresses and ranges (`10.1.0.0/16`) that endpoints of tenants may reach "
                        "beside the public ones"));
  keys.key(key_for("proxy", Kind::kText, it.proxy,
                   "A forward proxy `http://HOST:PORT` that all requests of workflows go through; "
                   "not set: none"));
  keys.key(key_for("proxy_filters", Kind::kFlag, it.proxy_filters,
                   "The proxy refuses addresses that tenants must not reach. Without that word "
                   "their endpoints are sent nothing through a proxy"));
}

void describe_server(Keys& keys, Server& server) {
  keys.key(key_for("data", Kind::kFile, server.data, "The data folder, made if it is missing"));
  keys.key(key_for("store", Kind::kText, server.store,
                   "`postgres://…`: the store is in this database, shared with all processes that "
                   "say the same; there is no data folder then"));
  keys.key(key_for("store_schema", Kind::kText, server.store_schema,
                   "The schema that the store has to itself, made if it is missing"));
  keys.section({"http", "The front door for HTTP"},
               [&](Keys& in) { describe_door(in, server.http); });
  keys.section({"resp", "The front door for the protocol of Redis"},
               [&](Keys& in) { describe_door(in, server.resp); });
  keys.key(key_for("loops", Kind::kNumber, server.loops,
                   "Threads that serve connections, for HTTP and for RESP each", {1, 64}));
  keys.key(key_for("readers", Kind::kNumber, server.readers, "Threads that read from the disk",
                   {1, 256}));
  keys.key(key_for("drain", Kind::kDuration, server.drain,
                   "How long what was begun may take to end after SIGTERM", {0, kHour}));
  keys.key(key_for("open_to_all", Kind::kFlag, server.open_to_all,
                   "Listen beyond this machine although nobody has to sign in"));
  keys.key(key_for("secrets_key", Kind::kSecret, server.secrets_key,
                   "Stored secrets are sealed with it: ${file:PATH} or ${env:NAME}, where 32 bytes "
                   "are in base64; further keys behind the first one unseal only. Not set: no "
                   "secrets can be stored"));
  keys.section({"endpoints", "Requests of workflows"},
               [&](Keys& in) { describe_endpoints(in, server); });
}

void describe_store(Keys& keys, EmbeddedOptions& store) {
  keys.key(key_for("memory_max", Kind::kSize, store.memory_max,
                   "Memory of remembered ids, claims, registers; when full, new ones are refused; "
                   "not set: half of the machine's, or of its control group's, at most 4GiB",
                   {kMiB, 1'024 * kTiB}));
  keys.key(key_for("segment_bytes", Kind::kSize, store.segment_bytes,
                   "Size of a journal file in a data folder", {64 * kKiB, kGiB}));
  keys.key(key_for("snapshot_every_bytes", Kind::kSize, store.snapshot_every_bytes,
                   "Journal written between two snapshots", {64 * kKiB, 1'024 * kTiB}));
  keys.key(key_for("clock_jump_max", Kind::kDuration, store.clock_jump_max,
                   "A larger jump of the clock while the server runs is not believed",
                   {2 * kSecond, kAnySpan.most}));
  keys.key(key_for("accept_clock_jump", Kind::kFlag, store.accept_clock_jump,
                   "A start sets log time to the clock; for the environment, not for a file"));
}

void describe_http_limits(Keys& keys, HttpLimits& http) {
  keys.key(key_for("header_bytes_max", Kind::kSize, http.header_bytes_max,
                   "Request line and header fields", {kKiB, kMiB}));
  keys.key(key_for("fields_max", Kind::kNumber, http.fields_max, "Header fields of a request",
                   {10, 10'000}));
  keys.key(key_for("body_bytes_max", Kind::kSize, http.body_bytes_max, "Body of a request",
                   {kKiB, kGiB}));
  keys.key(key_for("header_time", Kind::kDuration, http.header_time,
                   "From the first byte of a request to the end of its header", {1, kHour}));
  keys.key(key_for("body_time", Kind::kDuration, http.body_time,
                   "From the end of the header to the end of the body", {1, kDay}));
  keys.key(
      key_for("idle_time", Kind::kDuration, http.idle_time, "Between two requests", {1, kDay}));
  keys.key(key_for("pipelined_max", Kind::kNumber, http.pipelined_max,
                   "Requests of a connection that wait for their answers", {1, 10'000}));
}

void describe_resp_limits(Keys& keys, RespLimits& resp) {
  keys.key(key_for("arguments_max", Kind::kNumber, resp.arguments_max, "Arguments of a command",
                   {100, 10'000'000}));
  keys.key(key_for("argument_bytes_max", Kind::kSize, resp.argument_bytes_max, "One argument",
                   {kKiB, kGiB}));
  keys.key(key_for("command_bytes_max", Kind::kSize, resp.command_bytes_max, "A whole command",
                   {kKiB, kGiB}));
  keys.key(key_for("pending_max", Kind::kNumber, resp.pending_max,
                   "Commands of a connection that wait for their answers", {1, 1'000'000}));
  keys.key(key_for("command_time", Kind::kDuration, resp.command_time,
                   "From the first byte of a command to its last; signing in, where it is needed, "
                   "has as long",
                   {1, kDay}));
  keys.key(key_for("idle_time", Kind::kDuration, resp.idle_time,
                   "Between two commands; 0 = for ever", {0, kDay}));
}

void describe_limits(Keys& keys, LimitsConfig& limits) {
  keys.key(key_for("connections_max", Kind::kNumber, limits.connections_max,
                   "Further connections are told so and closed; fewer, if 'ulimit -n' allows fewer",
                   {1, 1'000'000}));
  keys.key(key_for("unsent_bytes_max", Kind::kSize, limits.unsent_bytes_max,
                   "Answers a connection has not taken; then nothing is read from it. The store is "
                   "asked for at most about four times as much for it",
                   {64 * kKiB, kGiB}));
  keys.key(key_for("unsent_time", Kind::kDuration, limits.unsent_time,
                   "A connection that takes nothing of its answers for so long is closed",
                   {1, kDay}));
  keys.key(key_for("read_bytes_max", Kind::kSize, limits.read_bytes_max,
                   "Taken from one connection before others have their turn",
                   {4 * kKiB, 64 * kMiB}));
  keys.section({"http", "Of a request over HTTP"},
               [&](Keys& in) { describe_http_limits(in, limits.http); });
  keys.section({"resp", "Of a command over RESP"},
               [&](Keys& in) { describe_resp_limits(in, limits.resp); });
}

void describe_jwt_key(Keys& keys, JwtKey& key) {
  keys.key(reloaded(key_for("file", Kind::kFile, key.file,
                            "The public key as PEM, or for HS256 the secret; this or jwks")));
  keys.key(reloaded(key_for("jwks", Kind::kFile, key.jwks, "A file of keys as RFC 7517 has them")));
  keys.key(reloaded(word_key<Algorithm>(
      key_for("algorithm", Kind::kWord, key.algorithm,
              "The one algorithm of the key in `file`; a JWKS file says its own"))));
  keys.key(reloaded(key_for("id", Kind::kText, key.id, "The `kid` of tokens signed with it")));
}

void describe_jwt(Keys& keys, Jwt& jwt) {
  keys.list({"keys", "Keys that sign tokens"}, jwt.keys.size(), [&](Keys& in, std::size_t index) {
    if (index >= jwt.keys.size()) jwt.keys.resize(index + 1);
    describe_jwt_key(in, jwt.keys[index]);
  });
  keys.key(reloaded(key_for("issuer", Kind::kText, jwt.issuer, "The `iss` a token must have")));
  keys.key(reloaded(key_for("audience", Kind::kText, jwt.audience, "The `aud` a token must have")));
  keys.key(reloaded(key_for("type", Kind::kText, jwt.type,
                            "The `typ` that the header of a token must have, such as at+jwt")));
  keys.key(reloaded(
      key_for("tenant_claim", Kind::kText, jwt.tenant_claim, "The claim that names the tenant")));
  keys.key(reloaded(
      key_for("roles_claim", Kind::kText, jwt.roles_claim, "The claim that lists the roles")));
  keys.key(reloaded(key_for("leeway", Kind::kDuration, jwt.leeway,
                            "How far clocks may differ at `exp` and `nbf`", {0, 300 * kSecond})));
}

void describe_auth(Keys& keys, Auth& auth) {
  keys.key(key_for("required", Kind::kFlag, auth.required, "Do not start if nobody could sign in"));
  keys.section({"jwt", "Signed tokens (RFC 7519)"}, [&](Keys& in) { describe_jwt(in, auth.jwt); });
  keys.key(reloaded(
      key_for("tokens_file", Kind::kFile, auth.tokens_file, "A file of API tokens, as hashes")));
}

void describe_tenant(Keys& keys, TenantLimits& tenant) {
  constexpr Bounds kCount{0, 1'000'000'000};
  keys.key(reloaded(
      key_for("storage_max", Kind::kSize, tenant.storage_max, "Stored bytes; 0 = no limit")));
  keys.key(reloaded(key_for("total_max", Kind::kSize, tenant.total_max,
                            "Stored bytes and memory of all that is remembered, together; 0 = no "
                            "limit")));
  keys.key(reloaded(
      key_for("rate", Kind::kNumber, tenant.rate, "Operations a second; 0 = no limit", kCount)));
  keys.key(reloaded(key_for("burst", Kind::kNumber, tenant.burst,
                            "Operations at once above the rate; 0 = as many as the rate", kCount)));
  keys.key(reloaded(key_for("ttl_max", Kind::kDuration, tenant.ttl_max,
                            "Longest time something may be kept; 0 = no limit", kAnySpan)));
  keys.key(reloaded(key_for("ttl_default", Kind::kDuration, tenant.ttl_default,
                            "How long something is kept if a request does not say; not set: 1d, "
                            "and plain keys stay",
                            {kSecond, 400 * kDay})));
  keys.key(reloaded(key_for("connections_max", Kind::kNumber, tenant.connections_max,
                            "Connections at once; 0 = no limit", kCount)));
  keys.key(reloaded(key_for("memory_max", Kind::kSize, tenant.memory_max,
                            "Memory of all that is remembered; 0 = no limit; not set: see above")));
  keys.key(reloaded(key_for("streams_max", Kind::kNumber, tenant.streams_max,
                            "Streams; 0 = no limit; not set: see above", kCount)));
  keys.key(reloaded(key_for("transactions_max", Kind::kNumber, tenant.transactions_max,
                            "Open transactions; 0 = no limit; not set: see above", kCount)));
  keys.key(reloaded(key_for("workflows_max", Kind::kNumber, tenant.workflows_max,
                            "Workflows that are declared over the API; 0 = no limit; not set: 100",
                            kCount)));
  keys.key(reloaded(key_for("endpoints_max", Kind::kNumber, tenant.endpoints_max,
                            "Endpoints of these workflows, together; 0 = no limit; not set: 1000",
                            kCount)));
}

void describe_tenants(Keys& keys, Tenants& tenants) {
  keys.section({"default", "Limits of every tenant that has none of its own"},
               [&](Keys& in) { describe_tenant(in, tenants.others); });
  std::vector<std::string> names;
  for (const auto& [name, limits] : tenants.named) names.push_back(name);
  keys.others({"NAME", "Limits of the tenant of that name"}, names,
              [&](Keys& in, const std::string& name) { describe_tenant(in, tenants.named[name]); });
}

// The settings of a stream, which the room wire has described already, as keys.
class StreamKeys {
 public:
  explicit StreamKeys(Keys& keys) : keys_(keys) {}

  template <class Value>
  void optional(std::string_view name, Value& value, const wire::About& about) {
    const Kind kind = kind_of(name, value);
    ConfigKey key = key_for(name, kind, value, about.help, bounds_of(kind, about.allowed));
    if constexpr (std::is_enum_v<Value>) key = word_key<Value>(std::move(key));
    keys_.key(key);
  }

 private:
  static Kind kind_of(std::string_view, const bool&) { return Kind::kFlag; }
  static Kind kind_of(std::string_view, const Window&) { return Kind::kWindow; }
  static Kind kind_of(std::string_view, const std::optional<Duration>&) { return Kind::kDuration; }
  template <class Other>
  static Kind kind_of(std::string_view name, const Other&) {
    return name.find("bytes") == std::string_view::npos ? Kind::kNumber : Kind::kSize;
  }

  static Bounds bounds_of(Kind kind, const wire::Allowed& allowed) {
    const Bounds usual = kind == Kind::kDuration ? kAnySpan : Bounds{};
    return {static_cast<std::uint64_t>(allowed.least.value_or(0)),
            allowed.most.value_or(usual.most)};
  }

  Keys& keys_;
};

void describe_stream(Keys& keys, Stream& stream) {
  keys.key(required(key_for("stream", Kind::kName, stream.stream, "Name of the stream")));
  keys.key(key_for("tenant", Kind::kText, stream.tenant,
                   "Whose stream it is; empty on a server without authentication"));
  StreamKeys settings(keys);
  wire::settings_fields(settings, stream.settings);
}

void describe_deduplication(Keys& keys, ExactlyOnce& block) {
  auto& it = block.deduplication;
  keys.key(key_for("redis_cluster", Kind::kText, it.redis_cluster,
                   "Nothing: ids are kept by Hapax itself (warning)"));
  keys.key(key_for("default_ttl", Kind::kDuration, it.default_ttl, "`tenants.default.ttl_default`",
                   {kSecond, 400 * kDay}));
  keys.key(key_for("max_ttl", Kind::kDuration, it.max_ttl, "`tenants.default.ttl_max`", kAnySpan));
  keys.key(key_for("key_prefix", Kind::kText, it.key_prefix,
                   "Nothing: scopes and tenants keep keys apart (warning)"));
}

void describe_outbox(Keys& keys, ExactlyOnce& block) {
  auto& it = block.outbox;
  keys.key(key_for("enabled", Kind::kFlag, it.enabled,
                   "A stream for the outbox is made at start, with `retention_acked_by_all` and "
                   "`retention_age_ms` of seven days; with authentication one for each tenant that "
                   "`tenants` names, and others get the same if they make a stream of that name"));
  keys.key(key_for("table_name", Kind::kName, it.table_name, "Name of that stream"));
  keys.key(key_for("batch_size", Kind::kNumber, it.batch_size,
                   "Nothing: each receive says how many it takes (warning)"));
  keys.key(key_for("poll_interval", Kind::kDuration, it.poll_interval,
                   "Nothing: who waits is woken at once (warning)"));
  keys.key(key_for("max_retries", Kind::kNumber, it.max_retries,
                   "`attempts_max` of the consumers of that stream that do not set it: one more, "
                   "for the first try",
                   {0, limits::kAttemptsMax - 1}));
}

void describe_monitoring(Keys& keys, ExactlyOnce& block) {
  auto& it = block.monitoring;
  keys.key(key_for("metrics_enabled", Kind::kFlag, it.metrics_enabled,
                   "Nothing: metrics are always counted (warning if false)"));
  keys.key(
      key_for("prometheus_endpoint", Kind::kAddress, it.prometheus_endpoint, "`metrics.address`"));
  keys.key(word_key<LogLevel>(key_for("log_level", Kind::kWord, it.log_level, "`log.level`")));
}

void describe_security(Keys& keys, ExactlyOnce& block) {
  auto& it = block.security;
  keys.key(key_for("require_auth", Kind::kFlag, it.require_auth, "`auth.required`"));
  keys.key(key_for("jwt_signing_key", Kind::kText, it.jwt_signing_key,
                   "Refused: keys are in files of their own, see `auth.jwt.keys`"));
  ConfigKey quota =
      key_for("storage_quota_mb", Kind::kNumber, it.storage_quota_mb,
              "`tenants.default.total_max` in units of 1,000,000 bytes; a map of tenants "
              "to numbers is `tenants.NAME.total_max`",
              {0, 1'000'000'000});
  quota.put_named = [&it](const std::string& name, const SettingValue& setting) {
    it.storage_quota_mb_of[name] = std::get<std::uint64_t>(setting);
  };
  keys.key(quota);
  keys.key(key_for("max_ttl", Kind::kDuration, it.max_ttl, "`tenants.default.ttl_max`", kAnySpan));
}

void describe_exactly_once(Keys& keys, ExactlyOnce& block) {
  keys.key(key_for("enabled", Kind::kFlag, block.enabled,
                   "Nothing: what has an id happens once (warning if false)"));
  keys.section({"deduplication", "Ids and how long they are remembered"},
               [&](Keys& in) { describe_deduplication(in, block); });
  keys.section({"outbox", "The outbox"}, [&](Keys& in) { describe_outbox(in, block); });
  keys.section({"monitoring", "Metrics and logs"},
               [&](Keys& in) { describe_monitoring(in, block); });
  keys.section({"security", "Who may, and how much"},
               [&](Keys& in) { describe_security(in, block); });
}

void describe_slos(Keys& keys, PerformanceSlos& slos) {
  constexpr std::string_view kTold = "`hapax_slo_target` in the metrics";
  keys.key(key_for("idempotency_check_latency_p99", Kind::kDuration,
                   slos.idempotency_check_latency_p99, kTold));
  keys.key(key_for("dedup_key_write_latency_p99", Kind::kDuration, slos.dedup_key_write_latency_p99,
                   kTold));
  keys.key(key_for("outbox_processing_latency_p95", Kind::kDuration,
                   slos.outbox_processing_latency_p95, kTold));
  keys.key(key_for("storage_utilization_threshold", Kind::kText, slos.storage_utilization_threshold,
                   "The same: a share such as 80%"));
  keys.key(key_for("hit_rate_target", Kind::kText, slos.hit_rate_target,
                   "The same: a share such as 95%"));
}

void describe_log(Keys& keys, Log& log) {
  keys.key(word_key<LogFormat>(key_for("format", Kind::kWord, log.format, "How lines look")));
  keys.key(reloaded(word_key<LogLevel>(
      key_for("level", Kind::kWord, log.level, "The least important lines that are written"))));
  keys.key(key_for("requests", Kind::kFlag, log.requests,
                   "A line of level info for every request over HTTP"));
}

void describe_metrics(Keys& keys, Metrics& metrics) {
  keys.key(key_for("address", Kind::kAddress, metrics.address,
                   "An address of their own; empty: /metrics on the address of HTTP"));
  keys.key(key_for("open", Kind::kFlag, metrics.open, "Show them to whoever does not sign in"));
  keys.key(key_for("endpoints_max", Kind::kNumber, metrics.endpoints_max,
                   "Endpoints of one workflow with series of their own; those of its further "
                   "endpoints are summed as `(others)`",
                   {0, 1'000}));
}

}  // namespace

void describe(Keys& keys, Config& config) {
  keys.section({"server", "The process and its front doors"},
               [&](Keys& in) { describe_server(in, config.server); });
  keys.section({"store", "The store in the data folder"},
               [&](Keys& in) { describe_store(in, config.store); });
  keys.section({"limits", "What one connection or request may take"},
               [&](Keys& in) { describe_limits(in, config.limits); });
  keys.section({"auth", "Who may sign in"}, [&](Keys& in) { describe_auth(in, config.auth); });
  keys.section({"tenants", "What each tenant may take"},
               [&](Keys& in) { describe_tenants(in, config.tenants); });
  keys.section({"log", "What is written to standard error"},
               [&](Keys& in) { describe_log(in, config.log); });
  keys.section({"metrics", "Figures for Prometheus"},
               [&](Keys& in) { describe_metrics(in, config.metrics); });
  keys.list({"streams", "Streams that are there when the server starts"}, config.streams.size(),
            [&](Keys& in, std::size_t index) {
              if (index >= config.streams.size()) config.streams.resize(index + 1);
              describe_stream(in, config.streams[index]);
            });
  keys.section({"exactly_once_config", "The block of that name, as other systems have it"},
               [&](Keys& in) { describe_exactly_once(in, config.exactly_once); });
  keys.section({"performance_slos", "The block of that name, as other systems have it"},
               [&](Keys& in) { describe_slos(in, config.performance_slos); });
  keys.section({"delivery", "Terms of delivery, for workflows that do not say otherwise"},
               [&](Keys& in) { describe_delivery(in, config.delivery); });
  keys.list({"workflows", "Deliveries from a source to endpoints: [workflows](workflows.md)"},
            config.written_workflows.size(), [&](Keys& in, std::size_t index) {
              auto& all = config.written_workflows;
              if (index >= all.size()) all.resize(index + 1);
              describe_workflow(in, all[index]);
            });
  keys.list({"alerts", "When somebody is told that something is wrong: [alerts](alerts.md)"},
            config.written_alerts.size(), [&](Keys& in, std::size_t index) {
              auto& all = config.written_alerts;
              if (index >= all.size()) all.resize(index + 1);
              describe_alert(in, all[index]);
            });
}

}  // namespace hapax::config
