#include "config/exactly_once.h"

#include <algorithm>
#include <utility>

namespace hapax::config {

namespace {

constexpr std::uint64_t kMegabyte = 1'000'000;
constexpr Retention kOutboxRetention{.age = std::chrono::days{7}, .acked_by_all = true};

class Translation {
 public:
  Translation(Config& config, const Given& given, ConfigFindings& findings)
      : config_(config), block_(config.exactly_once), given_(given), findings_(findings) {}

  void run() {
    if (block_.enabled == false) {
      warn("enabled", "is without effect: what has an id happens once; leave ids out instead");
    }
    deduplication();
    security();  // It may name tenants.
    const bool whole = findings_.understood("auth") && findings_.understood("tenants") &&
                       findings_.understood("streams");
    if (whole) outbox();
    monitoring();
  }

 private:
  [[nodiscard]] Place place(std::string_view field) const {
    const auto found = given_.find("exactly_once_config." + std::string(field));
    return found == given_.end() ? Place{} : found->second;
  }
  void warn(std::string_view field, std::string_view what) {
    findings_.warning(place(field),
                      "exactly_once_config." + std::string(field) + " " + std::string(what));
  }
  void error(std::string_view field, std::string_view what) {
    findings_.error(place(field),
                    "exactly_once_config." + std::string(field) + " " + std::string(what));
  }
  // Whether the field may become our key; if not, the reader is told which of the two holds.
  bool takes(std::string_view field, const std::string& key) {
    if (!given_.contains(key)) return true;
    warn(field, "is without effect: " + key + " is given too");
    return false;
  }

  void deduplication() {
    const auto& it = block_.deduplication;
    if (it.redis_cluster) {
      warn("deduplication.redis_cluster",
           "is without effect: Hapax keeps the ids itself; clients of Redis connect to "
           "server.resp.address");
    }
    if (it.key_prefix) {
      warn("deduplication.key_prefix",
           "is without effect: scopes and tenants keep keys apart, without a prefix");
    }
    if (it.default_ttl && takes("deduplication.default_ttl", "tenants.default.ttl_default")) {
      config_.tenants.others.ttl_default = it.default_ttl;
    }
    if (it.max_ttl && takes("deduplication.max_ttl", "tenants.default.ttl_max")) {
      config_.tenants.others.ttl_max = it.max_ttl;
    }
  }

  void outbox() {
    const auto& it = block_.outbox;
    if (it.batch_size) {
      warn("outbox.batch_size", "is without effect: each receive says how many it takes (max)");
    }
    if (it.poll_interval) {
      warn("outbox.poll_interval", "is without effect: who waits for records is woken at once");
    }
    if (it.enabled != true) {
      if (it.max_retries) {
        warn("outbox.max_retries", "is without effect: outbox.enabled is not set");
      }
      return;
    }
    config_.tenants.outbox = {it.table_name, kOutboxRetention, 0};
    if (it.max_retries) {
      // The first try is none.
      config_.tenants.outbox.attempts_max = static_cast<std::uint32_t>(*it.max_retries + 1);
    }
    if (!config_.auth.configured()) return make_outbox("");
    for (const auto& [tenant, limits] : config_.tenants.named) make_outbox(tenant);
    if (config_.tenants.named.empty()) {
      warn("outbox.enabled",
           "makes no stream: with authentication each tenant has an outbox of its own, and "
           "`tenants` names none; let each create its stream '" +
               it.table_name + "'");
    }
  }

  void make_outbox(const std::string& tenant) {
    const std::string& name = block_.outbox.table_name;
    const auto same = [&](const Stream& stream) {
      return stream.stream == name && stream.tenant == tenant;
    };
    if (std::any_of(config_.streams.begin(), config_.streams.end(), same)) return;
    Stream& made = config_.streams.emplace_back(Stream{name, tenant});
    made.settings.retention = kOutboxRetention;
  }

  void monitoring() {
    const auto& it = block_.monitoring;
    if (it.metrics_enabled == false) {
      warn("monitoring.metrics_enabled", "is without effect: metrics are always counted");
    }
    if (it.prometheus_endpoint && takes("monitoring.prometheus_endpoint", "metrics.address")) {
      config_.metrics.address = *it.prometheus_endpoint;
    }
    if (it.log_level && takes("monitoring.log_level", "log.level")) {
      config_.log.level = *it.log_level;
    }
  }

  void security() {
    const auto& it = block_.security;
    if (it.jwt_signing_key) {
      error("security.jwt_signing_key",
            "is refused: a secret does not belong here; put it into a file of its own and name "
            "that in auth.jwt.keys, with algorithm HS256");
    }
    if (it.require_auth && takes("security.require_auth", "auth.required")) {
      config_.auth.required = *it.require_auth;
    }
    if (it.max_ttl && block_.deduplication.max_ttl && it.max_ttl != block_.deduplication.max_ttl) {
      error("security.max_ttl", "differs from exactly_once_config.deduplication.max_ttl");
    } else if (it.max_ttl && takes("security.max_ttl", "tenants.default.ttl_max")) {
      config_.tenants.others.ttl_max = it.max_ttl;
    }
    if (it.storage_quota_mb && takes("security.storage_quota_mb", "tenants.default.total_max")) {
      config_.tenants.others.total_max = *it.storage_quota_mb * kMegabyte;
    }
    for (const auto& [tenant, megabytes] : it.storage_quota_mb_of) {
      if (!takes("security.storage_quota_mb", "tenants." + tenant + ".total_max")) continue;
      TenantLimits& limits =
          tenant == "default" ? config_.tenants.others : config_.tenants.named[tenant];
      limits.total_max = megabytes * kMegabyte;
    }
  }

  Config& config_;
  const ExactlyOnce block_;
  const Given& given_;
  ConfigFindings& findings_;
};

}  // namespace

void apply_exactly_once(Config& config, const Given& given, ConfigFindings& findings) {
  // What was not understood cannot be translated.
  if (!findings.understood("exactly_once_config")) return;
  Translation(config, given, findings).run();
}

}  // namespace hapax::config
