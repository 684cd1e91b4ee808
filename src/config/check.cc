#include "config/check.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "base/tenant_frame.h"

namespace hapax::config {

namespace {

struct Check {
  const Config& config;
  const Given& given;
  ConfigFindings& findings;

  void error(const std::string& path, const std::string& what) const {
    findings.error(place_of(given, path), path + " " + what);
  }

  void tls(const std::string& path, const Tls& files) const {
    if (files.certificate.empty() != files.key.empty()) {
      error(path, "needs both files, certificate and key");
    }
  }

  // The key itself in this file would lie beside what it protects.
  void secrets_key() const {
    const std::string path = "server.secrets_key";
    const auto text = delivery::SecretText::parse(config.server.secrets_key);
    if (!text) return;  // It was told where it was read.
    const bool stored = text->refers_to(delivery::SecretReference::Place::kStored);
    if (text->has_clear_text() || stored) {
      error(path, "must be a reference: ${file:PATH} or ${env:NAME}");
    }
  }

  void doors() const {
    tls("server.http.tls", config.server.http.tls);
    tls("server.resp.tls", config.server.resp.tls);
    if (config.server.data.empty()) error("server.data", "must not be empty");
    secrets_key();
    if (config.server.http.address.empty() && config.server.resp.address.empty()) {
      error("server.http.address", "and server.resp.address are both empty: nobody could connect");
    }
  }

  void jwt_key(const std::string& path, const JwtKey& key) const {
    if (key.file.empty() == key.jwks.empty()) error(path, "needs either file or jwks");
    if (!key.file.empty() && !key.algorithm) {
      error(path, "needs algorithm: a key is good for one algorithm only");
    }
    if (!key.jwks.empty() && key.algorithm) {
      error(path + ".algorithm", "is of a key in a file; each key of a JWKS file says its own");
    }
    if (!key.jwks.empty() && !key.id.empty()) {
      error(path + ".id", "is of a key in a file; each key of a JWKS file says its own");
    }
  }

  void auth() const {
    for (std::size_t i = 0; i < config.auth.jwt.keys.size(); ++i) {
      jwt_key(base::format("auth.jwt.keys.{}", i), config.auth.jwt.keys[i]);
    }
    const Jwt& jwt = config.auth.jwt;
    if (config.auth.required && !config.auth.configured()) {
      error("auth.required", "and nobody could sign in: give auth.jwt.keys or auth.tokens_file");
    } else if (jwt.keys.empty() && !(jwt.issuer.empty() && jwt.audience.empty())) {
      error("auth.jwt", "has no keys; nobody could sign in");
    } else if (given.contains("auth") && !given.contains("auth.required") &&
               !config.auth.configured()) {
      error("auth", "says nothing; give jwt.keys or tokens_file, or remove it");
    }
  }

  void tenants() const {
    for (const auto& [name, tenant] : config.tenants.named) {
      if (name.size() > base::kTenantBytesMax || !base::from_outside(name)) {
        findings.error(place_of(given, "tenants." + name),
                       "a tenant's name has at most " + std::to_string(base::kTenantBytesMax) +
                           " bytes, and none before the space");
      }
    }
  }

  void performance_slos() const {
    const auto share = [&](const char* name, const std::optional<std::string>& value) {
      if (value && !parse_share(*value)) {
        error("performance_slos." + std::string(name), "must be a share such as 80% or 0.8");
      }
    };
    share("storage_utilization_threshold", config.performance_slos.storage_utilization_threshold);
    share("hit_rate_target", config.performance_slos.hit_rate_target);
  }

  void streams() const {
    std::set<std::pair<std::string, std::string>> seen;
    for (std::size_t i = 0; i < config.streams.size(); ++i) {
      const Stream& stream = config.streams[i];
      if (seen.emplace(stream.tenant, stream.stream).second) continue;
      error(base::format("streams.{}.stream", i), "is there twice: '" + stream.stream + "'");
    }
  }
};

template <class Value>
void inherit(std::optional<Value>& value, const std::optional<Value>& from) {
  if (!value) value = from;
}

}  // namespace

void check_whole(const Config& config, const Given& given, ConfigFindings& findings) {
  const Check check{config, given, findings};
  const auto understood = [&](std::string_view section) { return findings.understood(section); };
  // Else it would speak of values that are not those that were written.
  if (understood("server.http") && understood("server.resp") && understood("server.data")) {
    check.doors();
  }
  if (understood("auth") && understood("exactly_once_config")) check.auth();
  if (understood("tenants")) check.tenants();
  if (understood("performance_slos")) check.performance_slos();
  if (understood("streams")) check.streams();
}

TenantLimits Tenants::of(const std::string& name) const {
  const auto found = named.find(name);
  if (found == named.end()) return others;
  TenantLimits limits = found->second;
  inherit(limits.storage_max, others.storage_max);
  inherit(limits.total_max, others.total_max);
  inherit(limits.rate, others.rate);
  inherit(limits.burst, others.burst);
  inherit(limits.ttl_max, others.ttl_max);
  inherit(limits.ttl_default, others.ttl_default);
  inherit(limits.connections_max, others.connections_max);
  inherit(limits.memory_max, others.memory_max);
  inherit(limits.streams_max, others.streams_max);
  inherit(limits.transactions_max, others.transactions_max);
  inherit(limits.workflows_max, others.workflows_max);
  inherit(limits.endpoints_max, others.endpoints_max);
  return limits;
}

Window Tenants::window_of(const std::string& name) const {
  const TenantLimits terms = of(name);
  Duration window = terms.ttl_default.value_or(std::chrono::seconds{limits::kWindowDefault.raw()});
  const Duration max = terms.ttl_max.value_or(Duration{0});
  if (max.count() != 0) window = std::min(window, max);
  return Window{std::max(std::chrono::floor<std::chrono::seconds>(window), limits::kWindowMin)};
}

std::optional<double> parse_share(const std::string& text) {
  const bool percent = text.ends_with('%');
  const std::string_view digits = std::string_view(text).substr(0, text.size() - (percent ? 1 : 0));
  double number = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (failed != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  const double share = percent ? number / 100 : number;
  return share >= 0 && share <= 1 ? std::optional(share) : std::nullopt;
}

std::map<std::string, double> PerformanceSlos::targets() const {
  std::map<std::string, double> all;
  const auto span = [&](const char* name, const std::optional<Duration>& value) {
    if (value) all[name] = std::chrono::duration<double>(*value).count();
  };
  const auto share = [&](const char* name, const std::optional<std::string>& value) {
    if (value) all[name] = parse_share(*value).value_or(0);
  };
  span("idempotency_check_latency_p99", idempotency_check_latency_p99);
  span("dedup_key_write_latency_p99", dedup_key_write_latency_p99);
  span("outbox_processing_latency_p95", outbox_processing_latency_p95);
  share("storage_utilization_threshold", storage_utilization_threshold);
  share("hit_rate_target", hit_rate_target);
  return all;
}

}  // namespace hapax::config
