#include "workflows/staging_run.h"

#include <algorithm>
#include <utility>

#include "workflows/step_loop.h"

namespace hapax::workflows {

StagingRun::StagingRun(Store& store, ports::Clock& clock, delivery::StagerSettings settings,
                       delivery::Stager::Compose compose, std::unique_ptr<JqTransform> transform,
                       Log log, std::unique_ptr<PauseSwitch> pause, std::shared_ptr<WaitNote> note)
    : clock_(clock),
      log_(std::move(log)),
      transform_(std::move(transform)),
      pause_(std::move(pause)),
      note_(std::move(note)),
      stager_(store, clock, std::move(settings), std::move(compose), transform_.get(), log_) {}

StagingRun::~StagingRun() {
  wind_down();
  wait();
}

void StagingRun::start() {
  thread_ = std::thread([this] { run(); });
}

void StagingRun::wind_down() {
  stop_ = true;
  stager_.nudge();
}

void StagingRun::wait() {
  if (thread_.joinable()) thread_.join();
}

void StagingRun::run() {
  const StepLoop loop{.step = [this] { return step(); },
                      .wait = [this](Duration most) { stager_.wait(most); },
                      .log = log_,
                      .note = note_.get()};
  run_steps(loop, clock_, stop_);
  if (const Status ended = stager_.stop(); !ended) log_(ended.error().text());
  ended_ = true;
}

// While it is paused its leases end, so what it holds comes again.
Result<Duration> StagingRun::step() {
  if (!pause_) return stager_.step();
  if (pause_->paused()) return PauseSwitch::kLookEvery;
  HAPAX_TRY(const Duration idle_for, stager_.step());
  return std::min(idle_for, PauseSwitch::kLookEvery);
}

}  // namespace hapax::workflows
