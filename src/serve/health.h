// Whether the server is of use right now, and if not, why. Set by the main thread, asked by all.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include <hapax/store.h>

namespace hapax::serve {

class Health {
 public:
  void serving() { set(std::nullopt); }
  void draining() { set("stopping: what was begun is finished, nothing new is taken"); }
  // What the store says of itself, while serving.
  void look_at(const Result<Statistics>& figures);

  // Nothing: it is ready.
  [[nodiscard]] std::optional<std::string> trouble() const {
    const std::lock_guard lock(mutex_);
    return trouble_;
  }

 private:
  void set(std::optional<std::string> trouble) {
    const std::lock_guard lock(mutex_);
    trouble_ = std::move(trouble);
  }

  mutable std::mutex mutex_;
  std::optional<std::string> trouble_ = "starting: the journal is being read";  // guarded by mutex_
};

}  // namespace hapax::serve
