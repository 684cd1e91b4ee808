// Threads for what may wait for the store or the disk, so that no loop ever does.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "net/link.h"

namespace hapax::access {

class Readers {
 public:
  explicit Readers(std::size_t threads);
  ~Readers() { stop(); }
  Readers(const Readers&) = delete;
  Readers& operator=(const Readers&) = delete;

  // Ends what was taken; nothing more is.
  void stop();

  // Runs `work` on one of the threads. False: too much is waiting, nothing was taken.
  [[nodiscard]] bool run(std::function<void()> work);

  // Runs `read` on one of the threads and `then` with its value on the loop.
  template <class Read, class Then>
  [[nodiscard]] bool ask(net::Loop& loop, Read read, Then then) {
    return run([&loop, read = std::move(read), then = std::move(then)]() mutable {
      auto value = std::make_shared<decltype(read())>(read());
      loop.post([value, then = std::move(then)]() mutable { then(std::move(*value)); });
    });
  }

 private:
  void work();

  base::Mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> queue_ HAPAX_GUARDED_BY(mutex_);
  bool stop_ HAPAX_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace hapax::access
