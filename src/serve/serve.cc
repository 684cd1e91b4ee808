#include "serve/serve.h"

#include <csignal>
#include <cstdio>
#include <memory>
#include <vector>

#include <hapax/embedded.h>

#include "front/desk.h"
#include "front/gatherer.h"
#include "http/api.h"
#include "http/problem.h"
#include "http/session.h"
#include "net/server.h"
#include "resp/session.h"
#include "serve/streams.h"

namespace hapax::serve {

namespace {

// Signals are taken by the main thread only; every other thread inherits the mask.
class Signals {
 public:
  Signals() {
    sigemptyset(&set_);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set_, signal);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
  }
  int wait() {
    int signal = 0;
    sigwait(&set_, &signal);
    return signal;
  }

 private:
  sigset_t set_{};
};

class Process {
 public:
  explicit Process(const Options& options) : options_(options) {}

  Status run() {
    HAPAX_CHECK(check(options_));
    Signals signals;
    HAPAX_TRY(store_, open_embedded(options_.data, options_.store));
    HAPAX_CHECK(make_streams(*store_, options_.streams));
    desk_ = std::make_unique<front::Desk>(*store_, options_.readers);
    http::add_store_routes(router_, *desk_);
    hall_ =
        std::make_unique<resp::Hall>(resp::Hall{*desk_, refuse_sign_in, anybody(), options_.version,
                                                options_.resp_limits, options_.resp_pending_max});
    HAPAX_TRY(server_, net::Server::open(endpoints(), options_.loops, options_.connection_limits));
    for (net::Loop* loop : server_->loops()) {
      gatherers_.push_back(std::make_unique<front::Gatherer>(*desk_, *loop));
    }
    server_->start();
    announce();
    while (signals.wait() == SIGHUP) reload();
    std::fprintf(stderr, "hapax: stopping\n");
    server_->stop(options_.drain);
    return Ok{};
  }

 private:
  static front::Caller anybody() { return {"", "anybody", front::Rights::all()}; }

  static Result<front::Caller> refuse_sign_in(std::string_view, std::string_view) {
    return Error{Errc::kUnauthenticated, "this server has no authentication; do not sign in"};
  }

  std::vector<net::Endpoint> endpoints() {
    std::vector<net::Endpoint> all;
    if (!options_.http.address.empty()) {
      all.push_back({options_.http.address,
                     [this](net::Link& link) -> std::shared_ptr<net::Session> {
                       return std::make_shared<http::Session>(link, options_.http_limits, handler_);
                     },
                     options_.http.tls});
    }
    if (!options_.resp.address.empty()) {
      all.push_back({options_.resp.address,
                     [this](net::Link& link) -> std::shared_ptr<net::Session> {
                       return std::make_shared<resp::Session>(link, *hall_,
                                                              *gatherers_[link.loop().number()]);
                     },
                     options_.resp.tls});
    }
    return all;
  }

  void handle(const std::shared_ptr<http::Exchange>& exchange) {
    const http::Request& request = exchange->request();
    http::Router::Found found = router_.find(request.method, request.path);
    if (found.route == nullptr) {
      http::Response response = http::problem_response(http::Problem{
          found.allowed.empty() ? 404U : 405U, found.allowed.empty()
                                                   ? "there is nothing at " + request.target
                                                   : "this path knows " + found.allowed});
      if (!found.allowed.empty()) response.fields.add("Allow", found.allowed);
      return exchange->respond(response);
    }
    auto call = std::make_shared<http::Call>();
    call->exchange = exchange;
    call->caller = anybody();
    call->names = std::move(found.names);
    found.route->act(call);
  }

  void announce() {
    const std::vector<std::string> addresses = server_->addresses();
    std::size_t next = 0;
    if (!options_.http.address.empty()) {
      const std::string http = (options_.http.tls ? "https://" : "http://") + addresses[next++];
      std::printf("HTTP  %s\n", http.c_str());
      std::printf("try   curl -X PUT %s/api/v1/streams/orders\n", http.c_str());
    }
    if (!options_.resp.address.empty()) {
      const char* scheme = options_.resp.tls ? "rediss" : "redis";
      std::printf("RESP  %s://%s\n", scheme, addresses[next].c_str());
    }
    std::fflush(stdout);
  }

  void reload() {
    const Status reloaded = server_->reload_certificates();
    const std::string line = reloaded ? "certificates were read anew" : reloaded.error().text();
    std::fprintf(stderr, "hapax: %s\n", line.c_str());
  }

  const Options options_;
  http::Router router_;
  const http::Handler handler_ = [this](const std::shared_ptr<http::Exchange>& exchange) {
    handle(exchange);
  };
  std::unique_ptr<Store> store_;  // outlives everything that asks it
  std::unique_ptr<front::Desk> desk_;
  std::unique_ptr<resp::Hall> hall_;
  std::vector<std::unique_ptr<front::Gatherer>> gatherers_;
  std::unique_ptr<net::Server> server_;
};

}  // namespace

Status run(const Options& options) { return Process(options).run(); }

}  // namespace hapax::serve
