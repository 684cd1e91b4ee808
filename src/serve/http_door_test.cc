#include "serve/http_door.h"

#include <gtest/gtest.h>

#include "host/entropy.h"
#include "http/problem.h"
#include "http/verdict_response.h"
#include "net/held_loop_test.h"
#include "serve/own_routes.h"

namespace hapax::serve {
namespace {

class HeldLink final : public net::Link {
 public:
  void send(std::string_view bytes) override { sent += bytes; }
  void finish() override {}
  void set_deadline(std::chrono::steady_clock::time_point) override {}
  void clear_deadline() override {}
  void pause() override {}
  void resume() override {}
  [[nodiscard]] std::size_t unsent() const override { return 0; }
  [[nodiscard]] const std::string& peer() const override { return peer_; }
  [[nodiscard]] bool encrypted() const override { return false; }
  [[nodiscard]] net::Loop& loop() override { return loop_; }

  std::string sent;

 private:
  net::HeldLoop loop_;
  std::string peer_ = "127.0.0.1:1";
};

// What is answered to a request for the path.
std::string ask(const http::Handler& handler, const std::string& path) {
  HeldLink link;
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

TEST(HttpDoor, WhileTheStoreOpensOnlyItsHealthIsTold) {
  Health health;
  http::Router router;
  add_health_routes(router, health);
  host::HostEntropy entropy;
  Tracer tracer(entropy);
  const http::Handler handler = [&](const std::shared_ptr<http::Exchange>& exchange) {
    HttpDoor::handle_only(exchange, router, tracer, "the server is starting; try again");
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

// A10: the header is enough to be turned away; what follows is not read.
TEST(HttpDoor, ABodyIsNotReadFromWhoMayNotComeIn) {
  HeldLink link;
  const http::SessionLimits limits;
  std::size_t asked = 0;
  const http::Gate gate = [&](const http::Request&, std::string_view) {
    ++asked;
    return Result<front::Admission>(Error{Errc::kUnauthenticated, "nobody"});
  };
  const http::Handler handler = [](const std::shared_ptr<http::Exchange>& exchange) {
    const auto& admission = exchange->admission();
    exchange->respond(admission ? http::problem_response(admission->error())
                                : http::json_response(200, "{}"));
  };
  const auto session = std::make_shared<http::Session>(link, limits, handler, &gate);
  const std::string look = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  EXPECT_EQ(session->take(look), look.size());
  EXPECT_EQ(asked, 0U) << "without a body the handler asks";
  EXPECT_TRUE(has(link.sent, " 200 "));
  const std::string header = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n";
  EXPECT_EQ(session->take(header), header.size());
  EXPECT_EQ(asked, 1U);
  EXPECT_TRUE(has(link.sent, " 401 "));
  EXPECT_TRUE(has(link.sent, "Connection: close"));
  session->lost();
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
