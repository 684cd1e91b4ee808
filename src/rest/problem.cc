#include "rest/problem.h"

#include "wire/json_text.h"

namespace hapax::rest {

namespace {

http::Response response_of(unsigned status, const wire::JsonObject& body) {
  http::Response response;
  response.status = status;
  response.fields.add("Content-Type", "application/problem+json");
  response.fields.add("Cache-Control", "no-store");
  response.body = body.text();
  return response;
}

std::string_view advice(Retry retry) {
  switch (retry) {
    case Retry::kNever:
      return "never";
    case Retry::kLater:
      return "later";
    case Retry::kLook:
      return "look";
    case Retry::kStop:
      return "stop";
  }
  return "never";
}

}  // namespace

http::Response problem_response(const http::Problem& problem) {
  if (problem.code) return problem_response(Error{*problem.code, problem.detail});
  wire::JsonObject body;
  body.add("type", "about:blank").add("title", http::reason_of(problem.status));
  body.add("status", problem.status).add("detail", problem.detail);
  return response_of(problem.status, body);
}

http::Response problem_response(const Error& error) {
  const auto status = static_cast<unsigned>(http_status_of(error.code));
  const std::string code = "HX" + std::to_string(static_cast<unsigned>(error.code));
  wire::JsonObject body;
  body.add("type", "urn:hapax:error:" + code).add("title", word_of(error.code));
  body.add("status", status).add("detail", error.detail).add("code", code);
  body.add("retry", advice(retry_of(error.code)));
  http::Response response = response_of(status, body);
  if (retry_of(error.code) == Retry::kLater) response.fields.add("Retry-After", "1");
  return response;
}

http::Response problem_response(const Error& error, const http::Request& request) {
  http::Response response = problem_response(error);
  if (error.code != Errc::kUnauthenticated) return response;
  // RFC 6750: without a credential the challenge gives no error.
  response.fields.add("WWW-Authenticate", request.fields.has("Authorization")
                                              ? "Bearer realm=\"hapax\", error=\"invalid_token\""
                                              : "Bearer realm=\"hapax\"");
  return response;
}

}  // namespace hapax::rest
