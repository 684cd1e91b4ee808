#include "workflows/host.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "delivery/stream_source.h"
#include "delivery/workflow_runs.h"
#include "workflows/endpoint_probe.h"
#include "workflows/endpoint_sink.h"
#include "workflows/outbox.h"
#include "workflows/own_streams.h"
#include "workflows/plan.h"
#include "workflows/staging.h"

namespace hapax::workflows {

namespace {

using delivery::Workflow;

// What an engine starts leaves at once: a request that waits in the sender would use up its time.
std::size_t sum_of_concurrency(const std::vector<Workflow>& workflows) {
  std::size_t sum = webhook::SendLimits{}.per_origin;
  for (const Workflow& workflow : workflows) {
    if (delivery::why_not_run(workflow)) continue;
    for (const delivery::EndpointSettings& endpoint : workflow.endpoints) {
      if (endpoint.http() != nullptr) sum += concurrency_of(endpoint);
    }
  }
  return sum;
}

std::string drawn_owner(ports::Entropy& entropy) {
  return base::format("hapax-{:016x}", ports::draw_u64(entropy));
}

delivery::StreamSource::Route route_to(const delivery::EndpointSettings& endpoint) {
  if (endpoint.event_types.empty()) return {};
  return [endpoint](const delivery::Outgoing& record) -> std::optional<std::uint32_t> {
    if (endpoint.takes(record.type)) return 0;
    return std::nullopt;
  };
}

}  // namespace

Host::Host(HostPorts ports) : ports_(std::move(ports)) {}

Host::~Host() {
  wind_down(Duration{0});
  wait();
}

Result<std::unique_ptr<Host>> Host::make(const std::vector<Workflow>& workflows, HostPorts ports) {
  std::unique_ptr<Host> host(new Host(std::move(ports)));
  const bool any = std::any_of(workflows.begin(), workflows.end(), [](const Workflow& workflow) {
    return !delivery::why_not_run(workflow);
  });
  if (!any) return host;
  webhook::SenderSettings sender;
  sender.limits.per_origin = sum_of_concurrency(workflows);
  HAPAX_TRY(host->sender_, webhook::Sender::open(std::move(sender)));
  for (const Workflow& workflow : workflows) {
    if (delivery::why_not_run(workflow)) continue;
    const Status added = host->add(workflow);
    if (!added) {
      return Error{added.error().code,
                   base::format("workflow '{}': {}", workflow.id.text(), added.error().detail)};
    }
  }
  return host;
}

Status Host::add(const Workflow& workflow) {
  if (std::holds_alternative<delivery::FromHttp>(*workflow.source)) {
    Store& store = ports_.store_of(workflow.tenant);
    HAPAX_CHECK(delivery::ensure_stream(store, events_of(workflow)));
  }
  if (is_staged(workflow)) {
    HAPAX_TRY(auto staging, make_staging(workflow));
    staging_.push_back(std::move(staging));
  }
  if (!is_staged(workflow) || has_outbox(workflow)) {
    HAPAX_TRY(auto running, make_running(workflow));
    running_.push_back(std::move(running));
  }
  ++size_;
  return Ok{};
}

std::function<void(std::string_view)> Host::log_of(const Workflow& workflow) {
  return [this, id = workflow.id.text()](std::string_view line) { ports_.log(id, line); };
}

Result<std::unique_ptr<StagingRun>> Host::make_staging(const Workflow& workflow) {
  std::unique_ptr<JqTransform> transform;
  if (workflow.transform) {
    if (!transforms_) {
      HAPAX_TRY(transforms_, transform::TransformPool::start({}));
    }
    HAPAX_TRY(transform, JqTransform::make(*transforms_, *workflow.transform));
  }
  Store& store = ports_.store_of(workflow.tenant);
  return std::make_unique<StagingRun>(
      store, ports_.clock, stager_settings(workflow, drawn_owner(ports_.entropy)),
      compose_of(workflow, store.id()), std::move(transform), log_of(workflow));
}

Result<std::unique_ptr<Running>> Host::make_running(const Workflow& workflow) {
  std::vector<RunningEndpoint> endpoints;
  for (const delivery::EndpointSettings& endpoint : workflow.endpoints) {
    if (endpoint.http() == nullptr) continue;  // The first step has stored it there.
    HAPAX_TRY(auto sink,
              EndpointSink::make(workflow.delivery, *endpoint.http(), *sender_, ports_.clock));
    endpoints.push_back({std::move(sink), policy_of(workflow, endpoint, ports_.entropy)});
    endpoints.back().policy.observer = &figures_.add(workflow, endpoint);
  }
  HAPAX_TRY(auto source, make_source(workflow));
  return std::make_unique<Running>(std::move(source), std::move(endpoints),
                                   engine_settings(workflow), ports_.clock, log_of(workflow));
}

Result<std::unique_ptr<delivery::Source>> Host::make_source(const Workflow& workflow) {
  Store& store = ports_.store_of(workflow.tenant);
  const std::string owner = drawn_owner(ports_.entropy);
  if (const auto* outbox = std::get_if<delivery::FromOutbox>(&*workflow.source)) {
    const OutboxPorts ports{ports_.open_outbox, ports_.clock, store.id(), owner};
    const auto wanted = [endpoint = workflow.endpoints.front()](const delivery::Outgoing& record) {
      return endpoint.takes(record.type);
    };
    return make_outbox_source(workflow, *outbox, ports, wanted, log_of(workflow));
  }
  auto settings = source_settings(workflow, owner);
  if (const delivery::HttpTarget* target = probed_target(workflow)) {
    HAPAX_TRY(settings.claims->probe, EndpointProbe::make(*target, *sender_));
  }
  auto route =
      is_staged(workflow) ? route_from_outbox(workflow) : route_to(workflow.endpoints.front());
  return std::unique_ptr<delivery::Source>(std::make_unique<delivery::StreamSource>(
      store, ports_.clock, std::move(settings), key_of(workflow, store.id()), std::move(route),
      log_of(workflow)));
}

void Host::start() {
  for (const auto& staging : staging_) staging->start();
  for (const auto& running : running_) running->start();
}

void Host::wind_down(Duration patience) {
  for (const auto& staging : staging_) staging->wind_down();
  for (const auto& running : running_) running->wind_down(patience);
}

void Host::wait() {
  for (const auto& staging : staging_) staging->wait();
  for (const auto& running : running_) running->wait();
  if (sender_) sender_->stop(std::chrono::milliseconds{0});
}

}  // namespace hapax::workflows
