#include "transform/worker_process.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/format.h"

namespace hapax::transform {

namespace {

Error refused(std::string_view what, int number) {
  return {Errc::kUnavailable,
          base::format("transform worker: {}: {}", what, std::strerror(number))};
}

// posix_spawn, not fork: a server's pages are many, and its other threads hold locks.
class Spawning {
 public:
  explicit Spawning(int socket) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_adddup2(&actions_, socket, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, socket, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions_, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1);
    posix_spawnattr_init(&attributes_);
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    // A group of its own: Ctrl-C in the server's terminal is the server's affair.
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~Spawning() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  Spawning(const Spawning&) = delete;
  Spawning& operator=(const Spawning&) = delete;

  // 0 or an error number.
  int spawn(pid_t& pid, std::string program, const TransformSettings& settings) {
    std::string name = "hapax-jq";
    std::string memory = std::to_string(settings.memory_max);
    std::string output = std::to_string(settings.output_max);
    std::string outputs = std::to_string(settings.outputs_max);
    std::string zone = "TZ=UTC";
    std::string locale = "LC_ALL=C";
    std::array<char*, 5> arguments{name.data(), memory.data(), output.data(), outputs.data(),
                                   nullptr};
    std::array<char*, 3> environment{zone.data(), locale.data(), nullptr};
    return ::posix_spawn(&pid, program.c_str(), &actions_, &attributes_, arguments.data(),
                         environment.data());
  }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

}  // namespace

std::string text_of(const WorkerEnd& end) {
  if (end.signal != 0) return base::format("signal {} ({})", end.signal, ::strsignal(end.signal));
  return base::format("exit code {}", end.exit_code);
}

Result<std::string> worker_program(const TransformSettings& settings) {
  if (!settings.worker.empty()) return settings.worker;
  std::array<char, 4'096> path{};
  const ssize_t size = ::readlink("/proc/self/exe", path.data(), path.size());
  if (size <= 0) return refused("/proc/self/exe", errno);
  const std::string_view own(path.data(), static_cast<std::size_t>(size));
  return base::format("{}hapax-jq", own.substr(0, own.rfind('/') + 1));
}

Result<WorkerProcess> WorkerProcess::start(const TransformSettings& settings) {
  HAPAX_TRY(const std::string program, worker_program(settings));
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return refused("socketpair", errno);
  }
  pid_t pid = -1;
  const int failed = Spawning(ends[1]).spawn(pid, program, settings);
  ::close(ends[1]);
  if (failed != 0) {
    ::close(ends[0]);
    return refused(program, failed);
  }
  WorkerProcess started(pid, ends[0]);
  // Our end only: the flag belongs to one end of the pair.
  if (::fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) return refused("fcntl", errno);
  return started;
}

WorkerProcess::WorkerProcess(WorkerProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), socket_(std::exchange(other.socket_, -1)) {}

WorkerProcess& WorkerProcess::operator=(WorkerProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(socket_, other.socket_);
  return *this;
}

WorkerProcess::~WorkerProcess() {
  if (pid_ > 0) static_cast<void>(end());
  if (socket_ >= 0) ::close(socket_);
}

WorkerEnd WorkerProcess::end() {
  const pid_t pid = std::exchange(pid_, -1);
  HAPAX_ASSERT(pid > 0, "a process is ended once: -1 would be every process of the machine");
  // A process that has closed its socket has its exit code already, and keeps it.
  ::kill(pid, SIGKILL);
  int status = 0;
  pid_t waited = -1;
  do {
    waited = ::waitpid(pid, &status, 0);
  } while (waited < 0 && errno == EINTR);
  if (waited != pid) return {};
  if (WIFSIGNALED(status)) return {.signal = WTERMSIG(status), .exit_code = 0};
  return {.signal = 0, .exit_code = WEXITSTATUS(status)};
}

}  // namespace hapax::transform
