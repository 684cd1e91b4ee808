// Names for one request, so that its lines in all logs are found: an id of its own, and its place
// in a trace (W3C Trace Context).
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "http/message.h"
#include "ports/entropy.h"

namespace hapax::rest {

struct Trace {
  std::string request_id;
  std::string trace_id;  // empty: the caller has none
  std::string parent;    // what this server tells on: the trace, with a span of its own
};

class Tracer {
 public:
  explicit Tracer(ports::Entropy& entropy);

  // X-Request-Id and traceparent if they are well-formed; what is not is as if it were missing.
  [[nodiscard]] Trace trace_of(const http::Fields& fields);

  // For what has no request of its own: 16 hex digits; unlikely to come twice, not secret.
  [[nodiscard]] std::string next_id();

 private:
  std::atomic<std::uint64_t> next_;
};

}  // namespace hapax::rest
