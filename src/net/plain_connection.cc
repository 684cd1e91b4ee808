#include <cerrno>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/carriers.h"
#include "net/epoll_set.h"
#include "net/peer_socket.h"

namespace hapax::net {

namespace {

bool is_for_later(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

class PlainConnection final : public Connection, public SocketOwner {
 public:
  PlainConnection(AsioLoop& loop, int socket, const MakeSession& make_session, std::string peer)
      : Connection(loop, make_session, std::move(peer)), socket_(socket) {}
  ~PlainConnection() override {
    if (socket_ >= 0) ::close(socket_);  // The loop ended before it began.
  }

  void start() override {
    if (!own_loop().epoll_set().add(socket_, watched_for_, *this)) return cut();
    watching_ = true;
    open();
  }

  std::size_t ready(std::uint32_t events) override {
    if (closed()) return 0;
    if ((events & (EPOLLHUP | EPOLLERR)) != 0 && !wants_bytes()) {
      cut();
      return 0;
    }
    if ((events & EPOLLOUT) != 0) {
      watch_for(watched_for_ & ~std::uint32_t{EPOLLOUT});
      out().carrier_is_ready();
      flush();
    }
    if ((events & ~std::uint32_t{EPOLLOUT}) == 0 || closed()) return 0;
    if (wants_bytes()) return receive();
    // Only now: a peer that waits for its answer sends nothing, and asking for nothing costs a
    // call.
    watch_for(watched_for_ & ~std::uint32_t{EPOLLIN});
    return 0;
  }

  [[nodiscard]] bool encrypted() const override { return false; }

 private:
  void ask_for_bytes() override { watch_for(watched_for_ | EPOLLIN); }

  void watch_for(std::uint32_t events) {
    if (events == watched_for_) return;
    watched_for_ = events;
    own_loop().epoll_set().change(socket_, events, *this);
  }

  std::size_t receive() {
    const std::span<char> space = lend_space();
    const ssize_t count = ::recv(socket_, space.data(), space.size(), 0);
    if (count > 0) {
      arrived(static_cast<std::size_t>(count));
      return static_cast<std::size_t>(count);
    }
    const int error = errno;
    nothing_arrived();
    if (count == 0) {
      watch_for(watched_for_ & ~std::uint32_t{EPOLLIN});  // The end would be told for ever.
      ended();
    } else if (!is_for_later(error)) {
      cut();
    }
    return 0;
  }

  void write() override {
    while (unsent() != 0) {
      const std::string_view next = out().front();
      const ssize_t count = ::send(socket_, next.data(), next.size(), MSG_NOSIGNAL);
      if (count < 0 && !is_for_later(errno)) return cut();
      const std::size_t gone = count > 0 ? static_cast<std::size_t>(count) : 0;
      left(gone);
      if (gone != next.size()) {
        out().carrier_begins();
        return watch_for(watched_for_ | EPOLLOUT);
      }
    }
    sent_all();
  }

  void end_sending() override {
    ::shutdown(socket_, SHUT_WR);
    if (peer_ended()) return cut();
    ask_for_bytes();
  }

  void close() override {
    if (watching_) own_loop().epoll_set().remove(socket_, *this, shared_from_this());
    ::close(socket_);
    socket_ = -1;
  }

  int socket_;
  std::uint32_t watched_for_ = EPOLLIN;
  bool watching_ = false;
};

}  // namespace

std::shared_ptr<Connection> make_plain_connection(AsioLoop& loop, tcp::socket socket,
                                                  const MakeSession& make_session) {
  prepare_socket(socket);
  boost::system::error_code ignored;
  std::string peer = name_of_peer(socket);
  const int descriptor = socket.release(ignored);
  return std::make_shared<PlainConnection>(loop, descriptor, make_session, std::move(peer));
}

}  // namespace hapax::net
