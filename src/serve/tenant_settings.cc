#include "serve/tenant_settings.h"

#include <utility>

#include "base/tenant_frame.h"
#include "host/whole_file.h"

namespace hapax::serve {

namespace {

auth::Algorithm algorithm_of(config::Algorithm algorithm) {
  switch (algorithm) {
    case config::Algorithm::kHs256:
      return auth::Algorithm::kHs256;
    case config::Algorithm::kRs256:
      return auth::Algorithm::kRs256;
    case config::Algorithm::kEs256:
      return auth::Algorithm::kEs256;
    case config::Algorithm::kEdDsa:
      return auth::Algorithm::kEdDsa;
  }
  return auth::Algorithm::kEdDsa;
}

auth::KeySource source_of(const config::JwtKey& key) {
  if (!key.jwks.empty()) return {key.jwks, auth::KeyKind::kJwks, std::nullopt, ""};
  const bool secret = key.algorithm == config::Algorithm::kHs256;
  auth::KeySource source{key.file, secret ? auth::KeyKind::kSecret : auth::KeyKind::kPem,
                         std::nullopt, key.id};
  if (key.algorithm) source.algorithm = algorithm_of(*key.algorithm);
  return source;
}

}  // namespace

std::optional<auth::VerifierSettings> verifier_settings(const config::Auth& auth) {
  if (!auth.configured()) return std::nullopt;
  auth::VerifierSettings settings;
  for (const config::JwtKey& key : auth.jwt.keys) settings.keys.push_back(source_of(key));
  settings.issuer = auth.jwt.issuer;
  settings.audience = auth.jwt.audience;
  settings.type = auth.jwt.type;
  settings.tenant_claim = auth.jwt.tenant_claim;
  settings.roles_claim = auth.jwt.roles_claim;
  settings.leeway = std::chrono::duration_cast<std::chrono::seconds>(auth.jwt.leeway);
  settings.tokens_file = auth.tokens_file;
  return settings;
}

Status check_auth_files(const config::Auth& auth) {
  const auto settings = verifier_settings(auth);
  if (settings) HAPAX_CHECK(auth::Verifier::build(*settings, host::read_file));
  return Ok{};
}

access::Accounts::LimitsOf limits_of(const config::Tenants& tenants) {
  return [tenants](const std::string& tenant) {
    const config::TenantLimits limits = tenants.of(tenant);
    return access::TenantLimits{.rate = limits.rate.value_or(0),
                                .burst = limits.burst.value_or(0),
                                .ttl_max = limits.ttl_max.value_or(Duration{0}),
                                .connections_max = limits.connections_max.value_or(0),
                                .ttl_default = limits.ttl_default.value_or(Duration{0}),
                                .outbox = tenants.outbox.stream,
                                .outbox_retention = tenants.outbox.retention,
                                .outbox_attempts_max = tenants.outbox.attempts_max};
  };
}

ShareOf shares_of(const config::Tenants& tenants, const config::Auth& auth) {
  return [tenants, signs_in = auth.configured()](std::string_view tenant) {
    if (tenant == base::kOwnTenant) return TenantShare{};
    const config::TenantLimits limits = tenants.of(std::string(tenant));
    const std::uint64_t usual = signs_in && !tenant.empty() ? TenantShare::kWhatIsFree : 0;
    return TenantShare{.storage_max = limits.storage_max.value_or(0),
                       .total_max = limits.total_max.value_or(0),
                       .memory_max = limits.memory_max.value_or(usual),
                       .streams_max = limits.streams_max.value_or(usual),
                       .transactions_max = limits.transactions_max.value_or(usual),
                       .ttl_max = limits.ttl_max.value_or(Duration{0}),
                       .ttl_default = limits.ttl_default.value_or(Duration{0}),
                       .outbox = tenants.outbox.stream,
                       .outbox_attempts_max = tenants.outbox.attempts_max};
  };
}

}  // namespace hapax::serve
