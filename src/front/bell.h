// Wakes who waits for records of a stream. A ring means "look again", never "there is one": leases
// and delays end without a ring, so whoever waits looks again after a while all the same.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "net/link.h"

namespace hapax::front {

class Bell {
 public:
  // Calls `wake` once on the loop at the next ring of the stream. The number cancels it.
  std::uint64_t wait(std::string_view stream, net::Loop& loop, std::function<void()> wake);
  void cancel(std::string_view stream, std::uint64_t number);
  // From any thread; costs next to nothing while nobody waits.
  void ring(std::string_view stream);
  [[nodiscard]] bool has_waiters() const { return waiting_.load() != 0; }

 private:
  struct Waiter {
    std::uint64_t number = 0;
    net::Loop* loop = nullptr;
    std::function<void()> wake;
  };

  std::atomic<std::size_t> waiting_ = 0;
  std::mutex mutex_;
  std::unordered_map<std::string, std::vector<Waiter>> waiters_;  // guarded by mutex_
  std::uint64_t next_ = 1;                                        // guarded by mutex_
};

}  // namespace hapax::front
