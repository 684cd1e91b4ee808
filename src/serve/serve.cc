#include "serve/serve.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <hapax/embedded.h>
#include <hapax/postgres_store.h>

#include "access/credential_authenticator.h"
#include "access/entry.h"
#include "access/gatherer.h"
#include "access/tenant_store.h"
#include "alerts/notice_text.h"
#include "base/format.h"
#include "config/publish.h"
#include "host/clock.h"
#include "host/entropy.h"
#include "host/signals.h"
#include "host/whole_file.h"
#include "http/session.h"
#include "net/address.h"
#include "net/server.h"
#include "resp/session.h"
#include "rest/api.h"
#include "rest/rest_door.h"
#include "rest/trace.h"
#include "serve/alert_watch.h"
#include "serve/changing_workflows.h"
#include "serve/declared_workflows.h"
#include "serve/descriptors.h"
#include "serve/health.h"
#include "serve/loading.h"
#include "serve/log.h"
#include "serve/metrics_page.h"
#include "serve/notify.h"
#include "serve/outbox_survey.h"
#include "serve/own_routes.h"
#include "serve/rounds.h"
#include "serve/startable.h"
#include "serve/stored_secrets.h"
#include "serve/streams.h"
#include "serve/survey.h"
#include "serve/tenant_settings.h"
#include "serve/workflow_records.h"
#include "wire/json_text.h"
#include "workflows/host.h"
#include "workflows/outbox.h"

namespace hapax::serve {

namespace {

constexpr std::chrono::milliseconds kTick{500};
constexpr std::chrono::milliseconds kWatchEvery{2'000};
constexpr std::chrono::milliseconds kAskOutboxesEvery{5'000};
// How often people are told that there are too many connections.
constexpr std::chrono::minutes kTellCrowdedEvery{1};
constexpr std::string_view kStarting =
    "the server is starting: its journal is being read; try again";
constexpr std::string_view kCrowded =
    "the server has as many connections as it may; try again, or ask for more "
    "(limits.connections_max, ulimit -n)";
constexpr std::chrono::milliseconds kBriefTime{1'000};

http::SessionLimits brief(http::SessionLimits limits) {
  limits.header_time = std::min(limits.header_time, kBriefTime);
  limits.body_time = std::min(limits.body_time, kBriefTime);
  limits.one_request = true;
  return limits;
}

class Process {
 public:
  explicit Process(const Options& options) : options_(options) {}

  Status run() {
    HAPAX_CHECK(check(options_));
    const host::Signals signals{SIGTERM, SIGINT, SIGHUP};
    for (const std::string& line : loose_secrets(options_)) log_.write(LogLevel::kWarning, line);
    HAPAX_TRY(authenticator_, open_authenticator());
    HAPAX_TRY(auto secret_keys, secret_keys_of(options_.secrets_key));
    add_health_routes(early_router_, health_);
    HAPAX_TRY(server_, net::Server::open(endpoints(), options_.loops, connection_limits_));
    server_->start();  // From here on its health can be asked for.
    HAPAX_CHECK(open_store());
    vault_.emplace(workflows::VaultPorts{*store_, clock_, entropy_}, std::move(secret_keys));
    secrets_.emplace(*vault_);
    HAPAX_TRY(workflows_, workflows::Host::make(workflows_to_run(), workflow_ports()));
    let_workflows_change();
    alerts_ = std::make_unique<AlertWatch>(options_.alerts, alert_ports());
    outboxes_ = std::make_unique<OutboxSurvey>(
        serve::outboxes_of(options_.workflows, outbox_opener()), clock_);
    records_.open_outboxes_with(outbox_opener());
    open_doors();
    workflows_->start();
    changing_->start();
    announce();
    notifier_.tell("READY=1");
    work(signals);
    // Whoever asks for the end a second time gets it at once, and finds what was acknowledged.
    host::Signals::let_through({SIGTERM, SIGINT});
    log_.write(LogLevel::kInfo, "stopping");
    const bool well = !health_.trouble();
    notifier_.tell("STOPPING=1");
    health_.draining();
    changing_->stop();
    workflows_->wind_down(options_.drain);
    server_->stop(options_.drain);
    workflows_->wait();
    surveyor_->stop();
    watch_->stop();
    ask_outboxes_.reset();
    entry_->close();
    while (well && entry_->ledger().keep(*store_)) {
    }
    open_ = false;
    changing_.reset();
    workflows_.reset();
    store_.reset();  // What it still answers finds everybody that asked.
    log_.tell_counted(Log::Spans::kAll);
    return Ok{};
  }

 private:
  Result<std::unique_ptr<access::CredentialAuthenticator>> open_authenticator() {
    const auto refused = [this](std::string_view peer, const std::string& reason) {
      log_.write_often(LogLevel::kWarning, "sign-in refused",
                       {{"peer", std::string(peer)}, {"reason", reason}});
    };
    return access::CredentialAuthenticator::open(verifier_settings(options_.auth), host::read_file,
                                                 accounts_, clock_, refused);
  }

  Status open_store() {
    if (options_.database.empty()) {
      HAPAX_TRY(store_, open_embedded(options_.data, store_options()));
    } else {
      HAPAX_TRY(store_, open_postgres(options_.database, database_options()));
    }
    HAPAX_CHECK(make_streams(*store_, options_.streams));
    store_->set_shares(shares_of(options_.tenants, options_.auth));
    return Ok{};
  }

  // Figures first, requests then, and last that it is ready: nobody finds less than it was told.
  void open_doors() {
    const Result<Survey> survey = take_survey(*store_, [] { return true; });
    if (survey) show(*survey);

    entry_ = std::make_unique<access::Entry>(*store_, options_.readers, &meter_, &redaction_);
    const bool signed_in = options_.auth.configured();
    rest::add_store_routes(router_, *entry_, options_.outbox,
                           signed_in ? wire::Callers::kSignedIn : wire::Callers::kAnybody,
                           [this](std::string_view tenant) { return database_outboxes(tenant); });
    rest::add_workflow_routes(router_, *entry_, declared_);
    rest::add_undelivered_route(router_, *entry_, records_);
    rest::add_dead_routes(router_, *entry_, records_);
    rest::add_replay_route(router_, *entry_, records_);
    rest::add_workflow_change_routes(router_, *entry_, changing_->changes());
    rest::add_secret_routes(router_, *entry_, *secrets_);
    add_health_routes(router_, health_);
    add_metrics_route(router_,
                      options_.metrics.open ? MetricsFor::kEverybody : MetricsFor::kAdministrators,
                      metrics_page_);
    add_health_routes(metrics_router_, health_);
    add_metrics_route(metrics_router_, MetricsFor::kEverybody, metrics_page_);
    rest_door_ = std::make_unique<rest::RestDoor>(router_, door_context(options_.http.address));
    metrics_door_ =
        std::make_unique<rest::RestDoor>(metrics_router_, door_context(options_.metrics.address));
    context_ = std::make_unique<resp::SessionContext>(resp::SessionContext{
        *entry_, *authenticator_, options_.version, options_.resp_limits, options_.resp_pending_max,
        connection_limits_.unsent_max, options_.resp_command_time, options_.resp_idle_time});
    entry_->open(server_->loops());
    open_ = true;
    health_.opened();
    look_at(survey ? Result<Statistics>(survey->store) : survey.error());
  }

  workflows::HostPorts workflow_ports() {
    const auto store_of = [this](std::string_view tenant) -> Store& {
      const base::MutexLock lock(tenant_stores_mutex_);
      auto& store = tenant_stores_[std::string(tenant)];
      if (!store) store = std::make_unique<access::TenantStore>(*store_, tenant);
      return *store;
    };
    const auto log = [this](const std::string& workflow, std::string_view line) {
      log_.write_often(LogLevel::kWarning, "workflow",
                       {{"workflow", workflow}, {"what", std::string(line)}});
    };
    return workflows::HostPorts{.store_of = store_of,
                                .clock = clock_,
                                .entropy = entropy_,
                                .log = log,
                                .open_outbox = options_.open_outbox,
                                .secrets = &*vault_,
                                .endpoints = options_.endpoints};
  }

  // What the store has beside the file runs, too.
  void let_workflows_change() {
    changing_ = std::make_unique<ChangingWorkflows>(
        ChangingWorkflows::Ports{.store = *store_,
                                 .host = *workflows_,
                                 .board = board_,
                                 .clock = clock_,
                                 .log = workflow_ports().log,
                                 .patience = options_.drain,
                                 .shared = !options_.database.empty()},
        options_.workflows, options_.tenants);
  }

  // Alerts travel by workflows of their own.
  [[nodiscard]] std::vector<delivery::Workflow> workflows_to_run() const {
    std::vector<delivery::Workflow> all = options_.workflows;
    for (const alerts::Rule& rule : options_.alerts) {
      if (rule.carrier) all.push_back(*rule.carrier);
    }
    return all;
  }

  OpenOutboxOf outbox_opener() {
    const workflows::OutboxPorts outbox_ports{
        .open = options_.open_outbox,
        .clock = clock_,
        .store_id = store_->id(),
        .key = base::format("{:016x}", ports::draw_u64(entropy_))};
    return [outbox_ports](const delivery::Workflow& workflow) {
      return workflows::open_to_report(workflow, outbox_ports);
    };
  }

  [[nodiscard]] std::vector<rest::DatabaseOutbox> database_outboxes(std::string_view tenant) const {
    std::vector<rest::DatabaseOutbox> all;
    for (const OutboxState& one : outboxes_->latest()) {
      if (one.tenant != tenant) continue;
      all.push_back({one.workflow, one.pending, one.published, one.dead_letters, one.oldest,
                     one.asked, one.trouble});
    }
    return all;
  }

  AlertWatch::Ports alert_ports() {
    const auto told = [this](const alerts::Rule& rule, const alerts::Notice& notice) {
      const bool over = notice.kind == alerts::Notice::Kind::kEnds;
      log_.write(over ? LogLevel::kInfo : LogLevel::kWarning,
                 std::string(alerts::event_type_of(notice.kind)),
                 {{"alert", rule.id}, {"what", alerts::sentence_of(rule, notice)}});
    };
    const auto failed = [this](const alerts::Rule& rule, const std::string& what) {
      log_.write_often(LogLevel::kWarning, "alert not told", {{"alert", rule.id}, {"why", what}});
    };
    return {.store_of = workflow_ports().store_of,
            .process = base::format("{:016x}", ports::draw_u64(entropy_)),
            .told = told,
            .failed = failed};
  }

  rest::DoorContext door_context(const std::string& address) {
    const auto listens = net::parse_address(address);
    const bool here = listens && listens->loopback();
    rest::DoorContext context{*authenticator_, tracer_, meter_};
    if (options_.log.requests) {
      context.log = [this](const rest::ServedRequest& served) { write(served); };
    }
    context.hosts = here ? rest::Hosts::kThisMachine : rest::Hosts::kAny;
    return context;
  }

  void write(const rest::ServedRequest& served) {
    if (!log_.wants(LogLevel::kInfo)) return;
    log_.write(LogLevel::kInfo, "request",
               {{"request", served.trace.request_id},
                {"trace", served.trace.trace_id},
                {"peer", served.peer},
                {"tenant", served.tenant},
                {"subject", served.subject},
                {"method", served.method},
                {"route", served.route},
                {"status", std::int64_t{served.status}},
                {"micros", std::int64_t{served.took.count()}}});
  }

  // Until a signal says to stop. The store is looked at beside it: it may take its time.
  void work(const host::Signals& signals) {
    const auto watchdog = watchdog_of_environment();
    const auto tick = std::min(kTick, watchdog.value_or(2 * kTick) / 2);
    const Surveyor::Found found{[this](const Result<Statistics>& figures) { look_at(figures); },
                                [this](Survey survey) {
                                  show(std::move(survey));
                                  if (!health_.trouble()) entry_->ledger().keep(*store_);
                                }};
    surveyor_ = std::make_unique<Surveyor>(*store_, found, Surveyor::Every{.look = tick});
    watch_ = std::make_unique<Rounds>(kWatchEvery, [this] { watch_workflows(); });
    if (!outboxes_->empty()) {
      ask_outboxes_ = std::make_unique<Rounds>(kAskOutboxesEvery, [this] { outboxes_->look(); });
    }
    std::uint64_t answers = 0;
    for (;;) {
      const int signal = signals.wait_for(tick);
      if (signal == SIGHUP) reload();
      if (signal == SIGTERM || signal == SIGINT) return;
      tell_crowded();
      log_.tell_counted();
      const std::uint64_t answered = surveyor_->answers();
      const bool alive = answered != std::exchange(answers, answered);
      if (watchdog && alive) notifier_.tell("WATCHDOG=1");  // The store has answered since.
    }
  }

  // Of the survey there is, however old: a store that stands still is shown as it was.
  void watch_workflows() {
    if (health_.trouble()) return;
    const auto survey = survey_.latest();
    auto found = take_backlogs(*store_, *survey, board_.workflows());
    outboxes_->add_to(found, time_from_ms(clock_.wall_ms()));
    backlogs_.put(std::move(found));
    const auto backlogs = backlogs_.latest();
    alerts_->look({*survey, *backlogs, meter_, sources_.each_endpoint});
  }

  void show(Survey survey) {
    meter_.know(survey.windows());
    survey_.put(std::move(survey));
  }

  // Connections that were turned away, now and then.
  void tell_crowded() {
    const net::ServerStatistics now = server_->statistics();
    const std::uint64_t turned_away = now.refused + now.paused;
    const auto at = std::chrono::steady_clock::now();
    if (turned_away == turned_away_ || at < tell_crowded_from_) return;
    turned_away_ = turned_away;
    tell_crowded_from_ = at + kTellCrowdedEvery;
    log_.write(LogLevel::kWarning, "too many connections: further ones are turned away",
               {{"open", std::to_string(now.open)},
                {"max", std::to_string(connection_limits_.connections_max)}});
  }

  // Each change is logged, with what the health page does not tell.
  void look_at(const Result<Statistics>& figures) {
    const auto before = health_.trouble();
    health_.look_at(figures);
    const auto now = health_.trouble();
    if (now == before) return;
    if (std::exchange(told_trouble_, now.has_value()) && !now) {
      return log_.write(LogLevel::kInfo, "ready again");
    }
    if (!now) return;  // It has just started.
    log_.write(LogLevel::kWarning, "not ready",
               {{"reason", figures ? *now : figures.error().text()}});
  }

  EmbeddedOptions store_options() {
    EmbeddedOptions store = options_.store;
    store.log = [this](const std::string& line) { log_.write(LogLevel::kInfo, line); };
    store.synced = [this](const Synced& sync) { meter_.synced(sync.took, sync.bytes); };
    return store;
  }

  PostgresStoreOptions database_options() {
    PostgresStoreOptions store;
    store.schema = options_.database_schema;
    store.memory_max = options_.store.memory_max;
    store.snapshot_every_bytes = options_.store.snapshot_every_bytes;
    store.clock_jump_max = options_.store.clock_jump_max;
    store.accept_clock_jump = options_.store.accept_clock_jump;
    store.log = [this](const std::string& line) { log_.write(LogLevel::kInfo, line); };
    return store;
  }

  std::vector<net::Endpoint> endpoints() {
    std::vector<net::Endpoint> all;
    const auto http = [this](const http::Handler& handler, const http::Gate& gate) {
      return [this, &handler, &gate](net::Link& link) -> std::shared_ptr<net::Session> {
        return std::make_shared<http::Session>(link, options_.http_limits, handler, &gate);
      };
    };
    const auto brief_http = [this](net::Link& link) -> std::shared_ptr<net::Session> {
      return std::make_shared<http::Session>(link, brief_http_limits_, crowded_handler_);
    };
    if (!options_.http.address.empty()) {
      all.push_back({options_.http.address, http(handler_, gate_), options_.http.tls, brief_http});
    }
    if (!options_.resp.address.empty()) {
      all.push_back({options_.resp.address,
                     [this](net::Link& link) -> std::shared_ptr<net::Session> {
                       if (!open_) return std::make_shared<Loading>(link);
                       return std::make_shared<resp::Session>(link, *context_,
                                                              entry_->gatherer(link.loop()));
                     },
                     options_.resp.tls,
                     [](net::Link& link) -> std::shared_ptr<net::Session> {
                       return std::make_shared<TurnedAway>(link);
                     },
                     true});  // Its loops lead the store (E6), and wait for its disk.
    }
    if (!options_.metrics.address.empty()) {
      all.push_back({options_.metrics.address, http(metrics_handler_, metrics_gate_), std::nullopt,
                     brief_http});
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
      std::printf("RESP  %s://%s\n", scheme, addresses[next++].c_str());
    }
    if (!options_.metrics.address.empty()) {
      std::printf("also  http://%s/metrics\n", addresses[next].c_str());
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
    changing_->set_tenants(config->tenants);
    store_->set_shares(shares_of(config->tenants, options_.auth));
    tell("workflows were read anew", changing_->set_file(config->workflows));
    for (const std::string& block :
         config::changed_blocks(options_.fixed_values, config::fixed_values(*config))) {
      log_.write(LogLevel::kWarning, "the configuration changed where only a start takes it",
                 {{"block", block}});
    }
    if (options_.auth.configured() || config->auth.configured()) {
      const Status reloaded = authenticator_->reload(verifier_settings(config->auth));
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
      if (!tenant.empty()) entry_->audit(tenant, line);
    }
  }

  void tell(std::string_view done, const Status& status) {
    if (status) return log_.write(LogLevel::kInfo, done);
    log_.write(LogLevel::kError, "reload failed, the old stays in use",
               {{"reason", status.error().text()}});
  }

  [[nodiscard]] static net::ServerLimits within_descriptors(net::ServerLimits limits) {
    const std::size_t most = connections_within(raise_descriptor_limit());
    limits.connections_max = std::min(limits.connections_max, most);
    return limits;
  }

  const Options options_;
  WorkflowBoard board_;
  const DeclaredWorkflows declared_{
      board_,
      [this](const workflows::FiguresBoard::Visit& visit) { workflows_->figures().each(visit); },
      [this](const delivery::Workflow& workflow) {
        return workflows_->waits().of(workflow.tenant, workflow.id.text());
      }};
  WorkflowRecords records_{[this](std::string_view tenant, std::string_view workflow) {
    return declared_.declared(tenant, workflow);
  }};
  const net::ServerLimits connection_limits_ = within_descriptors(options_.connection_limits);
  const http::SessionLimits brief_http_limits_ = brief(options_.http_limits);
  host::HostClock clock_;
  Log log_{options_.log, clock_};
  access::Accounts accounts_{limits_of(options_.tenants)};
  host::HostEntropy entropy_;
  rest::Tracer tracer_{entropy_};
  const access::Redaction redaction_{
      [this] { return tracer_.next_id(); },
      [this](const Error& error, std::string_view reference) {
        log_.write_often(LogLevel::kWarning, "the store failed",
                         {{"request", std::string(reference)}, {"reason", error.text()}});
      },
      [this](const Error& error, std::string_view reference) {
        log_.write(LogLevel::kError, "the audit is not complete",
                   {{"request", std::string(reference)}, {"reason", error.text()}});
      }};
  metrics::Meter meter_;
  Health health_;
  SurveyBoard survey_;
  BacklogBoard backlogs_;
  const Notifier notifier_ = Notifier::of_environment();
  const MetricsSources sources_{
      meter_,
      accounts_,
      survey_,
      health_,
      options_.version,
      options_.outbox,
      options_.slos,
      [this](Time now, const access::Ledger::Visit& visit) {
        if (open_) entry_->ledger().each_key_bytes(now, visit);
      },
      [this](const workflows::FiguresBoard::Visit& visit) {
        if (open_) workflows_->figures().each(visit);
      },
      &backlogs_,
      [this] { return open_ ? outboxes_->latest() : std::vector<OutboxState>{}; },
      options_.metrics.endpoints_max};
  const MetricsPage metrics_page_ = [this](const std::optional<std::string>& tenant) {
    return metrics_page(sources_, server_->statistics(), tenant);
  };
  bool told_trouble_ = false;       // the log said that it is not ready
  std::atomic<bool> open_ = false;  // there is a store, and everything below is made
  rest::Router early_router_;
  rest::Router router_;
  rest::Router metrics_router_;
  const http::Handler handler_ = [this](const std::shared_ptr<http::Exchange>& exchange) {
    if (!open_) return rest::RestDoor::handle_only(exchange, early_router_, tracer_, kStarting);
    rest_door_->handle(exchange);
  };
  const http::Gate gate_ = [this](const http::Request& header, std::string_view peer) {
    return open_ ? rest_door_->gate(header, peer) : http::Gated{};
  };
  const http::Handler metrics_handler_ = [this](const std::shared_ptr<http::Exchange>& exchange) {
    if (!open_) return rest::RestDoor::handle_only(exchange, early_router_, tracer_, kStarting);
    metrics_door_->handle(exchange);
  };
  // Each door has a gate of its own: what a gate leaves with a request says where that leads.
  const http::Gate metrics_gate_ = [this](const http::Request& header, std::string_view peer) {
    return open_ ? metrics_door_->gate(header, peer) : http::Gated{};
  };
  // The health of a server that is full, so that it is not taken for a dead one.
  const http::Handler crowded_handler_ = [this](const std::shared_ptr<http::Exchange>& exchange) {
    rest::RestDoor::handle_only(exchange, early_router_, tracer_, kCrowded);
  };
  std::uint64_t turned_away_ = 0;  // connections of which people were told
  std::chrono::steady_clock::time_point tell_crowded_from_{};
  std::unique_ptr<access::CredentialAuthenticator> authenticator_;
  std::unique_ptr<Store> store_;  // outlives everything that asks it
  base::Mutex tenant_stores_mutex_;
  std::map<std::string, std::unique_ptr<access::TenantStore>> tenant_stores_
      HAPAX_GUARDED_BY(tenant_stores_mutex_);  // of workflows
  std::optional<workflows::SecretVault> vault_;
  std::optional<StoredSecrets> secrets_;
  std::unique_ptr<workflows::Host> workflows_;
  std::unique_ptr<ChangingWorkflows> changing_;
  std::unique_ptr<access::Entry> entry_;
  std::unique_ptr<rest::RestDoor> rest_door_;
  std::unique_ptr<rest::RestDoor> metrics_door_;
  std::unique_ptr<resp::SessionContext> context_;
  std::unique_ptr<net::Server> server_;
  std::unique_ptr<Surveyor> surveyor_;
  std::unique_ptr<AlertWatch> alerts_;
  std::unique_ptr<OutboxSurvey> outboxes_;
  std::unique_ptr<Rounds> watch_;         // of the workflows
  std::unique_ptr<Rounds> ask_outboxes_;  // none: no workflow reads one
};

}  // namespace

Status run(const Options& options) { return Process(options).run(); }

}  // namespace hapax::serve
