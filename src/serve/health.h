// Whether the server is of use right now, and if not, why. From any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <hapax/store.h>

#include "base/mutex.h"

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
    const base::MutexLock lock(mutex_);
    return warning_;
  }
  // Nothing: it is ready.
  [[nodiscard]] std::optional<std::string> trouble() const {
    const base::MutexLock lock(mutex_);
    return trouble_;
  }

 private:
  enum class Phase : std::uint8_t { kStarting, kOpen, kDraining };

  void begin(Phase phase, std::string trouble) {
    const base::MutexLock lock(mutex_);
    phase_ = phase;
    trouble_ = std::move(trouble);
  }
  void set(std::optional<std::string> trouble, std::string warning = {}) {
    const base::MutexLock lock(mutex_);
    if (phase_ != Phase::kOpen) return;
    trouble_ = std::move(trouble);
    warning_ = std::move(warning);
  }

  mutable base::Mutex mutex_;
  Phase phase_ HAPAX_GUARDED_BY(mutex_) = Phase::kStarting;
  std::optional<std::string> trouble_ HAPAX_GUARDED_BY(mutex_) =
      "starting: the journal is being read";
  std::string warning_ HAPAX_GUARDED_BY(mutex_);
};

}  // namespace hapax::serve
