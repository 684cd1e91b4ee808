// What the server tells of itself over HTTP: its health, and its figures.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "rest/router.h"
#include "serve/health.h"

namespace hapax::serve {

// GET /health/live and /health/ready: for everybody, and cheap.
void add_health_routes(rest::Router& router, const Health& health);
// The same of a process without a store: nothing: it is ready.
void add_health_routes(rest::Router& router, std::function<std::optional<std::string>()> trouble);

enum class MetricsFor { kAdministrators, kEverybody };
// GET /metrics. `page` is given the tenant whose figures are wanted, or none for all.
using MetricsPage = std::function<std::string(const std::optional<std::string>& tenant)>;
void add_metrics_route(rest::Router& router, MetricsFor whom, MetricsPage page);

}  // namespace hapax::serve
