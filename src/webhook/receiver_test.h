// Receivers on loopback that behave as a test says, and a way to wait for replies.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/format.h"
#include "base/mutex.h"
#include "webhook/sender.h"

namespace hapax::webhook {

inline constexpr std::chrono::milliseconds kPatient{60'000};  // for what comes
inline constexpr std::chrono::milliseconds kBrief{150};       // for what does not come
inline constexpr std::string_view kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

// A socket that holds a port of loopback.
class BoundSocket {
 public:
  BoundSocket() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(socket_, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
    socklen_t size = sizeof at;
    EXPECT_EQ(::getsockname(socket_, reinterpret_cast<sockaddr*>(&at), &size), 0);
    port_ = ntohs(at.sin_port);
  }
  ~BoundSocket() { ::close(socket_); }
  BoundSocket(const BoundSocket&) = delete;
  BoundSocket& operator=(const BoundSocket&) = delete;

  void listen(int backlog = 128) const { EXPECT_EQ(::listen(socket_, backlog), 0); }
  [[nodiscard]] int get() const { return socket_; }
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] std::string url(std::string_view scheme = "http",
                                std::string_view host = "127.0.0.1") const {
    return base::format("{}://{}:{}/hook", scheme, host, port_);
  }

 private:
  int socket_;
  std::uint16_t port_ = 0;
};

// The receiver's end of one connection.
class Peer {
 public:
  explicit Peer(int socket) : socket_(socket) {}
  ~Peer() { close(); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  // Head and body of one request; none if the sender closed before there was one.
  [[nodiscard]] std::optional<std::string> request() {
    std::size_t head = 0;
    while ((head = buffered_.find("\r\n\r\n")) == std::string::npos) {
      if (!more()) return std::nullopt;
    }
    const std::size_t field = buffered_.find("Content-Length: ");
    const std::size_t body =
        field < head ? std::strtoull(buffered_.c_str() + field + 16, nullptr, 10) : 0;
    while (buffered_.size() < head + 4 + body) {
      if (!more()) return std::nullopt;
    }
    std::string out = buffered_.substr(0, head + 4 + body);
    buffered_.erase(0, out.size());
    return out;
  }
  // False: the sender is gone.
  bool say(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  // Until the sender closes its end.
  void wait_for_end() {
    while (more()) {
    }
  }
  // Until there is something to read, which is left unread.
  void wait_for_bytes() const {
    pollfd one{.fd = socket_, .events = POLLIN, .revents = 0};
    ::poll(&one, 1, static_cast<int>(kPatient.count()));
  }
  void close() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }
  void reset() {
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close();
  }
  [[nodiscard]] int get() const { return socket_; }

 private:
  bool more() {
    std::array<char, 16384> bytes;
    const ssize_t got = ::recv(socket_, bytes.data(), bytes.size(), 0);
    if (got <= 0) return false;
    buffered_.append(bytes.data(), static_cast<std::size_t>(got));
    return true;
  }

  int socket_;
  std::string buffered_;
};

// Accepts connections and does with each what the script says, on a thread of its own. Made before
// the sender that sends to it, so that the sender's connections end first.
class Receiver {
 public:
  using Script = std::function<void(Peer&, Receiver&)>;

  explicit Receiver(Script script) : script_(std::move(script)) {
    bound_.listen();
    accepting_ = std::thread([this] { accept(); });
  }
  ~Receiver() {
    release();
    ::shutdown(bound_.get(), SHUT_RDWR);  // wakes accept()
    accepting_.join();
    for (std::thread& one : serving_) one.join();
  }
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  // Answers every request with these bytes.
  static Script answering(std::string_view answer) {
    return [answer](Peer& peer, Receiver& receiver) {
      while (receiver.next(peer)) peer.say(answer);
    };
  }

  // For scripts: the next request, which is counted and kept.
  std::optional<std::string> next(Peer& peer) {
    auto request = peer.request();
    if (request) {
      const base::MutexLock lock(mutex_);
      requests_.push_back(*request);
      changed_.notify_all();
    }
    return request;
  }
  // For scripts: until the test calls release() or ends.
  void hold() {
    base::MutexLock lock(mutex_);
    lock.wait(changed_, [this]() HAPAX_REQUIRES(mutex_) { return released_; });
  }
  void release() {
    const base::MutexLock lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }

  [[nodiscard]] std::vector<std::string> requests() {
    const base::MutexLock lock(mutex_);
    return requests_;
  }
  [[nodiscard]] std::size_t connections() {
    const base::MutexLock lock(mutex_);
    return connections_;
  }
  [[nodiscard]] bool wait_for_requests(std::size_t count) {
    base::MutexLock lock(mutex_);
    return lock.wait_for(changed_, kPatient, [this, count]() HAPAX_REQUIRES(mutex_) {
      return requests_.size() >= count;
    });
  }
  [[nodiscard]] bool wait_for_connections(std::size_t count) {
    base::MutexLock lock(mutex_);
    return lock.wait_for(changed_, kPatient,
                         [this, count]() HAPAX_REQUIRES(mutex_) { return connections_ >= count; });
  }
  [[nodiscard]] const BoundSocket& at() const { return bound_; }
  [[nodiscard]] std::string url() const { return bound_.url(); }

 private:
  void accept() {
    while (true) {
      const int socket = ::accept4(bound_.get(), nullptr, nullptr, SOCK_CLOEXEC);
      if (socket < 0) return;
      {
        const base::MutexLock lock(mutex_);
        ++connections_;
        changed_.notify_all();
      }
      serving_.emplace_back([this, socket] {
        Peer peer(socket);
        script_(peer, *this);
      });
    }
  }

  Script script_;
  BoundSocket bound_;
  base::Mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> requests_ HAPAX_GUARDED_BY(mutex_);
  std::size_t connections_ HAPAX_GUARDED_BY(mutex_) = 0;
  bool released_ HAPAX_GUARDED_BY(mutex_) = false;
  std::list<std::thread> serving_;
  std::thread accepting_;
};

// Settings whose guard lets tests reach loopback.
inline SenderSettings on_loopback(SendLimits limits = {}) {
  SenderSettings settings;
  const std::vector<std::string> allowed{"127.0.0.1"};
  settings.guard = *Guard::allowing(allowed);
  settings.limits = limits;
  return settings;
}

inline std::unique_ptr<Sender> open_sender(SenderSettings settings = on_loopback()) {
  return *Sender::open(std::move(settings));
}

inline SendRequest post_to(std::string url, std::string body = "{}") {
  SendRequest request;
  request.url = std::move(url);
  request.body = std::move(body);
  request.total_timeout = kPatient;
  request.connect_timeout = kPatient;
  return request;
}

inline std::future<SendReply> start(Sender& sender, SendRequest request) {
  auto promise = std::make_shared<std::promise<SendReply>>();
  auto future = promise->get_future();
  EXPECT_TRUE(sender.start(std::move(request),
                           [promise](SendReply reply) { promise->set_value(std::move(reply)); }));
  return future;
}

inline SendReply send(Sender& sender, SendRequest request) {
  return start(sender, std::move(request)).get();
}

}  // namespace hapax::webhook
