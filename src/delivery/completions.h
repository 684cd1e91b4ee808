// What sinks said, from whatever thread, until the engine comes by.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "delivery/sink.h"

namespace hapax::delivery {

class Completions {
 public:
  struct Completion {
    std::uint64_t start = 0;  // which start() it answers
    std::vector<SendResult> results;
  };

  // `arrived` runs on the thread of the sink, and must not block.
  explicit Completions(std::function<void()> arrived) : arrived_(std::move(arrived)) {}

  void put(std::uint64_t start, std::vector<SendResult> results) {
    const base::MutexLock lock(mutex_);
    waiting_.push_back({start, std::move(results)});
    if (arrived_) arrived_();
  }
  // Nobody comes by any more: a sink may still answer, and calls nothing of whoever is gone.
  void close() {
    const base::MutexLock lock(mutex_);
    arrived_ = nullptr;
  }
  [[nodiscard]] std::vector<Completion> take() {
    const base::MutexLock lock(mutex_);
    return std::exchange(waiting_, {});
  }
  [[nodiscard]] bool empty() {
    const base::MutexLock lock(mutex_);
    return waiting_.empty();
  }

 private:
  base::Mutex mutex_;
  std::function<void()> arrived_ HAPAX_GUARDED_BY(mutex_);
  std::vector<Completion> waiting_ HAPAX_GUARDED_BY(mutex_);
};

}  // namespace hapax::delivery
