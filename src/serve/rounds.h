// Does something every now and then, on a thread of its own, until it is stopped.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <thread>
#include <utility>

#include "base/mutex.h"

namespace hapax::serve {

class Rounds {
 public:
  // The first round is after `every`, and each one so long after the end of the one before.
  Rounds(std::chrono::milliseconds every, std::function<void()> round)
      : every_(every), round_(std::move(round)), thread_([this] { run(); }) {}
  ~Rounds() { stop(); }
  Rounds(const Rounds&) = delete;
  Rounds& operator=(const Rounds&) = delete;

  // Ends after the round that is under way.
  void stop() {
    {
      const base::MutexLock lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

 private:
  void run() {
    for (;;) {
      {
        base::MutexLock lock(mutex_);
        if (lock.wait_for(wake_, every_, [this]() HAPAX_REQUIRES(mutex_) { return stop_; })) return;
      }
      round_();
    }
  }

  const std::chrono::milliseconds every_;
  const std::function<void()> round_;
  base::Mutex mutex_;
  std::condition_variable wake_;
  bool stop_ HAPAX_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace hapax::serve
