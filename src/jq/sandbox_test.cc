// Each thing that a locked-in process may not do kills it, at once and by SIGSYS.
#include "jq/sandbox.h"

#include <csignal>
#include <cstdlib>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hapax::jq {
namespace {

constexpr std::size_t kMemory = std::size_t{64} << 20;
constexpr int kSurvived = 3;

// Runs it in a process of its own that has locked itself in; how that ended, as waitpid says it.
int end_of(void (*act)()) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (!lock_in(kMemory)) ::_exit(99);
    act();
    ::_exit(kSurvived);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

void expect_killed(const char* what, void (*act)()) {
  const int status = end_of(act);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
      << what << " ended with status " << status;
}
void expect_survived(const char* what, void (*act)()) {
  const int status = end_of(act);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == kSurvived)
      << what << " ended with status " << status;
}

template <class... Arguments>
void call(long number, Arguments... arguments) {
  static_cast<void>(::syscall(number, arguments...));
}

TEST(Sandbox, OpensNoFile) {
  expect_killed("openat", [] { call(SYS_openat, AT_FDCWD, "/etc/passwd", O_RDONLY); });
  expect_killed("open", [] { call(SYS_open, "/etc/passwd", O_RDONLY); });
  expect_killed("unlink", [] { call(SYS_unlink, "/nowhere"); });
  expect_killed("stat", [] { call(SYS_newfstatat, AT_FDCWD, "/", nullptr, 0); });
}

TEST(Sandbox, HasNoNetwork) {
  expect_killed("socket", [] { call(SYS_socket, AF_INET, SOCK_STREAM, 0); });
  expect_killed("sendmsg", [] { call(SYS_sendmsg, 1, nullptr, 0); });
  expect_killed("recvmsg", [] { call(SYS_recvmsg, 0, nullptr, 0); });
}

TEST(Sandbox, MakesNoProcess) {
  expect_killed("fork", [] { call(SYS_fork); });
  expect_killed("clone", [] { call(SYS_clone, SIGCHLD, nullptr); });
  expect_killed("execve", [] { call(SYS_execve, "/bin/true", nullptr, nullptr); });
  expect_killed("kill", [] { call(SYS_kill, ::getppid(), 0); });
  expect_killed("ptrace", [] { call(SYS_ptrace, PTRACE_TRACEME, 0, 0, 0); });
}

TEST(Sandbox, LiftsNoLimit) {
  expect_killed("setrlimit", [] { call(SYS_setrlimit, RLIMIT_DATA, nullptr); });
  expect_killed("prctl", [] { call(SYS_prctl, PR_SET_DUMPABLE, 1); });
  expect_killed("executable memory", [] {
    call(SYS_mmap, nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  });
  expect_killed("mprotect to executable",
                [] { call(SYS_mprotect, nullptr, 4096, PROT_READ | PROT_EXEC); });
  expect_killed("memory of a file",
                [] { call(SYS_mmap, nullptr, 4096, PROT_READ, MAP_PRIVATE, 0, 0); });
}

TEST(Sandbox, ReadsAndWritesItsTwoDescriptorsOnly) {
  expect_killed("write to 2", [] { call(SYS_write, 2, "x", 1); });
  expect_killed("write to 0", [] { call(SYS_write, 0, "x", 1); });
  expect_killed("read from 1", [] { call(SYS_read, 1, nullptr, 0); });
  expect_survived("read from 0", [] { call(SYS_read, 0, nullptr, 0); });
  expect_survived("write to 1", [] { call(SYS_write, 1, "", 0); });
}

TEST(Sandbox, LeavesMemoryAndTheClock) {
  expect_survived("memory", [] { std::free(std::malloc(std::size_t{10} << 20)); });
  expect_survived("clock", [] {
    timespec now{};
    static_cast<void>(::clock_gettime(CLOCK_MONOTONIC, &now));
  });
}

TEST(Sandbox, LimitsMemory) {
  if (kSanitized) GTEST_SKIP() << "the sanitizers' shadow memory is larger than any limit";
  expect_survived("too much memory", [] {
    void* volatile much = std::malloc(kMemory + 1);
    if (much != nullptr) ::_exit(98);
  });
}

}  // namespace
}  // namespace hapax::jq
