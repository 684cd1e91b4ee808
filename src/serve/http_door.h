// The front door for HTTP: who asks, what for, and is it allowed to come in at all.
#pragma once

#include <memory>

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

  const http::Router& router_;
  front::Reception& reception_;
};

}  // namespace hapax::serve
