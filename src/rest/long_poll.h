// Waits for a stream or a consumer without holding a thread and without looking now and then: woken
// by the facts of the store (Store::watch), at a time that is given, by the end of the waiting, by
// the client's leaving, and by the end of its credential.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "access/entry.h"
#include "access/tenant_store.h"
#include "rest/router.h"

namespace hapax::rest {

// Used on the loop of its call only.
class LongPoll : public std::enable_shared_from_this<LongPoll> {
 public:
  using Steady = std::chrono::steady_clock::time_point;

  struct For {
    std::string stream;
    std::string consumer{};  // empty: only for its records
  };
  LongPoll(access::Entry& entry, SharedCall call, For what, Steady until)
      : call_(std::move(call)),
        store_(entry.store(), call_->caller().tenant),
        for_(std::move(what)),
        until_(until) {}

  // From here on a change is remembered. To be called before each look, so that what changes
  // between the look and wait() is not slept through.
  void listen();
  // Calls `again` once, later: at `due` if nothing happens before. After quit() never.
  void wait(std::function<void()> again, Steady due = Steady::max());
  void quit();

  [[nodiscard]] bool over() const { return std::chrono::steady_clock::now() >= until_; }

 private:
  void arm();
  void fire();

  const SharedCall call_;
  access::TenantStore store_;
  const For for_;
  const Steady until_;
  std::uint64_t number_ = 0;  // at the store; 0: not there
  bool changed_ = false;
  std::uint64_t waits_ = 0;
  Steady due_{};
  std::function<void()> again_;
};

// What follows is another stream's: its sequences begin again at 1.
[[nodiscard]] Error made_again();

// As long as `wait_ms` of the query says; 0 without it.
[[nodiscard]] Result<LongPoll::Steady> wait_until(const SharedCall& call);
[[nodiscard]] QueryField wait_field();

}  // namespace hapax::rest
