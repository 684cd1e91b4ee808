// One workflow that runs: a source, its endpoints and an engine, on a thread of its own.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <hapax/result.h>
#include <hapax/time.h>

#include "delivery/engine.h"
#include "delivery/sink.h"
#include "delivery/source.h"
#include "ports/clock.h"
#include "workflows/pause.h"
#include "workflows/wait_notes.h"

namespace hapax::workflows {

struct RunningEndpoint {
  std::unique_ptr<delivery::Sink> sink;
  delivery::EndpointPolicy policy;
};

class Running {
 public:
  using Log = std::function<void(std::string_view line)>;

  // The clock outlives it.
  Running(std::unique_ptr<delivery::Source> source, std::vector<RunningEndpoint> endpoints,
          const delivery::EngineSettings& settings, ports::Clock& clock, Log log,
          std::unique_ptr<PauseSwitch> pause = {}, std::shared_ptr<WaitNote> note = {});
  ~Running();  // winds down without patience, and waits
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  void start();
  // The first call counts.
  void wind_down(Duration patience);
  void wait();
  // It never began, or its thread is done: wait() returns at once.
  [[nodiscard]] bool ended() const { return !thread_.joinable() || ended_; }

 private:
  void run();
  void look_at_pause();
  [[nodiscard]] Result<Duration> step();

  ports::Clock& clock_;
  const Log log_;
  const std::unique_ptr<delivery::Source> source_;
  const std::vector<RunningEndpoint> endpoints_;
  const std::unique_ptr<PauseSwitch> pause_;  // none: it is never paused
  const std::shared_ptr<WaitNote> note_;      // none: nobody asks
  delivery::Engine engine_;
  bool paused_ = false;
  Duration patience_{0};  // written before stop_, read after it
  std::atomic<bool> winding_down_ = false;
  std::atomic<bool> stop_ = false;
  std::atomic<bool> ended_ = false;
  std::thread thread_;
};

}  // namespace hapax::workflows
