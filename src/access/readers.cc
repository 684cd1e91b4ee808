#include "access/readers.h"

#include <utility>

#include "base/mutex.h"

namespace hapax::access {

namespace {

constexpr std::size_t kQueueMax = 10'000;

}  // namespace

Readers::Readers(std::size_t threads) {
  for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

void Readers::stop() {
  {
    const base::MutexLock lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

bool Readers::run(std::function<void()> work) {
  {
    const base::MutexLock lock(mutex_);
    if (stop_ || queue_.size() >= kQueueMax) return false;
    queue_.push_back(std::move(work));
  }
  wake_.notify_one();
  return true;
}

void Readers::work() {
  base::MutexLock lock(mutex_);
  for (;;) {
    lock.wait(wake_, [this]() HAPAX_REQUIRES(mutex_) { return stop_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const std::function<void()> next = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    next();
    lock.lock();
  }
}

}  // namespace hapax::access
