#include "workflows/running.h"

#include <algorithm>
#include <utility>

#include "delivery/engine_end.h"

namespace hapax::workflows {

namespace {

constexpr Duration kTroubleFirst{500};  // after an error of the store, doubled …
constexpr Duration kTroubleMax{15'000};

}  // namespace

Running::Running(std::unique_ptr<delivery::Source> source, std::vector<RunningEndpoint> endpoints,
                 const delivery::EngineSettings& settings, ports::Clock& clock, Log log,
                 std::unique_ptr<PauseSwitch> pause)
    : clock_(clock),
      log_(std::move(log)),
      source_(std::move(source)),
      endpoints_(std::move(endpoints)),
      pause_(std::move(pause)),
      engine_(*source_, clock, settings, log_, [this] { source_->nudge(); }) {
  for (const RunningEndpoint& endpoint : endpoints_) {
    engine_.add_endpoint(*endpoint.sink, endpoint.policy);
  }
}

Running::~Running() {
  wind_down(Duration{0});
  wait();
}

void Running::start() {
  thread_ = std::thread([this] { run(); });
}

void Running::wind_down(Duration patience) {
  if (winding_down_.exchange(true)) return;
  patience_ = patience;
  stop_ = true;
  engine_.wind_down();
  source_->nudge();
}

void Running::wait() {
  if (thread_.joinable()) thread_.join();
}

void Running::run() {
  while (!stop_) {
    look_at_pause();
    const auto step = engine_.step();
    if (!step) {
      fail(step.error());
      continue;
    }
    if (std::exchange(trouble_, Duration{0}) != Duration{0}) log_("runs again");
    const Duration most = pause_ ? PauseSwitch::kLookEvery : step->idle_for;
    if (step->idle_for > Duration{0} && !stop_) source_->wait(std::min(step->idle_for, most));
  }
  const Status ended = delivery::end_engine(engine_, clock_, patience_,
                                            [this](Duration span) { source_->wait(span); });
  if (!ended) log_(ended.error().text());
}

void Running::look_at_pause() {
  if (pause_ == nullptr) return;
  const bool paused = pause_->paused();
  if (paused != std::exchange(paused_, paused)) log_(paused ? "is paused" : "is resumed");
  engine_.set_paused(paused);
}

// Told once, however long it lasts.
void Running::fail(const Error& error) {
  if (trouble_ == Duration{0}) log_(error.text());
  trouble_ = trouble_ == Duration{0} ? kTroubleFirst : std::min(trouble_ * 2, kTroubleMax);
  const std::int64_t until = clock_.steady_ms() + trouble_.count();
  while (!stop_ && clock_.steady_ms() < until) {
    source_->wait(Duration{until - clock_.steady_ms()});
  }
}

}  // namespace hapax::workflows
