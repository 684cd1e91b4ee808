#include "serve/http_door.h"

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

Result<front::Caller> HttpDoor::caller_of(const http::Exchange& exchange) {
  if (const auto& anybody = reception_.anybody()) return *anybody;
  const http::Fields& fields = exchange.request().fields;
  if (fields.count("Authorization") > 1) {
    return Error{Errc::kUnauthenticated, "Authorization is there more than once"};
  }
  const std::string_view credential = bearer(fields.get("Authorization"));
  if (credential.empty()) {
    return Error{Errc::kUnauthenticated,
                 "this server wants to know who calls: send Authorization: Bearer TOKEN"};
  }
  HAPAX_TRY(front::Admission admission, reception_.admit(credential, exchange.peer()));
  return std::move(admission.caller);
}

std::optional<http::Response> HttpDoor::turn_away(http::Exchange& exchange,
                                                  const front::Caller& caller) {
  if (caller.account == nullptr) return std::nullopt;
  if (const Status seated = front::keep_seat(exchange.seat(), caller.account); !seated) {
    return http::problem_response(seated.error());
  }
  const auto wait = caller.account->charge(std::chrono::steady_clock::now());
  if (!wait) return std::nullopt;
  http::Response response = http::problem_response(front::rate_error(*wait));
  const auto whole = std::chrono::ceil<std::chrono::seconds>(*wait);
  response.fields.set("Retry-After", std::to_string(whole.count()));
  return response;
}

void HttpDoor::handle(const std::shared_ptr<http::Exchange>& exchange) {
  const http::Request& request = exchange->request();
  http::Router::Found found = router_.find(request.method, request.path);
  auto call = std::make_shared<http::Call>();
  call->exchange = exchange;
  if (found.route == nullptr || !found.route->open) {
    Result<front::Caller> caller = caller_of(*exchange);
    if (!caller) {
      return exchange->respond(refusal(caller.error(), request.fields.has("Authorization")));
    }
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

}  // namespace hapax::serve
