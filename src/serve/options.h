// What the server process is told. Made from a configuration, or as it stands by default.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <hapax/embedded.h>
#include <hapax/result.h>

#include "alerts/rule.h"
#include "config/config.h"
#include "http/session.h"
#include "net/server.h"
#include "relay/open_outbox.h"
#include "resp/parser.h"
#include "workflows/endpoint_rules.h"

namespace hapax::serve {

struct Door {
  std::string address;  // empty: no such door
  std::optional<net::TlsFiles> tls{};
};

struct Options {
  std::string data = "./hapax-data";
  std::string database;  // holds the store instead; empty: none does
  std::string database_schema = "hapax_store";
  Door http{"127.0.0.1:7171"};
  Door resp{"127.0.0.1:7172"};
  std::uint32_t loops = 1;
  std::uint32_t readers = 4;
  std::chrono::milliseconds drain{10'000};
  bool open_to_all = false;  // listen beyond this machine without authentication
  std::string secrets_key;   // a reference to the keys that seal secrets; empty: none are kept
  workflows::EndpointRules endpoints;
  EmbeddedOptions store;
  net::ServerLimits connection_limits;
  http::SessionLimits http_limits;
  resp::ParserLimits resp_limits;
  std::size_t resp_pending_max = 10'000;
  std::chrono::milliseconds resp_command_time{60'000};
  std::chrono::milliseconds resp_idle_time{0};
  std::vector<config::Stream> streams;  // there before the doors open
  std::vector<delivery::Workflow> workflows;
  std::vector<alerts::Rule> alerts;
  config::Auth auth;
  config::Tenants tenants;
  config::Log log;
  config::Metrics metrics;
  std::string outbox = "outbox_events";             // stream whose records are outbox events
  std::map<std::string, double> slos;               // what the figures are held against, by name
  std::map<std::string, std::string> fixed_values;  // config::fixed_values()
  // The configuration as it is now, for SIGHUP; none: only certificates are read anew.
  std::function<Result<config::Config>()> reread;
  relay::OpenOutbox open_outbox;  // of workflows; none: these have no outboxes
  std::string version;
};

// The error says what of the configuration this server cannot do.
[[nodiscard]] Result<Options> options_from(const config::Config& config);

// Whether such a server may start.
[[nodiscard]] Status check(const Options& options);

}  // namespace hapax::serve
