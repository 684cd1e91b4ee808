#include "serve/http_door.h"

#include <chrono>
#include <string>
#include <utility>

#include "http/problem.h"

namespace hapax::serve {

namespace {

constexpr std::string_view kScheme = "Bearer ";

// What stands behind "Bearer", or empty.
std::string_view bearer(std::string_view field) {
  if (field.size() <= kScheme.size()) return {};
  if (!http::same_name(field.substr(0, kScheme.size()), kScheme)) return {};
  field.remove_prefix(kScheme.size());
  while (field.starts_with(' ')) field.remove_prefix(1);
  return field;
}

http::Response refusal(const Error& error, bool had_credential) {
  http::Response response = http::problem_response(error);
  if (error.code != Errc::kUnauthenticated) return response;
  // RFC 6750: without a credential the challenge gives no error.
  response.fields.add("WWW-Authenticate", had_credential
                                              ? "Bearer realm=\"hapax\", error=\"invalid_token\""
                                              : "Bearer realm=\"hapax\"");
  return response;
}

http::Response nothing_there(const http::Request& request, const std::string& allowed) {
  http::Response response = http::problem_response(http::Problem{
      allowed.empty() ? 404U : 405U,
      allowed.empty() ? "there is nothing at " + request.target : "this path knows " + allowed});
  if (!allowed.empty()) response.fields.add("Allow", allowed);
  return response;
}

}  // namespace

std::optional<Result<front::Admission>> HttpDoor::knock(const http::Request& header,
                                                        std::string_view peer) {
  const http::Router::Found found = router_.find(header.method, header.path);
  if (found.route != nullptr && found.route->open) return std::nullopt;
  return admission_of(header, peer);
}

Result<front::Caller> HttpDoor::caller_of(const http::Exchange& exchange) {
  if (const auto& asked = exchange.admission()) {
    if (!*asked) return asked->error();
    // A5: while the body came, it may have ended.
    if (doorway_.reception.holds(**asked)) return (*asked)->caller;
  }
  HAPAX_TRY(front::Admission admission, admission_of(exchange.request(), exchange.peer()));
  return std::move(admission.caller);
}

Result<front::Admission> HttpDoor::admission_of(const http::Request& header,
                                                std::string_view peer) {
  const http::Fields& fields = header.fields;
  if (const auto& anybody = doorway_.reception.anybody()) {
    // A9: who needs no credential must at least not be sent by another site.
    HAPAX_CHECK(check_site(fields, doorway_.hosts));
    return front::Admission{*anybody};
  }
  if (fields.count("Authorization") > 1) {
    return Error{Errc::kUnauthenticated, "Authorization is there more than once"};
  }
  const std::string_view credential = bearer(fields.get("Authorization"));
  if (credential.empty()) {
    return Error{Errc::kUnauthenticated,
                 "this server wants to know who calls: send Authorization: Bearer TOKEN"};
  }
  return doorway_.reception.admit(credential, peer);
}

std::optional<http::Response> HttpDoor::turn_away(http::Exchange& exchange,
                                                  const front::Caller& caller) {
  if (caller.account == nullptr) return std::nullopt;
  if (const Status seated = front::keep_seat(exchange.seat(), caller.account); !seated) {
    return http::problem_response(seated.error());
  }
  const auto wait = caller.account->charge();
  if (!wait) return std::nullopt;
  http::Response response = http::problem_response(front::rate_error(*wait));
  const auto whole = std::chrono::ceil<std::chrono::seconds>(*wait);
  response.fields.set("Retry-After", std::to_string(whole.count()));
  return response;
}

// What a line of the log says of a request. Names and keys stand in paths, and keys are secrets of
// a kind: it is the route that is told.
struct HttpDoor::Visit {
  Trace trace;
  std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
  std::string method;
  std::string route;
  std::string tenant;
  std::string subject;
};

void HttpDoor::handle(const std::shared_ptr<http::Exchange>& exchange) {
  const auto visit = std::make_shared<Visit>();
  watch(*exchange, visit);
  admit(exchange, *visit);
}

void HttpDoor::watch(http::Exchange& exchange, const std::shared_ptr<Visit>& visit) {
  visit->trace = doorway_.tracer.trace_of(exchange.request().fields);
  exchange.always("X-Request-Id", visit->trace.request_id);
  if (!visit->trace.parent.empty()) exchange.always("traceparent", visit->trace.parent);
  if (doorway_.log_requests) visit->method = exchange.request().method;
  exchange.when_answered([this, visit, peer = std::string(exchange.peer())](unsigned status) {
    doorway_.meter.responded(status);
    if (!doorway_.log_requests || !doorway_.log.wants(LogLevel::kInfo)) return;
    const auto took = std::chrono::duration_cast<std::chrono::microseconds>(
        std::chrono::steady_clock::now() - visit->begun);
    doorway_.log.write(LogLevel::kInfo, "request",
                       {{"request", visit->trace.request_id},
                        {"trace", visit->trace.trace_id},
                        {"peer", peer},
                        {"tenant", visit->tenant},
                        {"subject", visit->subject},
                        {"method", visit->method},
                        {"route", visit->route},
                        {"status", std::to_string(status)},
                        {"micros", std::to_string(took.count())}});
  });
}

void HttpDoor::admit(const std::shared_ptr<http::Exchange>& exchange, Visit& visit) {
  const http::Request& request = exchange->request();
  http::Router::Found found = router_.find(request.method, request.path);
  if (found.route != nullptr) visit.route = found.route->pattern;
  auto call = std::make_shared<http::Call>();
  call->exchange = exchange;
  if (found.route == nullptr || !found.route->open) {
    Result<front::Caller> caller = caller_of(*exchange);
    if (!caller) {
      return exchange->respond(refusal(caller.error(), request.fields.has("Authorization")));
    }
    visit.tenant = caller->tenant;
    visit.subject = caller->subject;
    if (const auto away = turn_away(*exchange, *caller)) return exchange->respond(*away);
    call->caller = *std::move(caller);
  }
  if (found.route == nullptr) return exchange->respond(nothing_there(request, found.allowed));
  call->names = std::move(found.names);
  if (call->name("stream").starts_with('$')) {
    const Status allowed = front::check_right(call->caller, front::Right::kAdmin);
    if (!allowed) return exchange->respond(http::problem_response(allowed.error()));
  }
  found.route->act(call);
}

void HttpDoor::handle_early(const std::shared_ptr<http::Exchange>& exchange,
                            const http::Router& open) {
  const http::Request& request = exchange->request();
  const http::Router::Found found = open.find(request.method, request.path);
  if (found.route == nullptr) {
    return exchange->respond(http::problem_response(
        Error{Errc::kUnavailable, "the server is starting: its journal is being read; try again"}));
  }
  const auto call = std::make_shared<http::Call>();
  call->exchange = exchange;
  found.route->act(call);
}

}  // namespace hapax::serve
