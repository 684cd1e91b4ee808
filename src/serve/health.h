// Whether the server is of use right now, and if not, why. From any thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include <hapax/store.h>

namespace hapax::serve {

class Health {
 public:
  // Requests are taken from here on; before, nothing that the store says makes it ready.
  void opened() { begin(Phase::kOpen, "the store was not looked at yet"); }
  void draining() {
    begin(Phase::kDraining, "stopping: what was begun is finished, nothing new is taken");
  }
  // What the store says of itself. It counts while the server is open.
  void look_at(const Result<Statistics>& figures);

  // What a person should know of although it is ready; empty: nothing.
  [[nodiscard]] std::string warning() const {
    const std::lock_guard lock(mutex_);
    return warning_;
  }
  // Nothing: it is ready.
  [[nodiscard]] std::optional<std::string> trouble() const {
    const std::lock_guard lock(mutex_);
    return trouble_;
  }

 private:
  enum class Phase : std::uint8_t { kStarting, kOpen, kDraining };

  void begin(Phase phase, std::string trouble) {
    const std::lock_guard lock(mutex_);
    phase_ = phase;
    trouble_ = std::move(trouble);
  }
  void set(std::optional<std::string> trouble, std::string warning = {}) {
    const std::lock_guard lock(mutex_);
    if (phase_ != Phase::kOpen) return;
    trouble_ = std::move(trouble);
    warning_ = std::move(warning);
  }

  mutable std::mutex mutex_;
  Phase phase_ = Phase::kStarting;                                              // guarded by mutex_
  std::optional<std::string> trouble_ = "starting: the journal is being read";  // guarded by mutex_
  std::string warning_;                                                         // the same
};

}  // namespace hapax::serve
