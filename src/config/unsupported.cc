#include "config/unsupported.h"

namespace hapax::config {

namespace {

bool limits_anything(const TenantLimits& tenant) {
  return tenant.storage_max || tenant.rate || tenant.burst || tenant.ttl_max ||
         tenant.connections_max;
}

}  // namespace

Unsupported unsupported(const Config& config) {
  Unsupported found;
  if (config.auth.configured()) {
    found.refusals.emplace_back(
        "auth: this server cannot check who signs in, and would let everybody in");
  } else if (config.auth.required) {
    found.refusals.emplace_back("auth.required: nobody could sign in");
  }
  if (limits_anything(config.tenants.others) || !config.tenants.named.empty()) {
    found.ignored.emplace_back("tenants: limits of tenants are not kept by this server");
  }
  if (!config.metrics.address.empty() || config.metrics.open) {
    found.ignored.emplace_back("metrics: this server has no metrics");
  }
  for (const Stream& stream : config.streams) {
    if (stream.tenant.empty()) continue;
    found.ignored.push_back("streams: '" + stream.stream +
                            "' is of a tenant that nobody can sign in to");
  }
  const Log log;
  if (config.log.format != log.format || config.log.level != log.level) {
    found.ignored.emplace_back("log: this server writes its few lines as text");
  }
  return found;
}

}  // namespace hapax::config
