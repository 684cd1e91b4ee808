#include "behind.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace hapax::contract {

Behind::Behind(std::unique_ptr<Store> store)
    : store_(std::move(store)), entry_(std::make_unique<access::Entry>(*store_, 4)) {}

void Behind::start(net::MakeSession make_session) {
  const net::Endpoint endpoint{"127.0.0.1:0", std::move(make_session), std::nullopt};
  server_ = std::move(net::Server::open({endpoint}, 1, {})).value();
  entry_->open(server_->loops());
  server_->start();
}

void Behind::stop() {
  if (server_ != nullptr) server_->stop(std::chrono::seconds{10});
  server_.reset();
}

std::uint16_t Behind::port() const {
  const std::string address = server_->addresses().front();
  return static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
}

Socket::Socket(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int on = 1;
  ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  good_ = ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

Socket::~Socket() { ::close(socket_); }

bool Socket::send(std::string_view bytes) {
  while (good_ && !bytes.empty()) {
    const ssize_t count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    good_ = count > 0;
    if (good_) bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return good_;
}

bool Socket::more() {
  char piece[65'536];
  const ssize_t count = good_ ? ::recv(socket_, piece, sizeof piece, 0) : 0;
  good_ = count > 0;
  if (good_) in_.append(piece, static_cast<std::size_t>(count));
  return good_;
}

std::string Socket::cut(std::size_t size) {
  std::string piece = in_.substr(read_, size);
  read_ += size;
  if (read_ == in_.size()) {
    in_.clear();
    read_ = 0;
  }
  return piece;
}

std::optional<std::string> Socket::take(std::size_t size) {
  while (in_.size() - read_ < size) {
    if (!more()) return std::nullopt;
  }
  return cut(size);
}

std::optional<std::string> Socket::take_until(std::string_view mark) {
  std::size_t end = 0;
  while ((end = in_.find(mark, read_)) == std::string::npos) {
    if (!more()) return std::nullopt;
  }
  return cut(end - read_ + mark.size());
}

std::unique_ptr<Socket> Pool::take(std::uint16_t port) {
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      std::unique_ptr<Socket> last = std::move(free_.back());
      free_.pop_back();
      return last;
    }
  }
  auto made = std::make_unique<Socket>(port);
  if (greet_ != nullptr) greet_(*made);
  return made;
}

void Pool::give_back(std::unique_ptr<Socket> socket) {
  if (!socket->good()) return;
  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(socket));
}

void Pool::close() {
  const std::lock_guard lock(mutex_);
  free_.clear();
}

}  // namespace hapax::contract
