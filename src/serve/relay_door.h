// What `hapax relay` tells others of itself: figures for Prometheus, and whether it is well. It
// asks its outboxes on a thread and over connections of its own, so it holds up nothing that is
// sent.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/result.h>

#include "ports/clock.h"
#include "relay/source.h"

namespace hapax::serve {

struct RelayedOutbox {
  std::string name;  // as it may be shown
  std::function<Result<std::unique_ptr<relay::Source>>()> open;
};

// /metrics, /health/live and /health/ready, without a credential, until it is destroyed.
class RelayDoor {
 public:
  // Binds and answers. The clock outlives it.
  [[nodiscard]] static Result<std::unique_ptr<RelayDoor>> open(
      const std::string& address, const std::vector<RelayedOutbox>& outboxes, ports::Clock& clock);
  RelayDoor() = default;
  RelayDoor(const RelayDoor&) = delete;
  RelayDoor& operator=(const RelayDoor&) = delete;
  virtual ~RelayDoor() = default;

  // Where it really listens.
  [[nodiscard]] virtual std::string address() const = 0;
  // From now on it is not ready: it sends nothing new.
  virtual void draining() = 0;
};

// Lines of a relay as JSON objects, as those of a server are (`log.format`).
class RelayLog {
 public:
  RelayLog() = default;
  RelayLog(const RelayLog&) = delete;
  RelayLog& operator=(const RelayLog&) = delete;
  virtual ~RelayLog() = default;

  [[nodiscard]] static std::unique_ptr<RelayLog> json(ports::Clock& clock);
  // From any thread.
  virtual void write(std::string_view line) = 0;
};

}  // namespace hapax::serve
