// The door for HTTP/JSON: what is asked for, who asks, and whether it may come in at all.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "access/authenticator.h"
#include "http/session.h"
#include "metrics/meter.h"
#include "rest/cross_site.h"
#include "rest/router.h"
#include "rest/trace.h"

namespace hapax::rest {

// A request that was answered, as the log tells of it. Names and keys stand in paths, and keys are
// secrets of a kind: it is the route that is told.
struct ServedRequest {
  Trace trace;
  std::string peer;
  std::string tenant;
  std::string subject;
  std::string method;
  std::string route;
  unsigned status = 0;
  std::chrono::microseconds took{0};
};

// What all doors of the process have in common.
struct DoorContext {
  access::Authenticator& authenticator;
  Tracer& tracer;
  metrics::Meter& meter;
  std::function<void(const ServedRequest&)> log{};  // none: requests are not logged
  Hosts hosts = Hosts::kAny;
};

class RestDoor {
 public:
  RestDoor(const Router& router, DoorContext context)
      : router_(router), context_(std::move(context)) {}

  // A10: as http::Gate says; for routes that need no credential the body is wanted.
  [[nodiscard]] http::Gated gate(const http::Request& header, std::string_view peer);
  void handle(const std::shared_ptr<http::Exchange>& exchange);
  // While nothing else can be answered: the routes of `open` only, and why for the others.
  static void handle_only(const std::shared_ptr<http::Exchange>& exchange, const Router& open,
                          Tracer& tracer, std::string_view why);

 private:
  struct Arrival;
  // Routes the request, and asks who calls.
  [[nodiscard]] std::shared_ptr<Arrival> arrive(const http::Request& header, std::string_view peer);
  [[nodiscard]] std::shared_ptr<Arrival> arrival_of(http::Exchange& exchange);
  void carry_out(const std::shared_ptr<http::Exchange>& exchange, ServedRequest& served);
  // Nothing: it may. Otherwise it was answered.
  [[nodiscard]] bool admit(Call& call, const Result<access::Admission>& admission,
                           ServedRequest& served);
  std::shared_ptr<ServedRequest> watch(http::Exchange& exchange);
  [[nodiscard]] Status admit_again(Call& call);
  [[nodiscard]] Result<access::Admission> admission_of(const http::Request& header,
                                                       std::string_view peer);

  const Router& router_;
  const DoorContext context_;
};

}  // namespace hapax::rest
