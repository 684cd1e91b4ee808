#include "client/sink_thread.h"

#include <utility>

#include "delivery/blocking.h"

namespace hapax::client {

SinkThread::SinkThread(std::unique_ptr<relay::Sink> sink, ports::Clock& clock,
                       std::size_t batch_max)
    : sink_(std::move(sink)), clock_(clock), batch_max_(batch_max), thread_([this] { run(); }) {}

SinkThread::~SinkThread() {
  {
    const base::MutexLock lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void SinkThread::start(std::span<const delivery::Outgoing* const> records,
                       std::int64_t not_after_ms, Done done) {
  {
    const base::MutexLock lock(mutex_);
    jobs_.push_back({{records.begin(), records.end()}, not_after_ms, std::move(done)});
  }
  changed_.notify_one();
}

void SinkThread::run() {
  for (;;) {
    Job job;
    bool ends = false;
    {
      base::MutexLock lock(mutex_);
      lock.wait(changed_, [this]() HAPAX_REQUIRES(mutex_) { return ends_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
      ends = ends_;
    }
    // What has not begun when the sink ends is not sent any more.
    const std::int64_t not_after_ms = ends ? 0 : job.not_after_ms;
    job.done(delivery::deliver_now(*sink_, clock_, job.records, not_after_ms, &withdrawn_));
  }
}

}  // namespace hapax::client
