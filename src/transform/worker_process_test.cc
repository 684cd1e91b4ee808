#include "transform/worker_process.h"

#include <csignal>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/format.h"
#include "transform/fake_worker_test.h"
#include "transform/frames.h"

namespace hapax::transform {
namespace {

using testing::HasSubstr;

void wait_for(int descriptor) {
  pollfd polled{.fd = descriptor, .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&polled, 1, 60'000), 1);
}

// All that a worker says until its end, as text.
std::string said(const WorkerProcess& worker) {
  std::string all;
  while (true) {
    wait_for(worker.socket());
    char bytes[4'096];
    const ssize_t got = ::recv(worker.socket(), bytes, sizeof bytes, 0);
    if (got <= 0) return all;
    all.append(bytes, static_cast<std::size_t>(got));
  }
}

WorkerProcess started(const std::string& program) {
  TransformSettings settings;
  settings.worker = program;
  return WorkerProcess::start(settings).value();
}

TEST(WorkerProcess, HasNoEnvironmentButZoneAndLocale) {
  ::setenv("HAPAX_SECRET", "s3cret", 1);
  const FakeWorker fake("/usr/bin/tr '\\000' '\\n' < /proc/self/environ");
  const std::string environment = said(started(fake.path()));
  EXPECT_THAT(environment, HasSubstr("TZ=UTC\n"));
  EXPECT_THAT(environment, HasSubstr("LC_ALL=C\n"));
  EXPECT_THAT(environment, testing::Not(HasSubstr("HAPAX_SECRET")));
}

TEST(WorkerProcess, InheritsNoDescriptor) {
  constexpr int kOpen = 77;  // exec would not close it
  ASSERT_EQ(::dup2(STDIN_FILENO, kOpen), kOpen);
  const FakeWorker fake("cd /proc/self/fd && echo : * :");
  const std::string open = said(started(fake.path()));
  EXPECT_THAT(open, HasSubstr(": 0 1 "));
  EXPECT_THAT(open, testing::Not(HasSubstr(" 77 ")));
  ::close(kOpen);
}

TEST(WorkerProcess, IsToldItsLimits) {
  const FakeWorker fake("echo \"$@\"");
  EXPECT_EQ(said(started(fake.path())),
            base::format("{} {} {}\n", TransformSettings{}.memory_max,
                         TransformSettings{}.output_max, TransformSettings{}.outputs_max));
}

TEST(WorkerProcess, SaysHowItEnded) {
  const FakeWorker exits("exit 70");
  WorkerProcess exited = started(exits.path());
  EXPECT_EQ(said(exited), "");
  EXPECT_EQ(exited.end().exit_code, 70);
  const FakeWorker dies("kill -SEGV $$");
  WorkerProcess died = started(dies.path());
  EXPECT_EQ(said(died), "");
  EXPECT_EQ(died.end().signal, SIGSEGV);
  const FakeWorker hangs("cat");
  EXPECT_EQ(started(hangs.path()).end().signal, SIGKILL);
}

// X3: nothing was sent to it, and it is locked in when it says its first word.
TEST(WorkerProcess, IsLockedInBeforeItsFirstRequest) {
  const WorkerProcess worker = WorkerProcess::start({}).value();
  wait_for(worker.socket());
  std::ifstream file(base::format("/proc/{}/status", worker.pid()));
  const std::string status{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(status, HasSubstr("\nSeccomp:\t2\n"));
  EXPECT_THAT(status, HasSubstr("\nNoNewPrivs:\t1\n"));
  std::ifstream limits_file(base::format("/proc/{}/limits", worker.pid()));
  const std::string limits{std::istreambuf_iterator<char>(limits_file), {}};
  EXPECT_THAT(limits, testing::ContainsRegex("Max core file size +0 +0 "));
  EXPECT_THAT(limits, testing::ContainsRegex("Max open files +0 +0 "));
}

// A worker in the middle of a record does not notice that its socket ends.
TEST(WorkerProcess, DiesWithItsPool) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t pool = ::fork();
  ASSERT_GE(pool, 0);
  if (pool == 0) {
    const WorkerProcess worker = WorkerProcess::start({}).value();
    std::string requests;
    encode_request(DefineRequest{{1}, {.main = "def f: f; f"}}, requests);
    encode_request(RunRequest{{1}, 0, "1"}, requests);
    wait_for(worker.socket());
    static_cast<void>(::send(worker.socket(), requests.data(), requests.size(), 0));
    const pid_t pid = worker.pid();
    static_cast<void>(::write(ends[1], &pid, sizeof pid));
    ::pause();
    ::_exit(0);
  }
  pid_t worker = -1;
  ASSERT_EQ(::read(ends[0], &worker, sizeof worker), static_cast<ssize_t>(sizeof worker));
  const int watched = static_cast<int>(::syscall(SYS_pidfd_open, worker, 0));
  ASSERT_GE(watched, 0);
  ::kill(pool, SIGKILL);
  wait_for(watched);
  ::waitpid(pool, nullptr, 0);
  for (const int each : {ends[0], ends[1], watched}) ::close(each);
}

}  // namespace
}  // namespace hapax::transform
