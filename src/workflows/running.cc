#include "workflows/running.h"

#include <utility>

#include "delivery/engine_end.h"
#include "workflows/step_loop.h"

namespace hapax::workflows {

Running::Running(std::unique_ptr<delivery::Source> source, std::vector<RunningEndpoint> endpoints,
                 const delivery::EngineSettings& settings, ports::Clock& clock, Log log,
                 std::unique_ptr<PauseSwitch> pause, std::shared_ptr<WaitNote> note)
    : clock_(clock),
      log_(std::move(log)),
      source_(std::move(source)),
      endpoints_(std::move(endpoints)),
      pause_(std::move(pause)),
      note_(std::move(note)),
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
  source_->hurry();
  source_->nudge();
}

void Running::wait() {
  if (thread_.joinable()) thread_.join();
}

void Running::run() {
  const StepLoop loop{.step = [this] { return step(); },
                      .wait = [this](Duration most) { source_->wait(most); },
                      .log = log_,
                      .note = note_.get()};
  run_steps(loop, clock_, stop_);
  const Status ended = delivery::end_engine(engine_, clock_, patience_,
                                            [this](Duration span) { source_->wait(span); });
  if (!ended) log_(ended.error().text());
  ended_ = true;
}

void Running::look_at_pause() {
  if (pause_ == nullptr) return;
  const bool paused = pause_->paused();
  if (paused != std::exchange(paused_, paused)) log_(paused ? "is paused" : "is resumed");
  engine_.set_paused(paused);
}

Result<Duration> Running::step() {
  look_at_pause();
  HAPAX_TRY(const delivery::Step step, engine_.step());
  return pause_ ? std::min(step.idle_for, PauseSwitch::kLookEvery) : step.idle_for;
}

}  // namespace hapax::workflows
