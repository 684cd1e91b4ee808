// Programs that a benchmark starts and stops: servers on free loopback ports in folders of their
// own, and load generators whose output is read.
#pragma once

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "folder.h"

namespace hapax::bench {

inline sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

inline std::uint16_t free_port() {
  const int one = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  if (::bind(one, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::getsockname(one, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    fail("no free port");
  }
  ::close(one);
  return ntohs(address.sin_port);
}

// A connection to a loopback port; -1 if nobody listens.
inline int connect_to(std::uint16_t port) {
  const int one = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(port);
  if (::connect(one, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    ::close(one);
    return -1;
  }
  const int on = 1;
  ::setsockopt(one, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return one;
}

// A server; stopped at the end of its life.
class Running {
 public:
  Running(const std::vector<std::string>& command, std::uint16_t port) : port_(port) {
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    if (::posix_spawnp(&process_, arguments[0], &actions, nullptr, arguments.data(), environ) !=
        0) {
      fail("cannot start " + command[0]);
    }
    posix_spawn_file_actions_destroy(&actions);
    await(command[0]);
  }
  ~Running() {
    ::kill(process_, SIGTERM);
    ::waitpid(process_, nullptr, 0);
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] std::uint64_t resident_bytes() const {
    std::ifstream file("/proc/" + std::to_string(process_) + "/statm");
    std::uint64_t all = 0;
    std::uint64_t resident = 0;
    file >> all >> resident;
    return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  }

 private:
  void await(const std::string& name) const {
    for (int i = 0; i < 1'000; ++i) {
      if (const int one = connect_to(port_); one >= 0) {
        ::close(one);
        return;
      }
      if (::waitpid(process_, nullptr, WNOHANG) != 0) break;
      std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }
    fail(name + " does not answer on port " + std::to_string(port_));
  }

  pid_t process_ = 0;
  std::uint16_t port_;
};

// What a program printed; its errors are left out.
inline std::string output_of(const std::string& command) {
  std::FILE* pipe = ::popen((command + " 2>/dev/null").c_str(), "r");
  if (pipe == nullptr) fail("cannot run " + command);
  std::string text;
  std::array<char, 4096> buffer{};
  std::size_t got = 0;
  while ((got = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0) {
    text.append(buffer.data(), got);
  }
  ::pclose(pipe);
  return text;
}

inline bool installed(const std::string& program) {
  return !output_of("command -v " + program).empty();
}

}  // namespace hapax::bench
