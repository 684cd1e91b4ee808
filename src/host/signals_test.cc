#include "host/signals.h"

#include <cerrno>
#include <chrono>
#include <thread>

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hapax::host {
namespace {

// In a process of its own: masks and handlers are the whole process'.
template <class Act>
int exit_code_of(const Act& act) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(act());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1'000 + WTERMSIG(status);
}

TEST(Signals, AreTakenByTheThreadThatWaits) {
  EXPECT_EQ(exit_code_of([] {
              const Signals signals{SIGTERM, SIGUSR1};
              std::thread other([] { raise_in_process(SIGUSR1); });
              const int got = signals.wait();
              other.join();
              return got;
            }),
            SIGUSR1);
}

TEST(Signals, NoneWithinTheSpanIsZero) {
  EXPECT_EQ(exit_code_of([] { return Signals{SIGTERM}.wait_for(std::chrono::milliseconds{1}); }),
            0);
}

TEST(Signals, LetThroughEndTheProcess) {
  EXPECT_EQ(exit_code_of([] {
              const Signals blocked{SIGTERM};
              Signals::let_through({SIGTERM});
              raise_in_process(SIGTERM);
              return 0;
            }),
            1'000 + SIGTERM);
}

TEST(Signals, AWriteThatNobodyReadsIsAnError) {
  EXPECT_EQ(exit_code_of([] {
              fail_writes_instead_of(SIGPIPE);
              int ends[2] = {};
              if (::pipe(ends) != 0) return 1;
              ::close(ends[0]);
              return ::write(ends[1], "x", 1) < 0 && errno == EPIPE ? 0 : 2;
            }),
            0);
}

TEST(Signals, InterruptsABlockingRead) {
  EXPECT_EQ(exit_code_of([] {
              interrupt_on({SIGINT});
              int ends[2] = {};
              if (::pipe(ends) != 0) return 1;
              // Raised again and again: the first may come before the read begins.
              const pid_t parent = ::getpid();
              if (::fork() == 0) {
                while (::getppid() == parent) {
                  ::kill(parent, SIGINT);
                  ::sched_yield();
                }
                ::_exit(0);
              }
              char byte = 0;
              const bool ended = ::read(ends[0], &byte, 1) < 0 && errno == EINTR;
              return ended && interrupted_by() == SIGINT ? 0 : 2;
            }),
            0);
}

}  // namespace
}  // namespace hapax::host
