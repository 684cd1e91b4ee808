#include "serve/own_routes.h"

#include <gtest/gtest.h>

#include "host/entropy.h"
#include "net/held_link_test.h"
#include "rest/rest_door.h"

namespace hapax::serve {
namespace {

// What is answered to a request for the path.
std::string ask(const http::Handler& handler, const std::string& path) {
  net::HeldLink link;
  const http::SessionLimits limits;
  const auto session = std::make_shared<http::Session>(link, limits, handler);
  const std::string request = "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n";
  EXPECT_EQ(session->take(request), request.size());
  session->lost();
  return link.sent;
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

Statistics figures(bool Statistics::*trouble = nullptr) {
  Statistics statistics;
  if (trouble != nullptr) statistics.*trouble = true;
  return statistics;
}

TEST(OwnRoutes, WhileTheStoreOpensOnlyItsHealthIsTold) {
  Health health;
  rest::Router router;
  add_health_routes(router, health);
  host::HostEntropy entropy;
  rest::Tracer tracer(entropy);
  const http::Handler handler = [&](const std::shared_ptr<http::Exchange>& exchange) {
    rest::RestDoor::handle_only(exchange, router, tracer, "the server is starting; try again");
  };
  EXPECT_TRUE(has(ask(handler, "/health/live"), " 200 "));
  const std::string ready = ask(handler, "/health/ready");
  EXPECT_TRUE(has(ready, " 503 "));
  EXPECT_TRUE(has(ready, "starting"));
  const std::string other = ask(handler, "/api/v1/streams");
  EXPECT_TRUE(has(other, " 503 "));
  EXPECT_TRUE(has(other, "Retry-After"));
  for (const char* path : {"/health/live", "/api/v1/streams", "/broken escape"}) {
    EXPECT_TRUE(has(ask(handler, path), "\r\nX-Request-Id: ")) << path;
  }
}

TEST(Health, SaysWhyItIsNotReady) {
  Health health;
  EXPECT_TRUE(health.trouble());
  health.opened();
  health.look_at(figures());
  EXPECT_FALSE(health.trouble());
  for (const auto trouble :
       {&Statistics::damaged, &Statistics::writes_refused, &Statistics::clock_jump_pending}) {
    health.look_at(figures(trouble));
    EXPECT_TRUE(health.trouble());
  }
  // W7: what a stop leaves behind is no trouble, but people are told.
  EXPECT_EQ(health.warning(), "");
  Statistics lagging = figures();
  lagging.clock_lag = std::chrono::hours{30};
  health.look_at(lagging);
  EXPECT_FALSE(health.trouble());
  EXPECT_TRUE(has(health.warning(), "108000 s behind the wall clock"));
  lagging.clock_lag = std::chrono::seconds{-30};
  health.look_at(lagging);
  EXPECT_TRUE(has(health.warning(), "30 s ahead of the wall clock"));
  health.look_at(Error{Errc::kUnavailable, "connection to 10.1.2.3"});
  EXPECT_EQ(health.warning(), "");
  EXPECT_TRUE(has(health.trouble().value_or(""), "does not answer"));
  EXPECT_FALSE(has(health.trouble().value_or(""), "10.1.2.3"));  // A12
  health.look_at(figures());
  EXPECT_FALSE(health.trouble());
  health.draining();
  EXPECT_TRUE(has(health.trouble().value_or(""), "stopping"));
}

}  // namespace
}  // namespace hapax::serve
