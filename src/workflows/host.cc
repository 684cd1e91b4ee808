#include "workflows/host.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "delivery/stream_source.h"
#include "delivery/workflow_runs.h"
#include "workflows/endpoint_probe.h"
#include "workflows/endpoint_sink.h"
#include "workflows/own_streams.h"
#include "workflows/plan.h"

namespace hapax::workflows {

namespace {

using delivery::Workflow;

// What an engine starts leaves at once: a request that waits in the sender would use up its time.
std::size_t sum_of_concurrency(const std::vector<Workflow>& workflows) {
  std::size_t sum = webhook::SendLimits{}.per_origin;
  for (const Workflow& workflow : workflows) {
    if (delivery::why_not_run(workflow)) continue;
    sum += concurrency_of(workflow.endpoints.front());
  }
  return sum;
}

std::string drawn_owner(ports::Entropy& entropy) {
  return base::format("hapax-{:016x}", ports::draw_u64(entropy));
}

delivery::StreamSource::Wanted wanted_by(const delivery::EndpointSettings& endpoint) {
  if (endpoint.event_types.empty()) return {};
  return [endpoint](const delivery::Outgoing& record) { return endpoint.takes(record.type); };
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
    auto running = host->make_running(workflow);
    if (!running) {
      return Error{running.error().code,
                   base::format("workflow '{}': {}", workflow.id.text(), running.error().detail)};
    }
    host->running_.push_back(*std::move(running));
  }
  return host;
}

Result<std::unique_ptr<Running>> Host::make_running(const Workflow& workflow) {
  const delivery::EndpointSettings& endpoint = workflow.endpoints.front();
  HAPAX_TRY(auto sink,
            EndpointSink::make(workflow.delivery, *endpoint.http(), *sender_, ports_.clock));
  std::vector<RunningEndpoint> endpoints;
  endpoints.push_back({std::move(sink), policy_of(workflow, endpoint, ports_.entropy)});
  endpoints.back().policy.observer = &figures_.add(workflow, endpoint);
  Store& store = ports_.store_of(workflow.tenant);
  if (std::holds_alternative<delivery::FromHttp>(*workflow.source)) {
    HAPAX_CHECK(make_stream(store, events_stream_of(workflow.id), events_settings_of(workflow)));
  }
  const Running::Log log = [this, id = workflow.id.text()](std::string_view line) {
    ports_.log(id, line);
  };
  auto settings = source_settings(workflow, drawn_owner(ports_.entropy));
  if (const delivery::HttpTarget* target = probed_target(workflow)) {
    HAPAX_TRY(settings.claims->probe, EndpointProbe::make(*target, *sender_));
  }
  auto source = std::make_unique<delivery::StreamSource>(store, ports_.clock, std::move(settings),
                                                         key_of(workflow, store.id()),
                                                         wanted_by(endpoint), log);
  return std::make_unique<Running>(std::move(source), std::move(endpoints),
                                   engine_settings(workflow), ports_.clock, log);
}

void Host::start() {
  for (const auto& running : running_) running->start();
}

void Host::wind_down(Duration patience) {
  for (const auto& running : running_) running->wind_down(patience);
}

void Host::wait() {
  for (const auto& running : running_) running->wait();
  if (sender_) sender_->stop(std::chrono::milliseconds{0});
}

}  // namespace hapax::workflows
