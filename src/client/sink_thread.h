// A sink that blocks, on a thread of its own, as one that does not.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "delivery/sink.h"
#include "ports/clock.h"
#include "relay/sink.h"

namespace hapax::client {

class SinkThread final : public delivery::Sink {
 public:
  SinkThread(std::unique_ptr<relay::Sink> sink, ports::Clock& clock, std::size_t batch_max);
  ~SinkThread() override;  // What has not begun is answered as not sent.

  [[nodiscard]] std::size_t batch_max() const override { return batch_max_; }
  void start(std::span<const delivery::Outgoing* const> records, std::int64_t not_after_ms,
             Done done) override;
  void wind_down() override { withdrawn_ = true; }

 private:
  struct Job {
    std::vector<const delivery::Outgoing*> records;
    std::int64_t not_after_ms = 0;
    Done done;
  };

  void run();

  const std::unique_ptr<relay::Sink> sink_;
  ports::Clock& clock_;
  const std::size_t batch_max_;
  base::Mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_ HAPAX_GUARDED_BY(mutex_);
  bool ends_ HAPAX_GUARDED_BY(mutex_) = false;
  std::atomic<bool> withdrawn_ = false;
  std::thread thread_;
};

}  // namespace hapax::client
