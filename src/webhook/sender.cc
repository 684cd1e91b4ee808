#include "webhook/sender.h"

#include <algorithm>
#include <csignal>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/mutex.h"
#include "webhook/send_loop.h"
#include "webhook/socket_watch.h"

namespace hapax::webhook {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

class Sender::Thread {
 public:
  Thread(SenderSettings settings, SocketWatch watch)
      : settings_(std::move(settings)), watch_(std::move(watch)), thread_([this] { run(); }) {}

  bool start(SendRequest request, OnReply done) {
    WaitingRequest waiting{std::move(request), std::move(done), steady_clock::now()};
    const base::MutexLock lock(mutex_);
    if (deadline_) return false;
    started_.push_back(std::move(waiting));
    if (std::exchange(asleep_, false)) watch_.wake();
    return true;
  }

  void stop(milliseconds patience) {
    HAPAX_ASSERT(std::this_thread::get_id() != thread_.get_id(), "stop() is called from outside");
    {
      const base::MutexLock lock(mutex_);
      if (!deadline_) deadline_ = steady_clock::now() + patience;
      watch_.wake();
    }
    const base::MutexLock lock(joining_);
    if (thread_.joinable()) thread_.join();
  }

 private:
  void run();
  // What was started since, and whether the thread is to stop.
  [[nodiscard]] std::optional<steady_clock::time_point> take(std::vector<WaitingRequest>& started);
  void sleep(SendLoop& loop, std::optional<steady_clock::time_point> deadline);
  void tell(SendLoop& loop) const;

  const SenderSettings settings_;
  SocketWatch watch_;
  base::Mutex mutex_;
  std::vector<WaitingRequest> started_ HAPAX_GUARDED_BY(mutex_);
  bool asleep_ HAPAX_GUARDED_BY(mutex_) = false;
  std::optional<steady_clock::time_point> deadline_ HAPAX_GUARDED_BY(mutex_);
  base::Mutex joining_;
  std::thread thread_;  // last: it uses the others
};

void Sender::Thread::run() {
  // OpenSSL writes to sockets that may be closed. libcurl would guard each write by two calls.
  sigset_t pipes;
  sigemptyset(&pipes);
  sigaddset(&pipes, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipes, nullptr);

  SendLoop loop(watch_, settings_.guard, settings_.limits, settings_.connections_kept);
  std::vector<WaitingRequest> started;
  while (true) {
    const auto deadline = take(started);
    for (WaitingRequest& waiting : started) loop.take(std::move(waiting));
    if (deadline) loop.begin_no_more();
    loop.drive();
    if (deadline && *deadline <= steady_clock::now()) loop.give_up();
    tell(loop);
    if (deadline && loop.idle()) return;
    sleep(loop, deadline);
  }
}

std::optional<steady_clock::time_point> Sender::Thread::take(std::vector<WaitingRequest>& started) {
  started.clear();
  const base::MutexLock lock(mutex_);
  asleep_ = false;
  started.swap(started_);
  return deadline_;
}

void Sender::Thread::sleep(SendLoop& loop, std::optional<steady_clock::time_point> deadline) {
  const auto now = steady_clock::now();
  milliseconds pause = loop.pause(now);
  if (deadline) {
    const auto left = std::max(milliseconds(0), std::chrono::ceil<milliseconds>(*deadline - now));
    if (pause < milliseconds(0) || pause > left) pause = left;
  }
  {
    const base::MutexLock lock(mutex_);
    asleep_ = started_.empty() && deadline_ == deadline;
    if (!asleep_) pause = milliseconds(0);
  }
  loop.ready(watch_.wait(pause));
}

void Sender::Thread::tell(SendLoop& loop) const {
  if (loop.tell() > 0 && settings_.after_turn) settings_.after_turn();
}

Result<std::unique_ptr<Sender>> Sender::open(SenderSettings settings) {
  HAPAX_TRY(SocketWatch watch, SocketWatch::open());
  return std::unique_ptr<Sender>(
      new Sender(std::make_unique<Thread>(std::move(settings), std::move(watch))));
}

Sender::Sender(std::unique_ptr<Thread> thread) : thread_(std::move(thread)) {}

Sender::~Sender() { stop(milliseconds(0)); }

bool Sender::start(SendRequest request, OnReply done) {
  return thread_->start(std::move(request), std::move(done));
}

void Sender::stop(milliseconds patience) { thread_->stop(patience); }

}  // namespace hapax::webhook
