#include "net/dial.h"

#include <array>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace hapax::net {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kShort{50};     // for what does not come
constexpr milliseconds kLong{20'000};  // for what comes

// Listens on a port of its own; nobody is accepted until the test says so.
class ListeningPeer {
 public:
  explicit ListeningPeer(int backlog = 8) : listening_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(listening_, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
    socklen_t size = sizeof at;
    EXPECT_EQ(::getsockname(listening_, reinterpret_cast<sockaddr*>(&at), &size), 0);
    port_ = ntohs(at.sin_port);
    EXPECT_EQ(::listen(listening_, backlog), 0);
  }
  ~ListeningPeer() {
    hang_up();
    ::close(listening_);
  }
  ListeningPeer(const ListeningPeer&) = delete;
  ListeningPeer& operator=(const ListeningPeer&) = delete;

  [[nodiscard]] DialTo way(milliseconds timeout = kLong) const {
    return {.host = "127.0.0.1", .port = std::to_string(port_), .tls = {}, .timeout = timeout};
  }
  std::unique_ptr<Dialed> accept_dialed() {
    auto dialed = dial(way());
    EXPECT_TRUE(dialed);
    accept();
    return *std::move(dialed);
  }
  void accept() {
    peer_ = ::accept(listening_, nullptr, nullptr);
    EXPECT_GE(peer_, 0);
  }
  void say(std::string_view text) const {
    EXPECT_EQ(::send(peer_, text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  [[nodiscard]] std::string hear(std::size_t count) const {
    std::string text(count, '\0');
    EXPECT_EQ(::recv(peer_, text.data(), count, MSG_WAITALL), static_cast<ssize_t>(count));
    return text;
  }
  // Resets the connection if something was not heard.
  void hang_up() {
    if (peer_ >= 0) ::close(peer_);
    peer_ = -1;
  }
  void stop_listening() { ::shutdown(listening_, SHUT_RDWR); }

 private:
  int listening_;
  int peer_ = -1;
  std::uint16_t port_ = 0;
};

std::string received(Dialed& dialed, milliseconds timeout) {
  std::array<char, 100> bytes{};
  const Result<std::size_t> count = dialed.receive(bytes, timeout);
  if (!count) return count.error().text();
  return {bytes.data(), *count};
}

bool says(const Error& error, std::string_view words) {
  return error.text().find(words) != std::string::npos;
}

// Waits until the kernel has what the peer sent.
void wait_until_not_quiet(Dialed& dialed) {
  while (dialed.quiet()) std::this_thread::yield();
}

TEST(Dial, BytesGoBothWays) {
  ListeningPeer peer;
  const auto dialed = peer.accept_dialed();
  ASSERT_TRUE(dialed->send("question", kLong));
  EXPECT_EQ(peer.hear(8), "question");
  peer.say("answer");
  EXPECT_EQ(received(*dialed, kLong), "answer");
}

TEST(Dial, ThePeersEndIsNoError) {
  ListeningPeer peer;
  const auto dialed = peer.accept_dialed();
  peer.say("last");
  peer.hang_up();
  EXPECT_EQ(received(*dialed, kLong), "last");
  EXPECT_EQ(received(*dialed, kLong), "");
}

TEST(Dial, ItIsQuietUntilBytesOrTheEndCome) {
  ListeningPeer peer;
  const auto dialed = peer.accept_dialed();
  EXPECT_TRUE(dialed->quiet());
  peer.say("x");
  wait_until_not_quiet(*dialed);
  EXPECT_EQ(received(*dialed, kLong), "x");
  EXPECT_TRUE(dialed->quiet());
  peer.hang_up();
  wait_until_not_quiet(*dialed);
}

TEST(Dial, APeerThatSaysNothingIsAnErrorInTheEnd) {
  ListeningPeer peer;
  const auto dialed = peer.accept_dialed();
  EXPECT_NE(received(*dialed, kShort).find("the connection was lost"), std::string::npos);
}

TEST(Dial, APeerThatTakesNothingIsAnErrorInTheEnd) {
  ListeningPeer peer;
  const auto dialed = peer.accept_dialed();
  const Status sent = dialed->send(std::string(std::size_t{64} << 20, 'x'), kShort);
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, Errc::kUnavailable);
}

// A server that refuses a body answers before it has read it, and hangs up.
TEST(Dial, WhatCameBeforeASendFailedCanStillBeReceived) {
  ListeningPeer peer;
  const auto dialed = peer.accept_dialed();
  ASSERT_TRUE(dialed->send("unheard", kLong));
  peer.say("refused");
  wait_until_not_quiet(*dialed);
  peer.hang_up();
  Status sent = dialed->send("more", kLong);
  while (sent) sent = dialed->send("more", kLong);
  EXPECT_EQ(received(*dialed, kLong), "refused");
}

TEST(Dial, NobodyListens) {
  ListeningPeer peer;
  peer.stop_listening();
  const auto dialed = dial(peer.way());
  ASSERT_FALSE(dialed);
  EXPECT_EQ(dialed.error().code, Errc::kUnavailable);
  EXPECT_TRUE(says(dialed.error(), "nobody listens on 127.0.0.1:")) << dialed.error().text();
}

// The kernel leaves those unanswered that come while too many wait to be accepted.
TEST(Dial, NobodyAnswers) {
  ListeningPeer peer(0);
  std::vector<std::unique_ptr<Dialed>> waiting;
  auto dialed = dial(peer.way(kShort));
  while (dialed && waiting.size() < 10) {
    waiting.push_back(*std::move(dialed));
    dialed = dial(peer.way(kShort));
  }
  ASSERT_FALSE(dialed);
  EXPECT_TRUE(says(dialed.error(), "did not answer within 50 ms")) << dialed.error().text();
}

TEST(Dial, APortThatIsNoneIsNotReached) {
  const auto dialed = dial({.host = "127.0.0.1", .port = "no port", .tls = {}, .timeout = kShort});
  ASSERT_FALSE(dialed);
  EXPECT_EQ(dialed.error().code, Errc::kUnavailable);
}

TEST(Dial, AuthoritiesThatCannotBeReadAreNamed) {
  ListeningPeer peer;
  DialTo to = peer.way();
  to.tls = DialTls{"/no/such/authorities.pem"};
  const auto dialed = dial(to);
  ASSERT_FALSE(dialed);
  EXPECT_EQ(dialed.error().code, Errc::kInvalidArgument);
  EXPECT_TRUE(says(dialed.error(), "/no/such/authorities.pem")) << dialed.error().text();
}

TEST(Dial, APeerThatDoesNotSpeakTlsIsNamed) {
  ListeningPeer peer;
  std::thread answers([&] {
    peer.accept();
    peer.say("HTTP/1.1 400 Bad Request\r\n\r\n");
  });
  DialTo to = peer.way();
  to.tls = DialTls{};
  const auto dialed = dial(to);
  answers.join();
  ASSERT_FALSE(dialed);
  EXPECT_TRUE(says(dialed.error(), "is it https there")) << dialed.error().text();
}

// 0 bytes would be taken for the peer's end.
TEST(DialDeathTest, ThereIsSpaceForWhatIsReceived) {
  ListeningPeer peer;
  const auto dialed = peer.accept_dialed();
  EXPECT_DEATH((void)dialed->receive({}, kLong), "space for what is received");
}

}  // namespace
}  // namespace hapax::net
