#include "config/check.h"

#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/tenant_frame.h"

namespace hapax::config {

namespace {

// Where a key was written, or the section around it.
Place place_of(const Given& given, std::string path) {
  while (true) {
    if (const auto found = given.find(path); found != given.end()) return found->second;
    const std::size_t dot = path.rfind('.');
    if (dot == std::string::npos) return {"configuration"};
    path.resize(dot);
  }
}

struct Check {
  const Config& config;
  const Given& given;
  Findings& findings;

  void error(const std::string& path, const std::string& what) const {
    findings.error(place_of(given, path), path + " " + what);
  }

  void tls(const std::string& path, const Tls& files) const {
    if (files.certificate.empty() != files.key.empty()) {
      error(path, "needs both files, certificate and key");
    }
  }

  void doors() const {
    tls("server.http.tls", config.server.http.tls);
    tls("server.resp.tls", config.server.resp.tls);
    if (config.server.data.empty()) error("server.data", "must not be empty");
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
      jwt_key("auth.jwt.keys." + std::to_string(i), config.auth.jwt.keys[i]);
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
      if (name.size() > base::kTenantBytesMax || name.starts_with(base::kTenantFrame)) {
        findings.error(place_of(given, "tenants." + name),
                       "a tenant's name has at most " + std::to_string(base::kTenantBytesMax) +
                           " bytes, and none before the space");
      }
    }
  }

  void streams() const {
    std::set<std::pair<std::string, std::string>> seen;
    for (std::size_t i = 0; i < config.streams.size(); ++i) {
      const Stream& stream = config.streams[i];
      if (seen.emplace(stream.tenant, stream.stream).second) continue;
      error("streams." + std::to_string(i) + ".stream", "is there twice: '" + stream.stream + "'");
    }
  }
};

template <class Value>
void inherit(std::optional<Value>& value, const std::optional<Value>& from) {
  if (!value) value = from;
}

}  // namespace

void check_whole(const Config& config, const Given& given, Findings& findings) {
  const Check check{config, given, findings};
  const auto understood = [&](std::string_view section) { return findings.understood(section); };
  // Else it would speak of values that are not those that were written.
  if (understood("server.http") && understood("server.resp") && understood("server.data")) {
    check.doors();
  }
  if (understood("auth") && understood("exactly_once_config")) check.auth();
  if (understood("tenants")) check.tenants();
  if (understood("streams")) check.streams();
}

TenantLimits Tenants::of(const std::string& name) const {
  const auto found = named.find(name);
  if (found == named.end()) return others;
  TenantLimits limits = found->second;
  inherit(limits.storage_max, others.storage_max);
  inherit(limits.rate, others.rate);
  inherit(limits.burst, others.burst);
  inherit(limits.ttl_max, others.ttl_max);
  inherit(limits.connections_max, others.connections_max);
  inherit(limits.memory_max, others.memory_max);
  inherit(limits.streams_max, others.streams_max);
  inherit(limits.transactions_max, others.transactions_max);
  return limits;
}

}  // namespace hapax::config
