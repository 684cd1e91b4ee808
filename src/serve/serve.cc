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
#include "net/address.h"
#include "net/server.h"
#include "resp/session.h"

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

Status check_address(const std::string& text, const Options& options) {
  if (text.empty()) return Ok{};
  HAPAX_TRY(const net::Address address, net::parse_address(text));
  if (address.loopback() || options.open_to_all) return Ok{};
  return Error{Errc::kInvalidArgument,
               address.text() +
                   " can be reached from other machines, and nobody has to sign in. "
                   "Listen on 127.0.0.1, configure authentication, or say --open-to-all"};
}

class Process {
 public:
  explicit Process(const Options& options) : options_(options) {}

  Status run() {
    HAPAX_CHECK(check_address(options_.http, options_));
    HAPAX_CHECK(check_address(options_.resp, options_));
    Signals signals;
    EmbeddedOptions embedded;
    embedded.memory_max = options_.memory_max;
    HAPAX_TRY(store_, open_embedded(options_.data, embedded));
    desk_ = std::make_unique<front::Desk>(*store_, options_.readers);
    http::add_store_routes(router_, *desk_);
    hall_ = std::make_unique<resp::Hall>(
        resp::Hall{*desk_, refuse_sign_in, anybody(), options_.version, {}, 10'000});
    HAPAX_TRY(server_, net::Server::open(endpoints(), options_.loops, {}));
    for (net::Loop* loop : server_->loops()) {
      gatherers_.push_back(std::make_unique<front::Gatherer>(*desk_, *loop));
    }
    server_->start();
    announce();
    while (signals.wait() == SIGHUP) reload();
    std::fprintf(stderr, "hapax: stopping\n");
    server_->stop(std::chrono::milliseconds{options_.drain_ms});
    return Ok{};
  }

 private:
  static front::Caller anybody() { return {"", "anybody", front::Rights::all()}; }

  static Result<front::Caller> refuse_sign_in(std::string_view, std::string_view) {
    return Error{Errc::kUnauthenticated, "this server has no authentication; do not sign in"};
  }

  std::vector<net::Endpoint> endpoints() {
    std::vector<net::Endpoint> all;
    if (!options_.http.empty()) {
      all.push_back({options_.http,
                     [this](net::Link& link) -> std::shared_ptr<net::Session> {
                       return std::make_shared<http::Session>(link, http_limits_, handler_);
                     },
                     std::nullopt});
    }
    if (!options_.resp.empty()) {
      all.push_back({options_.resp,
                     [this](net::Link& link) -> std::shared_ptr<net::Session> {
                       return std::make_shared<resp::Session>(link, *hall_,
                                                              *gatherers_[link.loop().number()]);
                     },
                     std::nullopt});
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
    if (!options_.http.empty()) {
      const std::string& http = addresses[next++];
      std::printf("HTTP  http://%s\n", http.c_str());
      std::printf("try   curl -X PUT http://%s/api/v1/streams/orders\n", http.c_str());
    }
    if (!options_.resp.empty()) std::printf("RESP  redis://%s\n", addresses[next].c_str());
    std::fflush(stdout);
  }

  void reload() {
    const Status reloaded = server_->reload_certificates();
    if (!reloaded) std::fprintf(stderr, "hapax: %s\n", reloaded.error().text().c_str());
  }

  const Options options_;
  const http::SessionLimits http_limits_;
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
