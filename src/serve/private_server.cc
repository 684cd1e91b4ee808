#include "serve/private_server.h"

#include <array>
#include <utility>

#include <hapax/embedded.h>

#include "access/entry.h"
#include "auth/words.h"
#include "base/tenant_frame.h"
#include "digest/base64.h"
#include "digest/sign.h"
#include "host/clock.h"
#include "host/entropy.h"
#include "http/session.h"
#include "net/server.h"
#include "rest/api.h"
#include "rest/rest_door.h"
#include "rest/trace.h"
#include "serve/declared_workflows.h"
#include "serve/health.h"
#include "serve/log.h"
#include "serve/metrics_page.h"
#include "serve/own_routes.h"
#include "serve/tenant_settings.h"
#include "serve/workflow_records.h"

namespace hapax::serve {

namespace {

constexpr std::size_t kInsideReaders = 2;
constexpr std::chrono::milliseconds kInsideDrain{1'000};

// A11: others on this machine can reach the port, but nobody else knows the credential.
class OneCaller final : public access::Authenticator {
 public:
  OneCaller(std::string tenant, ports::Entropy& entropy) : tenant_(std::move(tenant)) {
    std::array<std::byte, 32> bytes{};
    entropy.fill(bytes);
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    token_ = digest::encode_base64(text, digest::Base64::kUrl);
  }

  Result<access::Admission> authenticate(std::string_view credential, std::string_view) override {
    if (!digest::equal_in_constant_time(credential, token_)) {
      return Error{Errc::kUnauthenticated, "this port is not for you"};
    }
    return access::Admission{{{tenant_, "command line", access::Rights::all()}}};
  }
  bool holds(const access::Admission&) override { return true; }
  [[nodiscard]] const std::optional<access::Caller>& anybody() const override { return nobody_; }

  [[nodiscard]] const std::string& token() const { return token_; }

 private:
  const std::string tenant_;
  std::string token_;
  const std::optional<access::Caller> nobody_;
};

class PrivateServerProcess final : public PrivateServer {
 public:
  PrivateServerProcess(std::string version, std::string tenant)
      : version_(std::move(version)), caller_(std::move(tenant), entropy_) {}
  ~PrivateServerProcess() override {
    if (server_ != nullptr) server_->stop(kInsideDrain);
    if (entry_ != nullptr) entry_->close();
    store_.reset();
  }

  Status start(const std::string& folder) {
    EmbeddedOptions options;
    options.log = [](const std::string&) {};
    HAPAX_TRY(store_, open_embedded(folder, options));
    entry_ = std::make_unique<access::Entry>(*store_, kInsideReaders, &meter_);
    rest::add_store_routes(router_, *entry_, sources_.outbox, wire::Callers::kSignedIn);
    rest::add_workflow_routes(router_, *entry_, nothing_declared_);
    rest::add_undelivered_route(router_, *entry_, records_);
    rest::add_dead_routes(router_, *entry_, records_);
    rest::add_replay_route(router_, *entry_, records_);
    health_.opened();
    health_.look_at(store_->statistics());
    add_health_routes(router_, health_);
    add_metrics_route(router_, MetricsFor::kAdministrators,
                      [this](const std::optional<std::string>& tenant) {
                        return metrics_page(sources_, server_->statistics(), tenant);
                      });
    const auto session = [this](net::Link& link) -> std::shared_ptr<net::Session> {
      return std::make_shared<http::Session>(link, limits_, handler_, &gate_);
    };
    HAPAX_TRY(server_, net::Server::open({{"127.0.0.1:0", session, std::nullopt}}, 1, {}));
    entry_->open(server_->loops());
    server_->start();
    return Ok{};
  }

  [[nodiscard]] std::string url() const override { return "http://" + server_->addresses()[0]; }
  [[nodiscard]] const std::string& token() const override { return caller_.token(); }
  [[nodiscard]] std::set<std::string> tenants() override {
    std::set<std::string> found;
    const auto streams = store_->streams();
    if (!streams) return found;
    for (const std::string& stream : *streams) found.emplace(base::split_name(stream).tenant);
    found.erase("");
    return found;
  }

 private:
  const std::string version_;
  const http::SessionLimits limits_;
  host::HostClock clock_;
  host::HostEntropy entropy_;
  Log log_{{}, clock_};
  access::Accounts accounts_{limits_of({})};
  rest::Tracer tracer_{entropy_};
  metrics::Meter meter_;
  Health health_;
  SurveyBoard survey_;
  OneCaller caller_;
  const WorkflowBoard no_workflows_;
  const DeclaredWorkflows nothing_declared_{no_workflows_};  // their logs of attempts are there
  const WorkflowRecords records_{[this](std::string_view tenant, std::string_view workflow) {
    return nothing_declared_.declared(tenant, workflow);
  }};
  const MetricsSources sources_{meter_,  accounts_, survey_,
                                health_, version_,  config::ExactlyOnce{}.outbox.table_name};
  rest::Router router_;
  rest::RestDoor door_{router_, rest::DoorContext{caller_, tracer_, meter_}};
  const http::Handler handler_ = [this](const std::shared_ptr<http::Exchange>& exchange) {
    door_.handle(exchange);
  };
  const http::Gate gate_ = [this](const http::Request& header, std::string_view peer) {
    return door_.gate(header, peer);
  };
  std::unique_ptr<Store> store_;
  std::unique_ptr<access::Entry> entry_;
  std::unique_ptr<net::Server> server_;
};

}  // namespace

Result<std::unique_ptr<PrivateServer>> PrivateServer::open(const std::string& folder,
                                                           const std::string& version,
                                                           const std::string& tenant) {
  if (!tenant.empty() && !auth::is_tenant(tenant)) {
    return Error{Errc::kInvalidArgument, "'" + tenant +
                                             "' is no name of a tenant: 1 to 64 letters, digits, "
                                             "'.', '_', '-', a letter or digit first"};
  }
  auto made = std::make_unique<PrivateServerProcess>(version, tenant);
  HAPAX_CHECK(made->start(folder));
  return std::unique_ptr<PrivateServer>(std::move(made));
}

}  // namespace hapax::serve
