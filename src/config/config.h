// What a server is told before it starts: the plain values of hapax.yaml, its defaults included.
// Which keys there are, and what they mean, is described once, in keys.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <hapax/embedded.h>
#include <hapax/ops.h>
#include <hapax/time.h>

#include "alerts/rule.h"
#include "config/written_alert.h"
#include "config/written_workflow.h"
#include "delivery/workflow.h"

namespace hapax::config {

struct Tls {
  std::string certificate;
  std::string key;
  [[nodiscard]] bool used() const { return !certificate.empty() || !key.empty(); }
};

struct DoorConfig {
  std::string address;  // empty: no such door
  Tls tls{};
};

struct Server {
  std::string data = "./hapax-data";
  std::string store;  // a database instead of the data folder; empty: none
  std::string store_schema = "hapax_store";
  DoorConfig http{"127.0.0.1:7171"};
  DoorConfig resp{"127.0.0.1:7172"};
  std::uint32_t loops = 1;
  std::uint32_t readers = 4;
  Duration drain{std::chrono::seconds{10}};
  bool open_to_all = false;
  std::string secrets_key;  // a reference to the key that stored secrets are sealed with
  struct {
    std::vector<std::string> allow;  // ranges of addresses
    std::string proxy;               // a URL; empty: none
    bool proxy_filters = false;
  } endpoints;
};

// The same defaults as http::SessionLimits; a test of the room serve compares.
struct HttpLimits {
  std::size_t header_bytes_max = std::size_t{32} << 10;
  std::size_t fields_max = 100;
  std::size_t body_bytes_max = std::size_t{48} << 20;
  Duration header_time{std::chrono::seconds{10}};
  Duration body_time{std::chrono::seconds{60}};
  Duration idle_time{std::chrono::seconds{75}};
  std::size_t pipelined_max = 64;
};

struct RespLimits {
  std::size_t arguments_max = 1'000'000;
  std::size_t argument_bytes_max = std::size_t{16} << 20;
  std::size_t command_bytes_max = std::size_t{48} << 20;
  std::size_t pending_max = 10'000;
  Duration command_time{std::chrono::seconds{60}};
  Duration idle_time{0};
};

struct LimitsConfig {
  std::size_t connections_max = 10'000;
  std::size_t unsent_bytes_max = std::size_t{4} << 20;
  Duration unsent_time{std::chrono::seconds{60}};
  std::size_t read_bytes_max = std::size_t{1} << 20;
  HttpLimits http;
  RespLimits resp;
};

enum class Algorithm : std::uint8_t { kHs256, kRs256, kEs256, kEdDsa };

// Exactly one of file and jwks. With a file comes its one algorithm; a JWKS file says it per key.
struct JwtKey {
  std::string file;
  std::string jwks;
  std::optional<Algorithm> algorithm;
  std::string id;
};

struct Jwt {
  std::vector<JwtKey> keys;
  std::string issuer;
  std::string audience;
  std::string type;
  std::string tenant_claim = "tenant";
  std::string roles_claim = "roles";
  Duration leeway{std::chrono::seconds{30}};
};

struct Auth {
  bool required = false;
  Jwt jwt;
  std::string tokens_file;
  // Somebody can sign in.
  [[nodiscard]] bool configured() const { return !jwt.keys.empty() || !tokens_file.empty(); }
};

// What is not set is as for the default tenant. There, not set and 0 both mean no limit, but for
// the last five: not set, tenants that sign in have a fair share of what a store has, and every
// tenant a number of workflows.
struct TenantLimits {
  std::optional<std::uint64_t> storage_max;
  std::optional<std::uint64_t> total_max;
  std::optional<std::uint64_t> rate;  // operations a second
  std::optional<std::uint64_t> burst;
  std::optional<Duration> ttl_max;
  std::optional<Duration> ttl_default;
  std::optional<std::uint64_t> connections_max;
  std::optional<std::uint64_t> memory_max;
  std::optional<std::uint64_t> streams_max;
  std::optional<std::uint64_t> transactions_max;
  std::optional<std::uint64_t> workflows_max;  // those that are declared over the API …
  std::optional<std::uint64_t> endpoints_max;  // … and their endpoints
};

// The stream of outbox events that exactly_once_config asks for; each tenant has its own.
struct Outbox {
  std::string stream;  // empty: none is asked for
  Retention retention{};
  std::uint32_t attempts_max = 0;  // of its consumers; 0: as of any other
};

struct Tenants {
  TenantLimits others;                        // `default` in the file
  std::map<std::string, TenantLimits> named;  // as written: see of()
  Outbox outbox{};                            // of every tenant
  // The limits a tenant really has.
  [[nodiscard]] TenantLimits of(const std::string& name) const;
  // How long an id of its streams is remembered where nobody says.
  [[nodiscard]] Window window_of(const std::string& name) const;
};

enum class LogFormat : std::uint8_t { kText, kJson };
enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarning, kError };

struct Log {
  LogFormat format = LogFormat::kText;
  LogLevel level = LogLevel::kInfo;
  bool requests = false;  // a line for each, over HTTP
};

struct Metrics {
  std::string address;                // empty: on the address of HTTP
  bool open = false;                  // without signing in
  std::uint32_t endpoints_max = 100;  // of a workflow, with series of their own
};

struct Stream {
  std::string stream;
  std::string tenant;  // empty: of the server without tenants
  StreamSettings settings{};
};

// The block `exactly_once_config` that other systems share; exactly_once.h says what becomes of it.
struct ExactlyOnce {
  std::optional<bool> enabled;
  struct {
    std::optional<std::string> redis_cluster;
    std::optional<Duration> default_ttl;
    std::optional<Duration> max_ttl;
    std::optional<std::string> key_prefix;
  } deduplication;
  struct {
    std::optional<bool> enabled;
    std::string table_name = "outbox_events";
    std::optional<std::uint64_t> batch_size;
    std::optional<Duration> poll_interval;
    std::optional<std::uint64_t> max_retries;
  } outbox;
  struct {
    std::optional<bool> metrics_enabled;
    std::optional<std::string> prometheus_endpoint;
    std::optional<LogLevel> log_level;
  } monitoring;
  struct {
    std::optional<bool> require_auth;
    std::optional<std::string> jwt_signing_key;
    std::optional<std::uint64_t> storage_quota_mb;
    std::map<std::string, std::uint64_t> storage_quota_mb_of;
    std::optional<Duration> max_ttl;
  } security;
};

// The block `performance_slos` that other systems share: what the metrics are held against.
struct PerformanceSlos {
  std::optional<Duration> idempotency_check_latency_p99;
  std::optional<Duration> dedup_key_write_latency_p99;
  std::optional<Duration> outbox_processing_latency_p95;
  std::optional<std::string> storage_utilization_threshold;  // "80%"
  std::optional<std::string> hit_rate_target;
  // By name, in seconds and shares of 1. REQUIRES: the configuration was checked.
  [[nodiscard]] std::map<std::string, double> targets() const;
};
// A share of 1: "80%", or "0.8". Nothing if it is none.
[[nodiscard]] std::optional<double> parse_share(const std::string& text);

struct Config {
  Server server;
  EmbeddedOptions store;
  LimitsConfig limits;
  Auth auth;
  Tenants tenants;
  Log log;
  Metrics metrics;
  std::vector<Stream> streams;
  ExactlyOnce exactly_once;
  PerformanceSlos performance_slos;
  WrittenDelivery delivery;  // what a workflow does not say
  std::vector<WrittenWorkflow> written_workflows;
  std::vector<WrittenAlert> written_alerts;
  std::vector<alerts::Rule> alerts;           // made of what was written: see alerts.h
  std::vector<delivery::Workflow> workflows;  // made of what was written: see workflows.h
};

}  // namespace hapax::config
