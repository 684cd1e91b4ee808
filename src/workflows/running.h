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
          const delivery::EngineSettings& settings, ports::Clock& clock, Log log);
  ~Running();  // winds down without patience, and waits
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  void start();
  // The first call counts.
  void wind_down(Duration patience);
  void wait();

 private:
  void run();
  [[nodiscard]] Result<Duration> step();

  ports::Clock& clock_;
  const Log log_;
  const std::unique_ptr<delivery::Source> source_;
  const std::vector<RunningEndpoint> endpoints_;
  delivery::Engine engine_;
  Duration patience_{0};  // written before stop_, read after it
  std::atomic<bool> winding_down_ = false;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace hapax::workflows
