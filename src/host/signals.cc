#include "host/signals.h"

#include <algorithm>

#include <unistd.h>

namespace hapax::host {

namespace {

volatile std::sig_atomic_t interrupted = 0;

sigset_t set_of(std::initializer_list<int> signals) {
  sigset_t set{};
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  return set;
}

}  // namespace

Signals::Signals(std::initializer_list<int> signals) : set_(set_of(signals)) {
  pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  fail_writes_instead_of(SIGPIPE);
}

int Signals::wait() const {
  int signal = 0;
  sigwait(&set_, &signal);
  return signal;
}

int Signals::wait_for(std::chrono::milliseconds span) const {
  const timespec until{span.count() / 1000, (span.count() % 1000) * 1'000'000};
  return std::max(0, sigtimedwait(&set_, nullptr, &until));
}

void Signals::let_through(std::initializer_list<int> signals) {
  const sigset_t set = set_of(signals);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

void raise_in_process(int signal) { ::kill(::getpid(), signal); }

void interrupt_on(std::initializer_list<int> signals) {
  struct sigaction action = {};
  action.sa_handler = [](int signal) { interrupted = signal; };  // No SA_RESTART: reads return.
  for (const int signal : signals) ::sigaction(signal, &action, nullptr);
}

int interrupted_by() { return interrupted; }

void fail_writes_instead_of(int signal) { std::signal(signal, SIG_IGN); }

}  // namespace hapax::host
