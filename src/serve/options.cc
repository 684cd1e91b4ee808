#include "serve/options.h"

#include "auth/words.h"
#include "config/publish.h"
#include "config/unsupported.h"
#include "net/address.h"

namespace hapax::serve {

namespace {

Door door_from(const config::DoorConfig& door) {
  Door made{door.address};
  if (door.tls.used()) made.tls = net::TlsFiles{door.tls.certificate, door.tls.key};
  return made;
}

void take_limits(Options& options, const config::LimitsConfig& limits) {
  options.connection_limits = {limits.connections_max, limits.unsent_bytes_max,
                               limits.read_bytes_max, limits.unsent_time};
  const config::HttpLimits& http = limits.http;
  options.http_limits = {{http.header_bytes_max, http.fields_max, http.body_bytes_max},
                         http.header_time,
                         http.body_time,
                         http.idle_time,
                         http.pipelined_max,
                         limits.unsent_bytes_max};
  options.resp_limits.arguments_max = limits.resp.arguments_max;
  options.resp_limits.argument_bytes_max = limits.resp.argument_bytes_max;
  options.resp_limits.command_bytes_max = limits.resp.command_bytes_max;
  options.resp_pending_max = limits.resp.pending_max;
  options.resp_command_time = limits.resp.command_time;
  options.resp_idle_time = limits.resp.idle_time;
}

Status check_address(const std::string& text, const Options& options) {
  if (text.empty()) return Ok{};
  HAPAX_TRY(const net::Address address, net::parse_address(text));
  if (address.loopback() || options.open_to_all || options.auth.configured()) return Ok{};
  return Error{Errc::kInvalidArgument,
               address.text() +
                   " can be reached from other machines, and nobody has to sign in. "
                   "Listen on 127.0.0.1, configure authentication, or say --open-to-all"};
}

// No token could name it, so that its limits, or its stream, would be nobody's.
Status check_tenant(const std::string& path, const std::string& name) {
  if (auth::is_tenant(name)) return Ok{};
  return Error{Errc::kInvalidArgument,
               path + ": no token can have the tenant '" + name +
                   "'; a tenant is 1 to 64 letters, digits, '.', '_' and '-', a letter or digit "
                   "first"};
}

Status check_tenants(const Options& options) {
  for (const auto& [name, limits] : options.tenants.named) {
    HAPAX_CHECK(check_tenant("tenants", name));
  }
  for (const config::Stream& stream : options.streams) {
    if (!stream.tenant.empty()) HAPAX_CHECK(check_tenant("streams", stream.tenant));
  }
  return Ok{};
}

}  // namespace

Result<Options> options_from(const config::Config& config) {
  const config::Unsupported lacking = config::unsupported(config);
  if (!lacking.refusals.empty()) {
    return Error{Errc::kPreconditionFailed, lacking.refusals.front()};
  }
  const config::Server& server = config.server;
  Options options;
  options.fixed_values = config::fixed_values(config);
  options.data = server.data;
  options.database = server.store;
  options.database_schema = server.store_schema;
  options.http = door_from(server.http);
  options.resp = door_from(server.resp);
  options.loops = server.loops;
  options.readers = server.readers;
  options.drain = server.drain;
  options.open_to_all = server.open_to_all;
  options.secrets_key = server.secrets_key;
  options.endpoints.allow = server.endpoints.allow;
  options.endpoints.proxy = {server.endpoints.proxy, server.endpoints.proxy_filters};
  options.store = config.store;
  take_limits(options, config.limits);
  options.streams = config.streams;
  options.workflows = config.workflows;
  options.alerts = config.alerts;
  options.auth = config.auth;
  options.tenants = config.tenants;
  options.log = config.log;
  options.metrics = config.metrics;
  options.outbox = config.exactly_once.outbox.table_name;
  options.slos = config.performance_slos.targets();
  return options;
}

Status check(const Options& options) {
  const std::string& database = options.database;
  if (!database.empty() && !database.starts_with("postgres://") &&
      !database.starts_with("postgresql://")) {
    return Error{Errc::kInvalidArgument,
                 "a store is a database postgres://…, or a data folder without one"};
  }
  if (options.http.address.empty() && options.resp.address.empty()) {
    return Error{Errc::kInvalidArgument,
                 "nobody could ask this server anything: neither HTTP nor RESP has an address"};
  }
  HAPAX_CHECK(check_tenants(options));
  HAPAX_CHECK(workflows::check_rules(options.endpoints));
  HAPAX_CHECK(check_address(options.http.address, options));
  HAPAX_CHECK(check_address(options.resp.address, options));
  return check_address(options.metrics.address, options);
}

}  // namespace hapax::serve
