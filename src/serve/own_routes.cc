#include "serve/own_routes.h"

#include <utility>

#include "access/admission.h"
#include "metrics/page.h"
#include "rest/problem.h"
#include "rest/verdict_response.h"
#include "wire/json_text.h"

namespace hapax::serve {

namespace {

http::Response live() {
  return rest::json_response(200, wire::JsonObject().add("status", "live").text());
}

http::Response ready(const std::optional<std::string>& trouble, const std::string& warning) {
  if (trouble) return rest::problem_response(Error{Errc::kUnavailable, *trouble});
  wire::JsonObject told;
  told.add("status", "ready");
  if (!warning.empty()) told.add("warning", warning);
  return rest::json_response(200, told.text());
}

void add_health(rest::Router& router, std::function<http::Response()> ready) {
  router.add({"GET", "/health/live",
              [](const rest::SharedCall& call) { call->exchange->respond(live()); },
              "Whether the process answers", "", true, "", "Health"});
  router.add({"GET", "/health/ready",
              [ready = std::move(ready)](const rest::SharedCall& call) {
                call->exchange->respond(ready());
              },
              "Whether it is of use, or why not", "", true, "", "Health"});
}

http::Response figures(const MetricsPage& page, const access::Caller& caller) {
  http::Response response;
  response.fields.add("Content-Type", metrics::Page::kMediaType);
  response.body =
      page(caller.tenant.empty() ? std::nullopt : std::optional<std::string>(caller.tenant));
  return response;
}

}  // namespace

void add_health_routes(rest::Router& router, const Health& health) {
  add_health(router, [&health] { return ready(health.trouble(), health.warning()); });
}

void add_health_routes(rest::Router& router, std::function<std::optional<std::string>()> trouble) {
  add_health(router, [trouble = std::move(trouble)] { return ready(trouble(), {}); });
}

void add_metrics_route(rest::Router& router, MetricsFor whom, MetricsPage page) {
  const auto act = [page = std::move(page), whom](const rest::SharedCall& call) {
    if (whom == MetricsFor::kAdministrators) {
      const Status allowed = access::check_right(call->caller(), access::Right::kAdmin);
      if (!allowed) return call->exchange->respond(rest::problem_response(allowed.error()));
    }
    call->exchange->respond(figures(page, call->caller()));
  };
  router.add({"GET", "/metrics", act, "Figures for Prometheus", "", whom == MetricsFor::kEverybody,
              "", "text/plain"});
}

}  // namespace hapax::serve
