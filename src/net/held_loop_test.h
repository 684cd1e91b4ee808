// Loops without a thread.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "net/link.h"

namespace hapax::net {

// Whatever it is given happens at once.
class HeldLoop final : public Loop {
 public:
  void post(std::function<void()> act) override { act(); }
  void at_end_of_turn(std::function<void()> act) override { act(); }
  void at(std::chrono::steady_clock::time_point, std::function<void()>) override {}
  [[nodiscard]] std::size_t number() const override { return 0; }
  [[nodiscard]] bool may_wait() const override { return true; }
};

// Turns end when the test says so. What another thread posts waits for it, too.
class TurnByTurn final : public Loop {
 public:
  bool waits = true;

  void post(std::function<void()> act) override {
    if (std::this_thread::get_id() == own_) return act();
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(act));
    there_.notify_one();
  }
  void at_end_of_turn(std::function<void()> act) override { at_end_.push_back(std::move(act)); }
  void at(std::chrono::steady_clock::time_point, std::function<void()>) override {}
  [[nodiscard]] std::size_t number() const override { return 0; }
  [[nodiscard]] bool may_wait() const override { return waits; }

  void end_turn() {
    for (const auto& act : std::exchange(at_end_, {})) act();
  }
  // Waits until another thread has posted something, and runs it.
  void run_posted() {
    std::unique_lock lock(mutex_);
    there_.wait(lock, [this] { return !posted_.empty(); });
    const std::function<void()> act = std::move(posted_.front());
    posted_.pop_front();
    lock.unlock();
    act();
  }

 private:
  const std::thread::id own_ = std::this_thread::get_id();
  std::vector<std::function<void()>> at_end_;
  std::mutex mutex_;
  std::condition_variable there_;
  std::deque<std::function<void()>> posted_;  // guarded by mutex_
};

}  // namespace hapax::net
