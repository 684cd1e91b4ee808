// The epoll set of a sender, as lazy as it can be: libcurl says with every request that it watches
// a socket and then that it does not. A connection that is used again stays in the set meanwhile,
// so that a request on it costs no call to the kernel for that.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include <hapax/result.h>

namespace hapax::webhook {

class SocketWatch {
 public:
  // What libcurl may want of a socket.
  static constexpr std::uint8_t kRead = 1;
  static constexpr std::uint8_t kWrite = 2;
  static constexpr std::uint8_t kFailed = 4;  // told, never wanted

  struct Ready {
    int socket;
    std::uint8_t events;
  };

  [[nodiscard]] static Result<SocketWatch> open();
  SocketWatch(SocketWatch&& other) noexcept;
  SocketWatch& operator=(SocketWatch&&) = delete;
  ~SocketWatch();

  // Sockets of connections. Others, which libcurl opens and closes by itself, leave the set as soon
  // as nothing is wanted of them.
  void opened(int socket);
  void closing(int socket);
  void want(int socket, std::uint8_t events);  // 0: nothing more

  // Waits for sockets, at most `patience` (negative: without end), or until wake(). What it found
  // is valid until the next call.
  [[nodiscard]] const std::vector<Ready>& wait(std::chrono::milliseconds patience);
  void wake() const;  // from any thread

 private:
  SocketWatch(int set, int wakes) : set_(set), wakes_(wakes) {}

  struct Watched {
    std::uint8_t wanted = 0;
    std::uint8_t held = 0;  // what the kernel was told
    bool ours = false;
  };
  [[nodiscard]] Watched& at(int socket);
  void hold(int socket, Watched& watched, std::uint8_t events) const;

  int set_;
  int wakes_;
  std::vector<Watched> sockets_;  // by number
  std::vector<Ready> ready_;
};

}  // namespace hapax::webhook
