// The signals of a process. There are two ways to take them, and this is the only place that
// touches them.
#pragma once

#include <chrono>
#include <csignal>
#include <initializer_list>

namespace hapax::host {

// Signals that one thread waits for. REQUIRES: made before any other thread, because threads
// inherit that the signals are blocked. A peer that goes away (SIGPIPE) is an error of the write.
class Signals {
 public:
  explicit Signals(std::initializer_list<int> signals);

  [[nodiscard]] int wait() const;
  // 0: none came in time.
  [[nodiscard]] int wait_for(std::chrono::milliseconds span) const;
  // From here on these do what they do to any process.
  static void let_through(std::initializer_list<int> signals);

 private:
  sigset_t set_{};
};

// Lets wait() return in the thread of this process that waits for the signal.
void raise_in_process(int signal);

// From here on these signals end blocking calls with EINTR; interrupted_by() tells the latest, or
// 0.
void interrupt_on(std::initializer_list<int> signals);
[[nodiscard]] int interrupted_by();

// SIGPIPE, SIGXFSZ: the write that causes one fails instead of ending the process.
void fail_writes_instead_of(int signal);

}  // namespace hapax::host
