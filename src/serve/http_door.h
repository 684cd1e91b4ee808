// The front door for HTTP: who asks, what for, and is it allowed to come in at all.
#pragma once

#include <memory>
#include <optional>

#include "front/reception.h"
#include "http/router.h"
#include "http/session.h"
#include "metrics/meter.h"
#include "serve/cross_site.h"
#include "serve/log.h"
#include "serve/trace.h"

namespace hapax::serve {

// What all doors of the process have in common.
struct Doorway {
  front::Reception& reception;
  Tracer& tracer;
  metrics::Meter& meter;
  Log& log;
  bool log_requests = false;
  Hosts hosts = Hosts::kAny;
};

class HttpDoor {
 public:
  HttpDoor(const http::Router& router, const Doorway& doorway)
      : router_(router), doorway_(doorway) {}

  // Who asks, as far as the header tells; nothing for routes that need no credential.
  [[nodiscard]] std::optional<Result<front::Admission>> knock(const http::Request& header,
                                                              std::string_view peer);
  void handle(const std::shared_ptr<http::Exchange>& exchange);
  // While nothing else can be answered: the routes of `open` only, and why for the others.
  static void handle_only(const std::shared_ptr<http::Exchange>& exchange, const http::Router& open,
                          Tracer& tracer, std::string_view why);

 private:
  struct Visit;
  void admit(const std::shared_ptr<http::Exchange>& exchange, Visit& visit);
  void watch(http::Exchange& exchange, const std::shared_ptr<Visit>& visit);
  [[nodiscard]] Status admit_again(http::Call& call);
  [[nodiscard]] Result<front::Admission> admission_of(const http::Exchange& exchange);
  [[nodiscard]] Result<front::Admission> admission_of(const http::Request& header,
                                                      std::string_view peer);
  // What a caller is told that is beyond the limits of its tenant; nothing if it is not.
  [[nodiscard]] static std::optional<http::Response> turn_away(http::Exchange& exchange,
                                                               const front::Caller& caller);

  const http::Router& router_;
  const Doorway doorway_;
};

}  // namespace hapax::serve
