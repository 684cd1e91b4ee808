#include "workflows/host.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>
#include <utility>

#include "base/format.h"
#include "base/hex.h"
#include "delivery/engine_end.h"
#include "delivery/stream_source.h"
#include "delivery/workflow_runs.h"
#include "signing/delivery_key.h"
#include "workflows/endpoint_sink.h"

namespace hapax::workflows {

namespace {

using delivery::Workflow;

constexpr Duration kTroubleFirst{500};  // after an error of the store, doubled …
constexpr Duration kTroubleMax{15'000};
// What a process held that was killed is handed out again after so long. Leases are renewed while
// a request is under way, so it may be shorter than a request.
constexpr Duration kLease{10'000};

// What the workflow has in the store. All its names begin with its own, so that they can lie
// together.
delivery::StreamSourceSettings source_settings(const Workflow& workflow, std::string owner) {
  const std::string& id = workflow.id.text();
  delivery::StreamSourceSettings settings;
  settings.stream = std::get<delivery::FromStream>(*workflow.source).stream;
  settings.consumer = id;
  settings.dead_letters = id + ".dead";
  settings.attempts = id + ".attempts";
  settings.owner = std::move(owner);
  settings.give_up_after = workflow.delivery.retries.give_up_after;
  settings.attempts_kept = settings.give_up_after + std::chrono::days{30};
  return settings;
}

delivery::StreamSource::KeyOf key_of(const Workflow& workflow, std::string store_id) {
  const auto form = workflow.delivery.key.form == delivery::KeyForm::kShort
                        ? signing::KeyForm::kShort
                        : signing::KeyForm::kWhole;
  const std::string& source = std::get<delivery::FromStream>(*workflow.source).stream;
  return [store_id = std::move(store_id), form, source](const Record& record,
                                                        std::uint64_t stream_uid) {
    const std::string stream = base::format("{}", stream_uid);
    signing::StreamOrigin origin{.store = store_id, .stream = stream, .record = {}};
    // A record that was put back has another sequence than the one it was first sent under. A dead
    // letter of another stream tells of a sequence there.
    const bool put_back = record.lineage && record.lineage->to && record.lineage->stream == source;
    const Sequence first = put_back ? record.lineage->sequence : record.sequence;
    if (record.id.empty()) {
      origin.record = first;
    } else {
      origin.record = std::string_view(record.id);
    }
    return signing::DeliveryKey::make(origin).value().text(form);
  };
}

delivery::EndpointPolicy policy_of(const Workflow& workflow, ports::Entropy& entropy) {
  const delivery::EndpointSettings& endpoint = workflow.endpoints.front();
  delivery::EndpointPolicy policy;
  policy.concurrency = endpoint.concurrency.value_or(delivery::kConcurrencyDefault);
  policy.rate = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(endpoint.rate, std::numeric_limits<std::uint32_t>::max()));
  policy.attempts_max = workflow.delivery.retries.attempts_max;
  policy.retry_after = [backoff = workflow.delivery.retries.backoff,
                        &entropy](std::uint32_t attempt) {
    return delivery::pause_after(backoff, attempt, ports::draw_u64(entropy));
  };
  return policy;
}

// What an engine starts leaves at once: a request that waits in the sender would use up its time.
std::size_t sum_of_concurrency(const std::vector<Workflow>& workflows) {
  std::size_t sum = webhook::SendLimits{}.per_origin;
  for (const Workflow& workflow : workflows) {
    if (delivery::why_not_run(workflow)) continue;
    sum += workflow.endpoints.front().concurrency.value_or(delivery::kConcurrencyDefault);
  }
  return sum;
}

delivery::EngineSettings engine_settings(const Workflow& workflow) {
  const delivery::EndpointSettings& endpoint = workflow.endpoints.front();
  delivery::EngineSettings settings;
  settings.lease = kLease;
  const auto concurrency = endpoint.concurrency.value_or(delivery::kConcurrencyDefault);
  settings.window = std::clamp<std::uint32_t>(concurrency * 16, 256, 8'000);
  return settings;
}

}  // namespace

class Host::Running {
 public:
  Running(const Workflow& workflow, std::unique_ptr<EndpointSink> sink, Store& store,
          const HostPorts& ports)
      : id_(workflow.id.text()),
        ports_(ports),
        sink_(std::move(sink)),
        source_(store, ports.clock, source_settings(workflow, drawn_owner(ports.entropy)),
                key_of(workflow, store.id()), wanted_by(workflow.endpoints.front()), log()),
        engine_(source_, ports.clock, engine_settings(workflow), log(),
                [this] { source_.nudge(); }) {
    engine_.add_endpoint(*sink_, policy_of(workflow, ports.entropy));
  }
  ~Running() {
    wind_down(Duration{0});
    wait();
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  void start() {
    thread_ = std::thread([this] { run(); });
  }
  void wind_down(Duration patience) {
    if (winding_down_.exchange(true)) return;
    patience_ = patience;
    stop_ = true;
    engine_.wind_down();
    source_.nudge();
  }
  void wait() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  static std::string drawn_owner(ports::Entropy& entropy) {
    return base::format("hapax-{:016x}", ports::draw_u64(entropy));
  }
  static delivery::StreamSource::Wanted wanted_by(const delivery::EndpointSettings& endpoint) {
    if (endpoint.event_types.empty()) return {};
    return [endpoint](const delivery::Outgoing& record) { return endpoint.takes(record.type); };
  }
  [[nodiscard]] std::function<void(std::string_view)> log() {
    return [this](std::string_view line) { ports_.log(id_, line); };
  }

  void run() {
    while (!stop_) {
      const auto step = engine_.step();
      if (!step) {
        fail(step.error());
        continue;
      }
      if (std::exchange(trouble_, Duration{0}) != Duration{0}) ports_.log(id_, "runs again");
      if (step->idle_for > Duration{0} && !stop_) source_.wait(step->idle_for);
    }
    const Status ended = delivery::end_engine(engine_, ports_.clock, patience_,
                                              [this](Duration span) { source_.wait(span); });
    if (!ended) ports_.log(id_, ended.error().text());
  }

  // Told once, however long it lasts.
  void fail(const Error& error) {
    if (trouble_ == Duration{0}) ports_.log(id_, error.text());
    trouble_ = trouble_ == Duration{0} ? kTroubleFirst : std::min(trouble_ * 2, kTroubleMax);
    const std::int64_t until = ports_.clock.steady_ms() + trouble_.count();
    while (!stop_ && ports_.clock.steady_ms() < until) {
      source_.wait(Duration{until - ports_.clock.steady_ms()});
    }
  }

  const std::string id_;
  const HostPorts& ports_;
  const std::unique_ptr<EndpointSink> sink_;
  delivery::StreamSource source_;
  delivery::Engine engine_;
  Duration trouble_{0};
  Duration patience_{0};  // written before stop_, read after it
  std::atomic<bool> winding_down_ = false;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

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
    auto sink = EndpointSink::make(workflow, *host->sender_, host->ports_.clock);
    if (!sink) {
      return Error{sink.error().code,
                   base::format("workflow '{}': {}", workflow.id.text(), sink.error().detail)};
    }
    host->running_.push_back(std::make_unique<Running>(
        workflow, *std::move(sink), host->ports_.store_of(workflow.tenant), host->ports_));
  }
  return host;
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
