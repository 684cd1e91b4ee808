#include "rest/rest_door.h"

#include <algorithm>
#include <array>
#include <utility>

#include "access/admission.h"
#include "rest/problem.h"
#include "rest/replies.h"

namespace hapax::rest {

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
    return problem_response(http::Problem{
        404U, "there is nothing at " + request.target +
                  "; GET / is a page of all paths, and GET /openapi.json describes them"});
  }
  http::Response response = problem_response(http::Problem{405U, "this path knows " + allowed});
  response.fields.add("Allow", allowed);
  return response;
}

http::Response not_understood(const http::Problem& problem) {
  http::Response response = problem_response(problem);
  if (response.status == 415) response.fields.add("Accept-Encoding", "gzip, zstd");
  return response;
}

http::Response not_now(const access::NotNow& refused) {
  http::Response response = problem_response(refused.error);
  if (!refused.wait) return response;
  const auto whole = std::chrono::ceil<std::chrono::seconds>(*refused.wait);
  response.fields.set("Retry-After", std::to_string(whole.count()));
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
bool answers_briefly(const Route& route) {
  constexpr std::array<std::string_view, 5> kLong{"", "receive", "claim", "commit", "end"};
  return std::find(kLong.begin(), kLong.end(), route.op) == kLong.end();
}

// The connection counts for the tenant that uses it.
struct ConnectionState final : http::Attachment {
  std::shared_ptr<access::ConnectionPermit> permit;
};

std::shared_ptr<access::ConnectionPermit>& permit_of(http::Exchange& exchange) {
  http::Attached& attached = exchange.connection_attachment();
  if (attached == nullptr) attached = std::make_shared<ConnectionState>();
  return static_cast<ConnectionState&>(*attached).permit;
}

// What of a call the route and the query say, apart from who calls.
Status check_call(const Call& call, const Route& route) {
  HAPAX_CHECK(access::check_stream(call.caller(), call.name("stream")));
  // What somebody puts behind a health check or a scrape is theirs; in the API it is a mistake.
  return route.pattern.starts_with(kRoot) ? check_query(route, call.request()) : Status(Ok{});
}

}  // namespace

// What the header of a request tells.
struct RestDoor::Arrival final : http::Attachment {
  Router::Found found;
  std::optional<Result<access::Admission>> admission;  // none: the route needs no credential
};

std::shared_ptr<RestDoor::Arrival> RestDoor::arrive(const http::Request& header,
                                                    std::string_view peer) {
  auto arrival = std::make_shared<Arrival>();
  arrival->found = router_.find(header.method, header.path);
  const Route* const route = arrival->found.route;
  if (route == nullptr || !route->open) arrival->admission = admission_of(header, peer);
  return arrival;
}

http::Gated RestDoor::gate(const http::Request& header, std::string_view peer) {
  auto arrival = arrive(header, peer);
  const bool wanted = !arrival->admission || *arrival->admission;
  return {wanted, std::move(arrival)};
}

std::shared_ptr<RestDoor::Arrival> RestDoor::arrival_of(http::Exchange& exchange) {
  if (exchange.attachment() == nullptr) return arrive(exchange.request(), exchange.peer());
  auto arrival = std::static_pointer_cast<Arrival>(exchange.attachment());
  auto& admission = arrival->admission;
  // A5: while the body came, it may have ended.
  if (admission && *admission && !context_.authenticator.holds(**admission)) {
    admission = admission_of(exchange.request(), exchange.peer());
  }
  return arrival;
}

// A5: what the call was allowed was decided for its caller, so it goes on for that one only.
Status RestDoor::admit_again(Call& call) {
  if (context_.authenticator.holds(call.admission)) return Ok{};
  HAPAX_TRY(access::Admission now, admission_of(call.request(), call.exchange->peer()));
  const access::Caller& before = call.caller();
  if (now.caller.tenant != before.tenant || now.caller.rights != before.rights) {
    return Error{Errc::kUnauthenticated, "the credential stands for other rights now; call again"};
  }
  call.admission = std::move(now);
  return Ok{};
}

Result<access::Admission> RestDoor::admission_of(const http::Request& header,
                                                 std::string_view peer) {
  const http::Fields& fields = header.fields;
  if (const auto& anybody = context_.authenticator.anybody()) {
    // A9: who needs no credential must at least not be sent by another site.
    HAPAX_CHECK(check_site(header, context_.hosts));
    return access::Admission{*anybody};
  }
  if (fields.count("Authorization") > 1) {
    return Error{Errc::kUnauthenticated, "Authorization is there more than once"};
  }
  const std::string_view credential = bearer(fields.get("Authorization"));
  if (credential.empty()) {
    return Error{Errc::kUnauthenticated,
                 "this server wants to know who calls: send Authorization: Bearer TOKEN"};
  }
  return context_.authenticator.authenticate(credential, peer);
}

void RestDoor::handle(const std::shared_ptr<http::Exchange>& exchange) {
  const std::shared_ptr<ServedRequest> served = watch(*exchange);
  if (const auto& refusal = exchange->refusal()) return exchange->respond(not_understood(*refusal));
  carry_out(exchange, *served);
}

std::shared_ptr<ServedRequest> RestDoor::watch(http::Exchange& exchange) {
  auto served = std::make_shared<ServedRequest>();
  served->trace = name_answer(exchange, context_.tracer);
  if (context_.log) {
    served->method = exchange.request().method;
    served->peer = exchange.peer();
  }
  exchange.when_answered([this, served, begun = std::chrono::steady_clock::now()](unsigned status) {
    context_.meter.responded(status);
    if (!context_.log) return;
    served->status = status;
    served->took = std::chrono::duration_cast<std::chrono::microseconds>(
        std::chrono::steady_clock::now() - begun);
    context_.log(*served);
  });
  return served;
}

void RestDoor::carry_out(const std::shared_ptr<http::Exchange>& exchange, ServedRequest& served) {
  const std::shared_ptr<Arrival> arrival = arrival_of(*exchange);
  const Route* const route = arrival->found.route;
  if (route != nullptr) served.route = route->pattern;
  const auto call = std::make_shared<Call>();
  call->exchange = exchange;
  if (arrival->admission && !admit(*call, *arrival->admission, served)) return;
  if (route == nullptr) {
    return exchange->respond(nothing_there(exchange->request(), arrival->found.allowed));
  }
  if (!answers_briefly(*route)) exchange->comes_alone();
  call->names = std::move(arrival->found.names);
  if (const Status good = check_call(*call, *route); !good) {
    return exchange->respond(problem_response(good.error()));
  }
  route->act(call);
}

bool RestDoor::admit(Call& call, const Result<access::Admission>& admission,
                     ServedRequest& served) {
  http::Exchange& exchange = *call.exchange;
  if (!admission) {
    exchange.respond(problem_response(admission.error(), exchange.request()));
    return false;
  }
  call.admission = *admission;
  call.ask_door = [this](Call& again) { return admit_again(again); };
  served.tenant = call.caller().tenant;
  served.subject = call.caller().subject;
  const auto refused = access::let_in(call.caller(), permit_of(exchange));
  if (refused) exchange.respond(not_now(*refused));
  return !refused;
}

void RestDoor::handle_only(const std::shared_ptr<http::Exchange>& exchange, const Router& open,
                           Tracer& tracer, std::string_view why) {
  name_answer(*exchange, tracer);
  if (const auto& refusal = exchange->refusal()) return exchange->respond(not_understood(*refusal));
  const http::Request& request = exchange->request();
  const Router::Found found = open.find(request.method, request.path);
  if (found.route == nullptr) {
    return exchange->respond(problem_response(Error{Errc::kUnavailable, std::string(why)}));
  }
  const auto call = std::make_shared<Call>();
  call->exchange = exchange;
  found.route->act(call);
}

}  // namespace hapax::rest
