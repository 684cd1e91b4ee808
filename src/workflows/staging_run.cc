#include "workflows/staging_run.h"

#include <utility>

#include "workflows/step_loop.h"

namespace hapax::workflows {

StagingRun::StagingRun(Store& store, ports::Clock& clock, delivery::StagerSettings settings,
                       delivery::Stager::Compose compose, std::unique_ptr<JqTransform> transform,
                       Log log)
    : clock_(clock),
      log_(std::move(log)),
      transform_(std::move(transform)),
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
  const StepLoop loop{.step = [this] { return stager_.step(); },
                      .wait = [this](Duration most) { stager_.wait(most); },
                      .log = log_};
  run_steps(loop, clock_, stop_);
  if (const Status ended = stager_.stop(); !ended) log_(ended.error().text());
}

}  // namespace hapax::workflows
