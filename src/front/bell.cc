#include "front/bell.h"

#include <algorithm>
#include <utility>

namespace hapax::front {

std::uint64_t Bell::wait(std::string_view stream, net::Loop& loop, std::function<void()> wake) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t number = next_++;
  waiters_[std::string(stream)].push_back({number, &loop, std::move(wake)});
  waiting_.fetch_add(1);
  return number;
}

void Bell::cancel(std::string_view stream, std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto found = waiters_.find(std::string(stream));
  if (found == waiters_.end()) return;
  waiting_.fetch_sub(
      std::erase_if(found->second, [&](const Waiter& waiter) { return waiter.number == number; }));
  if (found->second.empty()) waiters_.erase(found);
}

void Bell::ring(std::string_view stream) {
  if (waiting_.load() == 0) return;
  std::vector<Waiter> woken;
  {
    const std::lock_guard lock(mutex_);
    const auto found = waiters_.find(std::string(stream));
    if (found == waiters_.end()) return;
    woken = std::move(found->second);
    waiters_.erase(found);
    waiting_.fetch_sub(woken.size());
  }
  for (Waiter& waiter : woken) waiter.loop->post(std::move(waiter.wake));
}

}  // namespace hapax::front
