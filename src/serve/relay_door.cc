#include "serve/relay_door.h"

#include <atomic>
#include <chrono>
#include <optional>
#include <utility>

#include "host/entropy.h"
#include "http/session.h"
#include "metrics/page.h"
#include "net/server.h"
#include "rest/rest_door.h"
#include "rest/router.h"
#include "rest/trace.h"
#include "serve/delivery_metrics.h"
#include "serve/log.h"
#include "serve/outbox_survey.h"
#include "serve/own_routes.h"
#include "serve/rounds.h"

namespace hapax::serve {

namespace {

constexpr std::chrono::milliseconds kRound{500};
constexpr std::uint64_t kRoundsPerLook = 10;
constexpr std::chrono::milliseconds kDoorDrain{1'000};
constexpr std::string_view kOnlyThese =
    "a relay has /metrics, /health/live and /health/ready, and nothing else";

std::vector<OutboxSurvey::Outbox> surveyed(const std::vector<RelayedOutbox>& outboxes) {
  std::vector<OutboxSurvey::Outbox> all;
  for (const RelayedOutbox& each : outboxes) all.push_back({"", each.name, each.open});
  return all;
}

class RelayDoorProcess final : public RelayDoor {
 public:
  RelayDoorProcess(const std::vector<RelayedOutbox>& outboxes, ports::Clock& clock)
      : clock_(clock), survey_(surveyed(outboxes), clock) {}
  ~RelayDoorProcess() override {
    if (server_ != nullptr) server_->stop(kDoorDrain);
  }

  Status start(const std::string& address) {
    add_health_routes(router_, [this] { return trouble(); });
    add_metrics_route(router_, MetricsFor::kEverybody,
                      [this](const std::optional<std::string>&) { return page(); });
    const auto session = [this](net::Link& link) -> std::shared_ptr<net::Session> {
      return std::make_shared<http::Session>(link, limits_, handler_);
    };
    HAPAX_TRY(server_, net::Server::open({{address, session, std::nullopt}}, 1, {}));
    server_->start();
    // A database that is away holds up nobody, so it is not ready before the first look.
    rounds_ = std::make_unique<Rounds>(kRound, [this] {
      if (rounds_done_++ % kRoundsPerLook == 0) survey_.look();
    });
    return Ok{};
  }

  [[nodiscard]] std::string address() const override { return server_->addresses()[0]; }
  void draining() override { draining_ = true; }

 private:
  [[nodiscard]] std::optional<std::string> trouble() const {
    if (draining_) return "stopping: what was begun is finished, nothing new is sent";
    for (const OutboxState& one : survey_.latest()) {
      if (!one.trouble.empty()) return one.workflow + ": " + one.trouble;
    }
    return std::nullopt;
  }
  [[nodiscard]] std::string page() const {
    const std::vector<OutboxState> all = survey_.latest();
    metrics::Page page;
    page.gauge("outbox_events_pending", "Number of pending outbox events");
    std::uint64_t pending = 0;
    for (const OutboxState& one : all) pending += one.pending;
    page.sample({}, pending);
    BacklogBoard::All backlogs;
    survey_.add_to(backlogs, time_from_ms(clock_.wall_ms()));
    add_backlogs(page, backlogs, std::nullopt);
    add_outboxes(page, all);
    page.gauge("hapax_outbox_published", "Records that were sent and are kept as history.");
    for (const OutboxState& one : all) {
      if (one.asked) page.sample({{"workflow", one.workflow}}, one.published);
    }
    return page.text();
  }

  ports::Clock& clock_;
  const http::SessionLimits limits_;
  host::HostEntropy entropy_;
  rest::Tracer tracer_{entropy_};
  std::atomic<bool> draining_ = false;
  OutboxSurvey survey_;
  std::uint64_t rounds_done_ = 0;  // of the thread of the rounds
  rest::Router router_;
  const http::Handler handler_ = [this](const std::shared_ptr<http::Exchange>& exchange) {
    rest::RestDoor::handle_only(exchange, router_, tracer_, kOnlyThese);
  };
  std::unique_ptr<net::Server> server_;
  std::unique_ptr<Rounds> rounds_;  // ends before what it asks
};

class JsonRelayLog final : public RelayLog {
 public:
  explicit JsonRelayLog(ports::Clock& clock) : log_(settings(), clock) {}
  void write(std::string_view line) override { log_.write(LogLevel::kInfo, line); }

 private:
  static config::Log settings() {
    config::Log settings;
    settings.format = config::LogFormat::kJson;
    return settings;
  }
  Log log_;
};

}  // namespace

Result<std::unique_ptr<RelayDoor>> RelayDoor::open(const std::string& address,
                                                   const std::vector<RelayedOutbox>& outboxes,
                                                   ports::Clock& clock) {
  auto made = std::make_unique<RelayDoorProcess>(outboxes, clock);
  HAPAX_CHECK(made->start(address));
  return std::unique_ptr<RelayDoor>(std::move(made));
}

std::unique_ptr<RelayLog> RelayLog::json(ports::Clock& clock) {
  return std::make_unique<JsonRelayLog>(clock);
}

}  // namespace hapax::serve
