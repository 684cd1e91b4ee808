#include "net/server.h"

#include <array>
#include <atomic>
#include <future>
#include <latch>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace hapax::net {
namespace {

using std::chrono::milliseconds;

// Sends back what it gets; "hold" is answered when the server stops, "never" not at all. "rest" is
// answered, and then nothing is read for a while; after "deaf" nothing is read for good. "much" and
// "bye" are answered with more than a socket holds, and "bye" is the last.
class Echo final : public Session {
 public:
  explicit Echo(Link& link, milliseconds patience) : link_(link) {
    if (patience.count() != 0) link.set_deadline(std::chrono::steady_clock::now() + patience);
  }

  std::size_t take(std::string_view bytes) override {
    holds_ = bytes == "hold";
    never_ = bytes == "never";
    if (bytes == "rest" || bytes == "deaf") link_.pause();
    if (bytes == "rest") {
      const auto soon = std::chrono::steady_clock::now() + milliseconds{50};
      link_.loop().at(soon, [this] { link_.resume(); });
    }
    if (bytes == "bye" || bytes == "much") {
      link_.send(std::string(kMuch, 'b'));
      if (bytes == "bye") link_.finish();
    } else if (holds_ || never_) {
      taken.fetch_add(1);
      taken.notify_all();
    } else {
      link_.send(bytes);
    }
    return bytes.size();
  }
  void half_closed() override { link_.finish(); }
  void late() override {
    link_.send("late");
    link_.finish();
  }
  void drain() override {
    if (never_) return;
    if (holds_) link_.send("held");
    link_.finish();
  }
  void lost() override {
    gone.fetch_add(1);
    gone.notify_all();
  }

  static constexpr std::size_t kMuch = std::size_t{32} << 20;
  static inline std::atomic<int> taken = 0;
  static inline std::atomic<int> gone = 0;

 private:
  Link& link_;
  bool holds_ = false;
  bool never_ = false;
};

class Client {
 public:
  explicit Client(const std::string& address) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port =
        htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.find(':') + 1))));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  }
  ~Client() { ::close(socket_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void send(std::string_view text) const {
    EXPECT_EQ(::send(socket_, text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  void end() const { ::shutdown(socket_, SHUT_WR); }
  // Closing then resets the connection.
  void will_reset() const {
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    EXPECT_EQ(::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
  }
  // Sends until nothing more is taken for a while, and says how much that was.
  [[nodiscard]] std::size_t send_until_stuck(std::size_t most) const {
    const std::string piece(std::size_t{64} << 10, 'x');
    std::size_t sent = 0;
    while (sent < most && ready(POLLOUT, milliseconds{300})) {
      const ssize_t count =
          ::send(socket_, piece.data(), piece.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count > 0) sent += static_cast<std::size_t>(count);
    }
    return sent;
  }
  // Up to so many bytes, or to the end of the connection.
  [[nodiscard]] std::string read(std::size_t most = ~std::size_t{0}) const {
    std::string text;
    std::array<char, 65'536> piece{};
    while (text.size() < most && ready(POLLIN, milliseconds{20'000})) {
      const ssize_t count = ::recv(socket_, piece.data(), piece.size(), 0);
      if (count <= 0) break;
      text.append(piece.data(), static_cast<std::size_t>(count));
    }
    return text;
  }

 private:
  [[nodiscard]] bool ready(short what, milliseconds span) const {
    pollfd asked{socket_, what, 0};
    return ::poll(&asked, 1, static_cast<int>(span.count())) == 1;
  }
  int socket_;
};

class ServerTest : public testing::Test {
 protected:
  std::string start(const ServerLimits& limits = {}, milliseconds patience = milliseconds{0}) {
    Endpoint endpoint;
    endpoint.address = "127.0.0.1:0";
    endpoint.make_session = [patience](Link& link) -> std::shared_ptr<Session> {
      return std::make_shared<Echo>(link, patience);
    };
    endpoint.make_brief_session = make_brief_;
    auto opened = Server::open({endpoint}, 1, limits);
    EXPECT_TRUE(opened);
    server_ = *std::move(opened);
    server_->start();
    return server_->addresses().front();
  }

  MakeSession make_brief_;
  std::unique_ptr<Server> server_;
};

// A client that takes no answers is not read from any more: it costs a bounded amount of memory.
TEST_F(ServerTest, ASlowClientIsNotReadFrom) {
  constexpr std::size_t kMost = std::size_t{256} << 20;
  const std::string address = start({.unsent_max = 65'536});
  const Client slow(address);
  const std::size_t sent = slow.send_until_stuck(kMost);
  EXPECT_LT(sent, kMost);
  const Client other(address);
  other.send("hello");
  EXPECT_EQ(other.read(5), "hello");
  slow.end();
  EXPECT_EQ(slow.read().size(), sent);
}

TEST_F(ServerTest, ASlowClientReadsAllInItsOrder) {
  const Client slow(start({.unsent_max = std::size_t{64} << 20}));
  std::string sent;
  for (int i = 0; i < 200; ++i) {
    sent.append(std::size_t{64} << 10, static_cast<char>('a' + i % 26));
    slow.send(std::string_view(sent).substr(sent.size() - (std::size_t{64} << 10)));
  }
  EXPECT_TRUE(slow.read(sent.size()) == sent);
}

// The same while its last answer is on the way.
TEST_F(ServerTest, AClientThatDoesNotTakeItsLastAnswerIsNotReadFrom) {
  constexpr std::size_t kMost = std::size_t{256} << 20;
  const Client client(start({.unsent_max = std::size_t{64} << 20}));
  client.send("bye");
  EXPECT_EQ(client.read(1).substr(0, 1), "b");
  EXPECT_LT(client.send_until_stuck(kMost), kMost);
}

TEST_F(ServerTest, AClientThatDoesNotTakeItsLastAnswerIsCutOff) {
  const int before = Echo::gone;
  const Client client(start({.unsent_max = std::size_t{64} << 20, .stuck_max = milliseconds{50}}));
  client.send("bye");
  Echo::gone.wait(before);
}

TEST_F(ServerTest, AClientThatTakesNoAnswersIsCutOff) {
  const int before = Echo::gone;
  const std::string address = start({.stuck_max = milliseconds{50}});
  const Client idle(address);
  idle.send("hello");
  EXPECT_EQ(idle.read(5), "hello");
  const Client stuck(address);
  stuck.send("much");
  Echo::gone.wait(before);
  idle.send("still there");
  EXPECT_EQ(idle.read(11), "still there");
}

TEST_F(ServerTest, WhatComesDuringAPauseIsReadAfterIt) {
  const Client client(start());
  client.send("rest");
  EXPECT_EQ(client.read(4), "rest");
  client.send("still there");
  EXPECT_EQ(client.read(11), "still there");
}

TEST_F(ServerTest, AResetIsNoticedWhileNothingIsRead) {
  const std::string address = start();
  const int before = Echo::gone;
  {
    const Client client(address);
    client.send("deaf");
    EXPECT_EQ(client.read(4), "deaf");
    client.send("unread");
    client.will_reset();
  }
  Echo::gone.wait(before);
}

// One turn tells of all of them; the end of one must not disturb the others.
TEST_F(ServerTest, ManyConnectionsComeAndGoAtOnce) {
  const std::string address = start();
  const int before = Echo::gone;
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 300; ++i) clients.push_back(std::make_unique<Client>(address));
  for (const auto& client : clients) client->send("x");
  for (const auto& client : clients) EXPECT_EQ(client->read(1), "x");
  for (std::size_t i = 0; i < clients.size(); i += 2) clients[i]->will_reset();
  for (std::size_t i = 1; i < clients.size(); i += 2) clients[i]->send("y");
  for (std::size_t i = 0; i < clients.size(); i += 2) clients[i].reset();
  for (std::size_t i = 1; i < clients.size(); i += 2) EXPECT_EQ(clients[i]->read(1), "y");
  for (int gone = Echo::gone; gone < before + 150; gone = Echo::gone) Echo::gone.wait(gone);
}

TEST_F(ServerTest, AClientThatIsLateIsToldAndCutOff) {
  const Client client(start({}, milliseconds{1}));
  EXPECT_EQ(client.read(), "late");
}

TEST_F(ServerTest, ConnectionsBeyondTheLimitAreClosed) {
  const std::string address = start({.connections_max = 1});
  const Client first(address);
  first.send("a");
  EXPECT_EQ(first.read(1), "a");
  const Client second(address);
  EXPECT_EQ(second.read(), "");
  EXPECT_EQ(server_->statistics().refused, 1U);
  first.send("b");
  EXPECT_EQ(first.read(1), "b");
}

// Says what it has to say, and ends.
class Brief final : public Session {
 public:
  explicit Brief(Link& link) {
    link.send("too many");
    link.finish();
  }
  std::size_t take(std::string_view bytes) override { return bytes.size(); }
  void half_closed() override {}
  void late() override {}
  void drain() override {}
  void lost() override {}
};

TEST_F(ServerTest, ConnectionsBeyondTheLimitAreToldSo) {
  make_brief_ = [](Link& link) -> std::shared_ptr<Session> {
    return std::make_shared<Brief>(link);
  };
  const std::string address = start({.connections_max = 1, .brief_max = 1});
  auto first = std::make_unique<Client>(address);
  first->send("a");
  EXPECT_EQ(first->read(1), "a");
  const Client second(address);
  EXPECT_EQ(second.read(), "too many");
  const Client third(address);  // The second has not closed its side yet.
  EXPECT_EQ(third.read(), "");
  EXPECT_EQ(server_->statistics().refused, 2U);
  first.reset();
  while (server_->statistics().open > 1) std::this_thread::yield();
  const Client fourth(address);
  fourth.send("d");
  EXPECT_NE(fourth.read(1), "");
}

// Holds its loop up until it is let go.
class Waits final : public Session {
 public:
  explicit Waits(Link& link, std::latch& begun, std::latch& let_go)
      : link_(link), begun_(begun), let_go_(let_go) {}
  std::size_t take(std::string_view bytes) override {
    begun_.count_down();
    let_go_.wait();
    link_.send("at last");
    return bytes.size();
  }
  void half_closed() override { link_.finish(); }
  void late() override {}
  void drain() override { link_.finish(); }
  void lost() override {}

 private:
  Link& link_;
  std::latch& begun_;
  std::latch& let_go_;
};

// N2
TEST_F(ServerTest, WhoComesToAnotherEndpointDoesNotWaitForADisk) {
  std::latch begun{1};
  std::latch let_go{1};
  Endpoint waits{.address = "127.0.0.1:0",
                 .make_session = [&](Link& link) -> std::shared_ptr<Session> {
                   return std::make_shared<Waits>(link, begun, let_go);
                 }};
  waits.may_wait = true;
  const Endpoint prompt{.address = "127.0.0.1:0",
                        .make_session = [](Link& link) -> std::shared_ptr<Session> {
                          return std::make_shared<Echo>(link, milliseconds{0});
                        }};
  server_ = *Server::open({waits, prompt}, 1, {});
  server_->start();
  const std::vector<std::string> addresses = server_->addresses();
  const Client early(addresses[1]);
  const Client waiting(addresses[0]);
  waiting.send("x");
  begun.wait();
  early.send("hello");
  EXPECT_EQ(early.read(5), "hello");
  const Client late(addresses[1]);
  late.send("hello");
  EXPECT_EQ(late.read(5), "hello");
  let_go.count_down();
  EXPECT_EQ(waiting.read(7), "at last");
  server_->stop(milliseconds{60'000});
}

TEST_F(ServerTest, StoppingEndsWhatWasBegunAndNothingElse) {
  const std::string address = start();
  const int before = Echo::taken;
  const Client begun(address);
  begun.send("hold");
  Echo::taken.wait(before);
  const auto started = std::chrono::steady_clock::now();
  server_->stop(milliseconds{60'000});
  EXPECT_EQ(begun.read(), "held");
  EXPECT_LT(std::chrono::steady_clock::now() - started, milliseconds{30'000});
}

TEST_F(ServerTest, StoppingCutsOffWhatDoesNotEnd) {
  const std::string address = start();
  const int before = Echo::taken;
  const Client begun(address);
  begun.send("never");
  Echo::taken.wait(before);
  server_->stop(milliseconds{50});
  EXPECT_EQ(begun.read(), "");
}

TEST_F(ServerTest, FilesThatAreNoCertificateAreRefusedByName) {
  Endpoint endpoint;
  endpoint.address = "127.0.0.1:0";
  endpoint.tls = TlsFiles{"/no/such/cert.pem", "/no/such/key.pem"};
  const auto opened = Server::open({endpoint}, 1, {});
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().text().find("cert.pem"), std::string::npos);
}

}  // namespace
}  // namespace hapax::net
