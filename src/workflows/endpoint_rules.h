// What the operator of a server says of endpoints, whoever names them.
#pragma once

#include <string>
#include <vector>

#include <hapax/result.h>

#include "webhook/exchange.h"
#include "webhook/guard.h"

namespace hapax::workflows {

struct EndpointRules {
  std::vector<std::string> allow{};  // addresses that endpoints of tenants may reach besides
  webhook::ForwardProxy proxy{};     // of the requests of all workflows
};

// kInvalidArgument, with the key of the configuration.
[[nodiscard]] inline Result<webhook::Guard> guard_of(const EndpointRules& rules) {
  auto guard = webhook::Guard::allowing(rules.allow);
  if (!guard) return std::move(guard).error().within("server.endpoints.allow");
  return guard;
}
[[nodiscard]] inline Status check_rules(const EndpointRules& rules) {
  HAPAX_CHECK(guard_of(rules));
  if (rules.proxy.url.empty()) return Ok{};
  auto proxy = webhook::origin_of(rules.proxy.url);
  if (!proxy) return std::move(proxy).error().within("server.endpoints.proxy");
  return Ok{};
}

}  // namespace hapax::workflows
