// The first step of a workflow in two steps, on a thread of its own.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string_view>
#include <thread>

#include "delivery/stager.h"
#include "ports/clock.h"
#include "workflows/jq_transform.h"
#include "workflows/pause.h"
#include "workflows/wait_notes.h"

namespace hapax::workflows {

class StagingRun {
 public:
  using Log = std::function<void(std::string_view line)>;

  // Without a transform, records are stored as they are. Store and clock outlive it.
  StagingRun(Store& store, ports::Clock& clock, delivery::StagerSettings settings,
             delivery::Stager::Compose compose, std::unique_ptr<JqTransform> transform, Log log,
             std::unique_ptr<PauseSwitch> pause = {}, std::shared_ptr<WaitNote> note = {});
  ~StagingRun();  // winds down, and waits
  StagingRun(const StagingRun&) = delete;
  StagingRun& operator=(const StagingRun&) = delete;

  void start();
  // Nothing more is taken, and what is held is given back: on its thread.
  void wind_down();
  void wait();
  // It never began, or its thread is done: wait() returns at once.
  [[nodiscard]] bool ended() const { return !thread_.joinable() || ended_; }

 private:
  void run();
  [[nodiscard]] Result<Duration> step();

  ports::Clock& clock_;
  const Log log_;
  const std::unique_ptr<JqTransform> transform_;
  const std::unique_ptr<PauseSwitch> pause_;  // none: it is never paused
  const std::shared_ptr<WaitNote> note_;      // none: nobody asks
  delivery::Stager stager_;
  std::atomic<bool> stop_ = false;
  std::atomic<bool> ended_ = false;
  std::thread thread_;
};

}  // namespace hapax::workflows
