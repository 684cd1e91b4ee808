#include "serve/serve.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <vector>

#include <hapax/embedded.h>

#include "front/desk.h"
#include "front/gatherer.h"
#include "host/clock.h"
#include "http/api.h"
#include "http/session.h"
#include "net/server.h"
#include "resp/session.h"
#include "serve/http_door.h"
#include "serve/log.h"
#include "serve/reception.h"
#include "serve/streams.h"
#include "wire/json_text.h"

namespace hapax::serve {

namespace {

constexpr std::chrono::milliseconds kTick{500};
constexpr std::chrono::seconds kCountEvery{5};

// Signals are taken by the main thread only; every other thread inherits the mask.
class Signals {
 public:
  Signals() {
    sigemptyset(&set_);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set_, signal);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
  }
  // 0: none came in time.
  int wait_for(std::chrono::milliseconds span) {
    const timespec until{span.count() / 1000, (span.count() % 1000) * 1'000'000};
    return std::max(0, sigtimedwait(&set_, nullptr, &until));
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
    HAPAX_TRY(reception_, Reception::open(options_.auth, accounts_, clock_, log_));
    HAPAX_TRY(store_, open_embedded(options_.data, store_options()));
    HAPAX_CHECK(make_streams(*store_, options_.streams));
    count_storage();
    desk_ = std::make_unique<front::Desk>(*store_, options_.readers);
    http::add_store_routes(router_, *desk_);
    http_door_ = std::make_unique<HttpDoor>(router_, *reception_);
    hall_ = std::make_unique<resp::Hall>(resp::Hall{
        *desk_, *reception_, options_.version, options_.resp_limits, options_.resp_pending_max});
    HAPAX_TRY(server_, net::Server::open(endpoints(), options_.loops, options_.connection_limits));
    for (net::Loop* loop : server_->loops()) {
      gatherers_.push_back(std::make_unique<front::Gatherer>(*desk_, *loop));
    }
    server_->start();
    announce();
    work(signals);
    log_.write(LogLevel::kInfo, "stopping");
    server_->stop(options_.drain);
    return Ok{};
  }

 private:
  // Until a signal says to stop.
  void work(Signals& signals) {
    auto next_count = std::chrono::steady_clock::now();
    for (;;) {
      const int signal = signals.wait_for(kTick);
      if (signal == SIGHUP) reload();
      if (signal == SIGTERM || signal == SIGINT) return;
      if (std::chrono::steady_clock::now() < next_count) continue;
      if (accounts_.any_storage_max()) count_storage();
      next_count = std::chrono::steady_clock::now() + kCountEvery;
    }
  }

  void count_storage() {
    auto counted = bytes_by_tenant(*store_);
    if (counted) accounts_.count_records(*std::move(counted));
  }

  EmbeddedOptions store_options() {
    EmbeddedOptions store = options_.store;
    store.log = [this](const std::string& line) { log_.write(LogLevel::kInfo, line); };
    return store;
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

  // What fails leaves the old in place, and the rest is reloaded all the same.
  void reload() {
    tell("certificates were read anew", server_->reload_certificates());
    if (!options_.reread) return;
    const Result<config::Config> config = options_.reread();
    if (!config) return tell("", config.error());
    log_.set_level(config->log.level);
    accounts_.set(limits_of(config->tenants));
    if (options_.auth.configured() || config->auth.configured()) {
      const Status reloaded = reception_->reload(config->auth);
      tell("keys and tokens were read anew", reloaded);
      if (reloaded) audit_reload();
    }
  }

  // Who could sign in changed; every tenant that was here may want to know.
  void audit_reload() {
    const std::string line = wire::JsonObject()
                                 .add("act", "reload")
                                 .add("subject", "keys and tokens")
                                 .add("actor", "server")
                                 .text();
    for (const auto& [tenant, account] : accounts_.all()) {
      if (!tenant.empty()) desk_->audit(tenant, line);
    }
  }

  void tell(std::string_view done, const Status& status) {
    if (status) return log_.write(LogLevel::kInfo, done);
    log_.write(LogLevel::kError, "reload failed, the old stays in use",
               {{"reason", status.error().text()}});
  }

  const Options options_;
  host::HostClock clock_;
  Log log_{options_.log, clock_};
  front::Accounts accounts_{limits_of(options_.tenants)};
  http::Router router_;
  const http::Handler handler_ = [this](const std::shared_ptr<http::Exchange>& exchange) {
    http_door_->handle(exchange);
  };
  std::unique_ptr<Reception> reception_;
  std::unique_ptr<Store> store_;  // outlives everything that asks it
  std::unique_ptr<front::Desk> desk_;
  std::unique_ptr<HttpDoor> http_door_;
  std::unique_ptr<resp::Hall> hall_;
  std::vector<std::unique_ptr<front::Gatherer>> gatherers_;
  std::unique_ptr<net::Server> server_;
};

}  // namespace

Status run(const Options& options) { return Process(options).run(); }

}  // namespace hapax::serve
