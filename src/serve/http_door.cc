#include "serve/http_door.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <utility>

#include "http/problem.h"
#include "http/replies.h"

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

http::Response nothing_there(const http::Request& request, const std::string& allowed) {
  if (allowed.empty()) {
    return http::problem_response(http::Problem{
        404U, "there is nothing at " + request.target +
                  "; GET / is a page of all paths, and GET /openapi.json describes them"});
  }
  http::Response response =
      http::problem_response(http::Problem{405U, "this path knows " + allowed});
  response.fields.add("Allow", allowed);
  return response;
}

// Whatever is answered can be found in logs.
Trace name_answer(http::Exchange& exchange, Tracer& tracer) {
  Trace trace = tracer.trace_of(exchange.request().fields);
  exchange.always("X-Request-Id", trace.request_id);
  exchange.named(trace.request_id);
  if (!trace.parent.empty()) exchange.always("traceparent", trace.parent);
  return trace;
}

// Whether the answer is a few words, or may be records, results or lists.
bool answers_briefly(const http::Route& route) {
  constexpr std::array<std::string_view, 5> kLong{"", "receive", "claim", "commit", "end"};
  return std::find(kLong.begin(), kLong.end(), route.op) == kLong.end();
}

}  // namespace

std::optional<Result<front::Admission>> HttpDoor::knock(const http::Request& header,
                                                        std::string_view peer) {
  const http::Router::Found found = router_.find(header.method, header.path);
  if (found.route != nullptr && found.route->open) return std::nullopt;
  return admission_of(header, peer);
}

Result<front::Admission> HttpDoor::admission_of(const http::Exchange& exchange) {
  if (const auto& asked = exchange.admission()) {
    if (!*asked) return asked->error();
    // A5: while the body came, it may have ended.
    if (doorway_.reception.holds(**asked)) return **asked;
  }
  return admission_of(exchange.request(), exchange.peer());
}

// A5: what the call was allowed was decided for its caller, so it goes on for that one only.
Status HttpDoor::admit_again(http::Call& call) {
  if (doorway_.reception.holds(call.admission)) return Ok{};
  HAPAX_TRY(front::Admission now, admission_of(call.request(), call.exchange->peer()));
  const front::Caller& before = call.caller();
  if (now.caller.tenant != before.tenant || now.caller.rights != before.rights) {
    return Error{Errc::kUnauthenticated, "the credential stands for other rights now; call again"};
  }
  call.admission = std::move(now);
  return Ok{};
}

Result<front::Admission> HttpDoor::admission_of(const http::Request& header,
                                                std::string_view peer) {
  const http::Fields& fields = header.fields;
  if (const auto& anybody = doorway_.reception.anybody()) {
    // A9: who needs no credential must at least not be sent by another site.
    HAPAX_CHECK(check_site(header, doorway_.hosts));
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
  if (const auto& refusal = exchange->refusal()) return exchange->respond(*refusal);
  admit(exchange, *visit);
}

void HttpDoor::watch(http::Exchange& exchange, const std::shared_ptr<Visit>& visit) {
  visit->trace = name_answer(exchange, doorway_.tracer);
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
                        {"status", std::int64_t{status}},
                        {"micros", std::int64_t{took.count()}}});
  });
}

void HttpDoor::admit(const std::shared_ptr<http::Exchange>& exchange, Visit& visit) {
  const http::Request& request = exchange->request();
  http::Router::Found found = router_.find(request.method, request.path);
  if (found.route != nullptr) visit.route = found.route->pattern;
  auto call = std::make_shared<http::Call>();
  call->exchange = exchange;
  if (found.route == nullptr || !found.route->open) {
    Result<front::Admission> admission = admission_of(*exchange);
    if (!admission) return exchange->respond(http::problem_response(admission.error(), request));
    call->admission = *std::move(admission);
    call->ask_door = [this](http::Call& again) { return admit_again(again); };
    visit.tenant = call->caller().tenant;
    visit.subject = call->caller().subject;
    if (const auto away = turn_away(*exchange, call->caller())) return exchange->respond(*away);
  }
  if (found.route == nullptr) return exchange->respond(nothing_there(request, found.allowed));
  if (!answers_briefly(*found.route)) exchange->comes_alone();
  call->names = std::move(found.names);
  if (call->name("stream").starts_with('$')) {
    const Status allowed = front::check_right(call->caller(), front::Right::kAdmin);
    if (!allowed) return exchange->respond(http::problem_response(allowed.error()));
  }
  // What somebody puts behind a health check or a scrape is theirs; in the API it is a mistake.
  if (found.route->pattern.starts_with(http::kRoot)) {
    const Status understood = http::check_query(*found.route, request);
    if (!understood) return exchange->respond(http::problem_response(understood.error()));
  }
  found.route->act(call);
}

void HttpDoor::handle_only(const std::shared_ptr<http::Exchange>& exchange,
                           const http::Router& open, Tracer& tracer, std::string_view why) {
  name_answer(*exchange, tracer);
  if (const auto& refusal = exchange->refusal()) return exchange->respond(*refusal);
  const http::Request& request = exchange->request();
  const http::Router::Found found = open.find(request.method, request.path);
  if (found.route == nullptr) {
    return exchange->respond(http::problem_response(Error{Errc::kUnavailable, std::string(why)}));
  }
  const auto call = std::make_shared<http::Call>();
  call->exchange = exchange;
  found.route->act(call);
}

}  // namespace hapax::serve
