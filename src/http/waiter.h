// Waits for records of a stream without holding a thread: woken by the bell, by the end of the time
// and by the client's leaving, and every second in between, because leases and delays end without a
// ring.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "front/desk.h"
#include "http/router.h"

namespace hapax::http {

// Used on the loop of its call only.
class Waiter : public std::enable_shared_from_this<Waiter> {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `stream` is the name as the store knows it.
  Waiter(front::Desk& desk, SharedCall call, std::string stream, Time until)
      : desk_(desk), call_(std::move(call)), stream_(std::move(stream)), until_(until) {}

  // From here on a ring is remembered. To be called before each look, so that what is appended
  // between the look and wait() is not slept through.
  void listen();
  // Calls `again` once, later. After quit() never.
  void wait(std::function<void()> again);
  void quit();

  [[nodiscard]] bool over() const { return std::chrono::steady_clock::now() >= until_; }

 private:
  void fire();

  front::Desk& desk_;
  const SharedCall call_;
  const std::string stream_;
  const Time until_;
  std::uint64_t number_ = 0;  // at the bell; 0: not there
  bool rung_ = false;
  std::uint64_t waits_ = 0;
  std::function<void()> again_;
};

// What follows is another stream's: its sequences begin anew.
[[nodiscard]] Error made_again();

// As long as `wait_ms` of the query says; 0 without it.
[[nodiscard]] Result<Waiter::Time> wait_until(const SharedCall& call);

}  // namespace hapax::http
