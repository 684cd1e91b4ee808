// Tells connections when their sockets are ready. Its own epoll set, level-triggered, inside of
// Asio's: a request then costs one recv and one send, where Asio's edge-triggered reads cost a
// second recv that says there is nothing more (docs/decisions/0017).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

namespace hapax::net {

class Watched {
 public:
  Watched() = default;
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

  // `events` as epoll gives them. Comes again as long as it is true and watched for. Answers how
  // many bytes it read.
  virtual std::size_t ready(std::uint32_t events) = 0;

 protected:
  ~Watched() = default;
};

// Used on the loop's thread only.
class Watch {
 public:
  explicit Watch(boost::asio::io_context& context);

  void start() { wait(); }
  void stop();
  // False when the kernel refuses: too many watches for this user.
  [[nodiscard]] bool add(int socket, std::uint32_t events, Watched& watched);
  void change(int socket, std::uint32_t events, Watched& watched);
  // Before the socket is closed. `keep` lives until nobody can be told any more.
  void remove(int socket, std::shared_ptr<void> keep);

 private:
  void wait();
  void tell_ready();

  boost::asio::posix::stream_descriptor set_;
  bool telling_ = false;
  std::vector<std::shared_ptr<void>> leaving_;
};

}  // namespace hapax::net
