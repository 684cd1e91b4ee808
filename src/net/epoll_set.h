// Tells connections when their sockets are ready. An epoll set of its own, level-triggered, inside
// Asio's: a request then costs one recv and one send, where Asio's edge-triggered reads cost a
// second recv that says there is nothing more (docs/decisions/0017).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <sys/epoll.h>

namespace hapax::net {

// Whom the set tells that a socket is ready.
class SocketOwner {
 public:
  SocketOwner() = default;
  SocketOwner(const SocketOwner&) = delete;
  SocketOwner& operator=(const SocketOwner&) = delete;

  // `events` as epoll gives them. Comes again as long as it is true and watched for. Answers how
  // many bytes it read.
  virtual std::size_t ready(std::uint32_t events) = 0;

 protected:
  ~SocketOwner() = default;
};

// Used on the loop's thread only.
class EpollSet {
 public:
  explicit EpollSet(boost::asio::io_context& context);

  void start() { wait(); }
  void stop();
  // False when the kernel refuses: too many watches for this user.
  [[nodiscard]] bool add(int socket, std::uint32_t events, SocketOwner& owner);
  void change(int socket, std::uint32_t events, SocketOwner& owner);
  // Before the socket is closed. It is told no more; `keep` lives until the present turn is over.
  void remove(int socket, const SocketOwner& owner, std::shared_ptr<void> keep);

 private:
  void wait();
  void tell_ready();

  boost::asio::posix::stream_descriptor set_;
  // Those that were found ready, and of them the ones that are still to be told. What a turn leaves
  // comes first in the next: the set itself would begin with the same ones each time.
  std::array<epoll_event, 256> events_;
  std::size_t next_ = 0;
  std::size_t count_ = 0;
  bool telling_ = false;
  std::vector<std::shared_ptr<void>> leaving_;
};

}  // namespace hapax::net
