#include "workflows/host.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "delivery/logged_source.h"
#include "delivery/store_sink.h"
#include "delivery/stream_source.h"
#include "delivery/workflow_runs.h"
#include "workflows/endpoint_probe.h"
#include "workflows/endpoint_sink.h"
#include "workflows/outbox.h"
#include "workflows/own_streams.h"
#include "workflows/plan.h"
#include "workflows/row_mark.h"
#include "workflows/staging.h"

namespace hapax::workflows {

namespace {

using delivery::Workflow;

std::string drawn_owner(ports::Entropy& entropy) {
  return base::format("hapax-{:016x}", ports::draw_u64(entropy));
}

// Whoever tries a workflow holds a thread that answers others, too: some are left to those.
class CountedTrial {
 public:
  explicit CountedTrial(std::atomic<int>& all) : all_(all), number_(++all) {}
  ~CountedTrial() { --all_; }
  CountedTrial(const CountedTrial&) = delete;
  CountedTrial& operator=(const CountedTrial&) = delete;

  [[nodiscard]] bool too_many() const { return number_ > kTrialsAtOnce; }

 private:
  static constexpr int kTrialsAtOnce = 2;
  std::atomic<int>& all_;
  const int number_;
};

delivery::StreamSource::Route route_to(const delivery::EndpointSettings& endpoint) {
  if (endpoint.event_types.empty()) return {};
  return [endpoint](const delivery::Outgoing& record) -> std::optional<std::uint32_t> {
    if (endpoint.takes(record.type)) return 0;
    return std::nullopt;
  };
}

}  // namespace

Host::Host(HostPorts ports) : ports_(std::move(ports)), waits_(ports_.clock) {}

Host::~Host() {
  wind_down(Duration{0});
  wait();
}

Result<std::unique_ptr<Host>> Host::make(const std::vector<Workflow>& workflows, HostPorts ports) {
  std::unique_ptr<Host> host(new Host(std::move(ports)));
  for (const Workflow& workflow : workflows) {
    if (delivery::why_not_run(workflow)) continue;
    const Status added = host->put(workflow, Duration{0});
    if (!added) {
      return Error{added.error().code,
                   base::format("workflow '{}': {}", workflow.id.text(), added.error().detail)};
    }
  }
  return host;
}

// What an engine starts leaves at once: a request that waits in the sender would use up its time.
// So engines alone bound the requests to an endpoint.
Status Host::need_sender() {
  if (sender_) return Ok{};
  webhook::SenderSettings settings;
  HAPAX_TRY(settings.guard, guard_of(ports_.endpoints));
  settings.limits.per_origin = settings.limits.under_way;
  HAPAX_TRY(sender_, webhook::Sender::open(std::move(settings)));
  return Ok{};
}

Status Host::need_transforms() {
  if (transforms_) return Ok{};
  HAPAX_TRY(transforms_, transform::TransformPool::start({}));
  return Ok{};
}

Status Host::check(const Workflow& workflow) {
  const base::MutexLock lock(mutex_);
  HAPAX_CHECK(need_sender());
  HAPAX_CHECK(make_verifier(workflow));
  if (workflow.transform) {
    HAPAX_CHECK(need_transforms());
    HAPAX_CHECK(JqTransform::make(*transforms_, *workflow.transform));
  }
  for (const delivery::EndpointSettings& endpoint : workflow.endpoints) {
    if (endpoint.http() == nullptr) continue;
    HAPAX_CHECK(EndpointSink::make(workflow.delivery, *endpoint.http(), reach_of(workflow)));
  }
  if (delivery::stores_rows(workflow)) HAPAX_CHECK(make_intake(workflow));
  if (!is_staged(workflow) || has_outbox(workflow)) HAPAX_CHECK(make_source(workflow));
  return Ok{};
}

Result<Trial> Host::try_out(const Workflow& workflow, const Record& sample, bool send) {
  const CountedTrial counted(trials_);
  if (counted.too_many()) return Error{Errc::kUnavailable, "other workflows are tried; try again"};
  std::unique_ptr<JqTransform> transform;
  std::optional<EndpointReach> reach;
  {
    const base::MutexLock lock(mutex_);
    if (winding_down_) return Error{Errc::kShuttingDown, "the server stops"};
    HAPAX_CHECK(need_sender());
    if (workflow.transform) {
      HAPAX_CHECK(need_transforms());
      HAPAX_TRY(transform, JqTransform::make(*transforms_, *workflow.transform));
    }
    reach.emplace(reach_of(workflow));
  }
  Store& store = ports_.store_of(workflow.tenant);
  TrialPorts ports{.reach = *reach,
                   .transform = transform.get(),
                   .store_id = store.id(),
                   .stream_uid = 0,
                   .send = send};
  if (!std::holds_alternative<delivery::FromOutbox>(*workflow.source)) {
    const std::string stream = source_stream_of(workflow);
    const auto found = store.read({.stream = stream, .max = 1});
    if (!found && found.error().code != Errc::kNotFound) return found.error();
    if (found) ports.stream_uid = found->stream_uid;
  }
  return try_workflow(workflow, sample, ports);
}

Result<std::unique_ptr<Host::Member>> Host::make_member(const Workflow& workflow) {
  HAPAX_CHECK(need_sender());
  auto member = std::make_unique<Member>();
  Store& store = ports_.store_of(workflow.tenant);
  if (std::holds_alternative<delivery::FromHttp>(*workflow.source)) {
    HAPAX_CHECK(delivery::ensure_stream(store, events_of(workflow)));
  }
  if (delivery::stores_rows(workflow)) {
    HAPAX_CHECK(delivery::ensure_stream(store, rows_of(workflow)));
    HAPAX_TRY(member->intake, make_intake(workflow));
  }
  if (is_staged(workflow)) {
    HAPAX_TRY(member->staging, make_staging(workflow));
  }
  if (!is_staged(workflow) || has_outbox(workflow)) {
    HAPAX_CHECK(make_running(workflow, *member));
  }
  return member;
}

Status Host::put(const Workflow& workflow, Duration patience) {
  const base::MutexLock lock(mutex_);
  if (winding_down_) return Error{Errc::kShuttingDown, "the server stops"};
  HAPAX_TRY(auto member, make_member(workflow));
  Slot& slot = slots_[{workflow.tenant, workflow.id.text()}];
  retire(slot, patience);
  slot.current = std::move(member);
  tend(slot);
  return Ok{};
}

void Host::remove(std::string_view tenant, std::string_view id, Duration patience) {
  const base::MutexLock lock(mutex_);
  const auto found = slots_.find({std::string(tenant), std::string(id)});
  if (found != slots_.end()) retire(found->second, patience);
}

// One that has not begun is only forgotten, so at most one of a name winds down.
void Host::retire(Slot& slot, Duration patience) {
  if (slot.current && slot.current->begun) {
    slot.current->wind_down(patience);
    slot.leaving = std::move(slot.current);
  }
  slot.current.reset();
}

void Host::tend(Slot& slot) {
  if (slot.leaving && slot.leaving->ended()) slot.leaving.reset();
  if (slot.current && !slot.leaving && started_ && !slot.current->begun) slot.current->begin();
}

void Host::tend() {
  const base::MutexLock lock(mutex_);
  if (winding_down_) return;  // Nothing begins any more.
  for (auto& [name, slot] : slots_) tend(slot);
  std::erase_if(slots_,
                [](const auto& each) { return !each.second.current && !each.second.leaving; });
}

bool Host::is_gone(std::string_view tenant, std::string_view id) const {
  const base::MutexLock lock(mutex_);
  return !slots_.contains({std::string(tenant), std::string(id)});
}

bool Host::is_settled() const {
  const base::MutexLock lock(mutex_);
  return std::none_of(slots_.begin(), slots_.end(), [](const auto& each) {
    return each.second.leaving != nullptr || each.second.current == nullptr;
  });
}

std::size_t Host::size() const {
  const base::MutexLock lock(mutex_);
  return static_cast<std::size_t>(std::count_if(slots_.begin(), slots_.end(), [](const auto& each) {
    return each.second.current != nullptr;
  }));
}

std::function<void(std::string_view)> Host::log_of(const Workflow& workflow) {
  return [this, id = workflow.id.text()](std::string_view line) { ports_.log(id, line); };
}

EndpointReach Host::reach_of(const Workflow& workflow) {
  EndpointReach reach{.sender = *sender_, .clock = ports_.clock, .proxy = ports_.endpoints.proxy};
  reach.secrets.declared_in = workflow.declared_in;
  if (ports_.secrets != nullptr) {
    auto& book = books_[workflow.tenant];
    if (!book) {
      book = std::make_unique<SecretBook>(*ports_.secrets, ports_.clock, workflow.tenant);
    }
    reach.secrets.stored = book.get();
  }
  return reach;
}

std::unique_ptr<PauseSwitch> Host::pause_of(const Workflow& workflow) {
  return std::make_unique<PauseSwitch>(ports_.store_of(workflow.tenant), ports_.clock, workflow.id);
}

Result<std::unique_ptr<StagingRun>> Host::make_staging(const Workflow& workflow) {
  std::unique_ptr<JqTransform> transform;
  if (workflow.transform) {
    HAPAX_CHECK(need_transforms());
    HAPAX_TRY(transform, JqTransform::make(*transforms_, *workflow.transform));
  }
  Store& store = ports_.store_of(workflow.tenant);
  HAPAX_TRY(auto verifier, make_verifier(workflow));
  return std::make_unique<StagingRun>(
      store, ports_.clock, stager_settings(workflow, drawn_owner(ports_.entropy)),
      compose_of(workflow, store.id(), std::move(verifier)), std::move(transform), log_of(workflow),
      pause_of(workflow), waits_.add(workflow));
}

// Rows become records of the workflow's own stream, and are settled in their database after that.
Result<std::unique_ptr<Running>> Host::make_intake(const Workflow& workflow) {
  Store& store = ports_.store_of(workflow.tenant);
  const OutboxPorts ports{ports_.open_outbox, ports_.clock, store.id(),
                          drawn_owner(ports_.entropy)};
  HAPAX_TRY(auto source, make_row_source(workflow, ports, log_of(workflow)));
  delivery::StoreSinkPorts into{
      .submit = [&store](const Commit& commit,
                         Store::Done done) { store.submit(commit, std::move(done)); },
      .clock = ports_.clock,
      .told =
          [note = waits_.add(workflow)](std::string_view reason) {
            reason.empty() ? note->goes_on() : note->waits(reason);
          }};
  std::vector<RunningEndpoint> endpoints;
  endpoints.push_back(
      {std::make_unique<delivery::StoreSink>(std::move(into), rows_of(workflow).name),
       intake_policy()});
  return std::make_unique<Running>(std::move(source), std::move(endpoints), intake_settings(),
                                   ports_.clock, log_of(workflow), pause_of(workflow),
                                   waits_.add(workflow));
}

Status Host::make_running(const Workflow& workflow, Member& member) {
  std::vector<RunningEndpoint> endpoints;
  for (const delivery::EndpointSettings& endpoint : workflow.endpoints) {
    if (endpoint.http() == nullptr) continue;  // The first step has stored it there.
    EndpointReach reach = reach_of(workflow);
    reach.note = waits_.add(workflow);
    HAPAX_TRY(auto sink, EndpointSink::make(workflow.delivery, *endpoint.http(), reach));
    endpoints.push_back({std::move(sink), policy_of(workflow, endpoint, ports_.entropy)});
    member.figures.push_back(figures_.add(workflow, endpoint));
    endpoints.back().policy.observer = member.figures.back().get();
  }
  HAPAX_TRY(auto source, make_source(workflow));
  member.running = std::make_unique<Running>(
      std::move(source), std::move(endpoints), engine_settings(workflow), ports_.clock,
      log_of(workflow), pause_of(workflow), waits_.add(workflow));
  return Ok{};
}

Result<std::unique_ptr<delivery::Source>> Host::make_source(const Workflow& workflow) {
  Store& store = ports_.store_of(workflow.tenant);
  const std::string owner = drawn_owner(ports_.entropy);
  HAPAX_TRY(auto verifier, make_verifier(workflow));
  if (!source_stream(workflow)) {
    const OutboxPorts ports{ports_.open_outbox, ports_.clock, store.id(), owner, verifier};
    const auto wanted = [endpoint = workflow.endpoints.front()](const delivery::Outgoing& record) {
      return endpoint.takes(record.type);
    };
    HAPAX_TRY(auto source, make_outbox_source(workflow, ports, wanted, log_of(workflow)));
    const auto attempt_log = attempt_log_of(workflow);
    if (!attempt_log) return source;
    delivery::AttemptLog log(store, ports_.clock, *attempt_log, log_of(workflow));
    return std::unique_ptr<delivery::Source>(
        std::make_unique<delivery::LoggedSource>(std::move(source), ports_.clock, std::move(log)));
  }
  auto settings = source_settings(workflow, owner);
  if (const delivery::HttpTarget* target = probed_target(workflow)) {
    HAPAX_TRY(settings.claims->probe, EndpointProbe::make(*target, reach_of(workflow)));
  }
  auto route =
      is_staged(workflow) ? route_from_outbox(workflow) : route_to(workflow.endpoints.front());
  if (!is_staged(workflow) && delivery::stores_rows(workflow)) {
    route = route_of_rows(std::move(route));
  }
  return std::unique_ptr<delivery::Source>(std::make_unique<delivery::StreamSource>(
      store, ports_.clock, std::move(settings), key_of(workflow, store.id(), std::move(verifier)),
      std::move(route), log_of(workflow)));
}

void Host::Member::begin() {
  begun = true;
  if (intake) intake->start();
  if (staging) staging->start();
  if (running) running->start();
}

void Host::Member::wind_down(Duration patience) const {
  if (intake) intake->wind_down(patience);
  if (staging) staging->wind_down();
  if (running) running->wind_down(patience);
}

void Host::Member::wait() const {
  if (intake) intake->wait();
  if (staging) staging->wait();
  if (running) running->wait();
}

bool Host::Member::ended() const {
  return (!intake || intake->ended()) && (!staging || staging->ended()) &&
         (!running || running->ended());
}

void Host::start() {
  const base::MutexLock lock(mutex_);
  started_ = true;
  for (auto& [name, slot] : slots_) tend(slot);
}

void Host::wind_down(Duration patience) {
  const base::MutexLock lock(mutex_);
  winding_down_ = true;
  for (const auto& [name, slot] : slots_) {
    if (slot.current) slot.current->wind_down(patience);
  }
}

// Threads of workflows never ask for the lock.
void Host::wait() {
  const base::MutexLock lock(mutex_);
  for (const auto& [name, slot] : slots_) {
    if (slot.leaving) slot.leaving->wait();
    if (slot.current) slot.current->wait();
  }
  if (sender_) sender_->stop(std::chrono::milliseconds{0});
}

}  // namespace hapax::workflows
