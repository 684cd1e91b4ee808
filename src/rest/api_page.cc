// What the API says of itself: the OpenAPI document, and a page for people without any script.
#include <string>

#include "rest/openapi.h"
#include "rest/verdict_response.h"

namespace hapax::rest {

namespace {

constexpr std::string_view kStyle =
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;width:100%}td{padding:.2rem .6rem;border-top:1px solid #ccc;"
    "vertical-align:top}code{font-size:.9rem}h1{font-weight:600}"
    "@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}a{color:#8bf}}";
constexpr std::string_view kPolicy =
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'";

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      default:
        out.push_back(c);
    }
  }
  return out;
}

std::string page_of(const Router& router) {
  std::string rows;
  for (const Route& route : router.routes()) {
    rows += "<tr><td><code>" + escaped(route.method) + "</code></td><td><code>" +
            escaped(route.pattern) + "</code></td><td>" + escaped(route.summary) + "</td></tr>\n";
  }
  return "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
         "<meta name=\"viewport\" content=\"width=device-width\"><title>Hapax</title>"
         "<link rel=\"stylesheet\" href=\"/api/style.css\"></head>\n<body><h1>Hapax</h1>"
         "<p>Every effect, once. This is the API of this server; "
         "<a href=\"/openapi.json\">openapi.json</a> describes it for programs.</p>\n<table>\n" +
         rows + "</table></body></html>\n";
}

http::Response response_of(std::string_view type, std::string body) {
  http::Response response;
  response.fields.add("Content-Type", type);
  response.fields.add("Content-Security-Policy", kPolicy);
  response.fields.add("X-Content-Type-Options", "nosniff");
  response.fields.add("Referrer-Policy", "no-referrer");
  response.body = std::move(body);
  return response;
}

}  // namespace

void add_description_routes(Router& router, wire::Callers callers) {
  const auto add = [&](std::string pattern, std::string type, std::string summary, Act act) {
    Route route{"GET", std::move(pattern), std::move(act), std::move(summary), "", true};
    route.answer = std::move(type);
    router.add(std::move(route));
  };
  add("/openapi.json", "application/json", "This API for programs",
      [&router, callers](const SharedCall& call) {
        call->exchange->respond(json_response(200, openapi_document(router, callers)));
      });
  add("/", "text/html", "This API for people", [&router](const SharedCall& call) {
    call->exchange->respond(response_of("text/html; charset=utf-8", page_of(router)));
  });
  add("/api/style.css", "text/css", "How that page looks", [](const SharedCall& call) {
    call->exchange->respond(response_of("text/css", std::string(kStyle)));
  });
}

}  // namespace hapax::rest
