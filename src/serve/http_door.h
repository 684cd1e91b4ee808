// The front door for HTTP: who asks, what for, and is it allowed to come in at all.
#pragma once

#include <memory>
#include <optional>

#include "front/reception.h"
#include "http/router.h"
#include "http/session.h"

namespace hapax::serve {

class HttpDoor {
 public:
  HttpDoor(const http::Router& router, front::Reception& reception)
      : router_(router), reception_(reception) {}

  void handle(const std::shared_ptr<http::Exchange>& exchange);

 private:
  [[nodiscard]] Result<front::Caller> caller_of(const http::Exchange& exchange);

  // What a caller is told that is beyond the limits of its tenant; nothing if it is not.
  [[nodiscard]] static std::optional<http::Response> turn_away(http::Exchange& exchange,
                                                               const front::Caller& caller);

  const http::Router& router_;
  front::Reception& reception_;
};

}  // namespace hapax::serve
