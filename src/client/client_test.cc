#include "client/client.h"

#include <array>
#include <thread>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/link.h"
#include "net/server.h"

namespace hapax::client {
namespace {

using testing::HasSubstr;

// Answers each connection with the next of the texts; an empty one closes it without a word.
class Scripted {
 public:
  explicit Scripted(std::vector<std::string> answers) : answers_(std::move(answers)) {
    const net::MakeSession make = [this](net::Link& link) -> std::shared_ptr<net::Session> {
      return std::make_shared<OneAnswer>(link, *this);
    };
    server_ = *net::Server::open({{"127.0.0.1:0", make, std::nullopt}}, 1, {});
    server_->start();
  }
  ~Scripted() { server_->stop(std::chrono::milliseconds{0}); }

  [[nodiscard]] Options options() {
    Options options;
    options.url = *parse_url("http://" + server_->addresses().front());
    options.attempts_max = 3;
    options.pause = [this](std::chrono::milliseconds) { ++pauses; };
    return options;
  }

  std::vector<std::string> requests;
  int pauses = 0;

 private:
  class OneAnswer final : public net::Session {
   public:
    OneAnswer(net::Link& link, Scripted& script) : link_(link), script_(script) {}
    std::size_t take(std::string_view bytes) override {
      if (bytes.find("\r\n\r\n") == std::string_view::npos) return 0;
      script_.requests.emplace_back(bytes);
      const std::size_t number = script_.requests.size() - 1;
      if (number < script_.answers_.size()) link_.send(script_.answers_[number]);
      link_.finish();
      return bytes.size();
    }
    void half_closed() override { link_.finish(); }
    void late() override {}
    void drain() override { link_.finish(); }
    void lost() override {}

   private:
    net::Link& link_;
    Scripted& script_;
  };

  std::vector<std::string> answers_;
  std::unique_ptr<net::Server> server_;
};

constexpr const char* kGood =
    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\nX: y\r\n\r\n{}";

TEST(Client, SendsTheSameRequestAgainWhenTheAnswerIsLost) {
  Scripted server({"", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", kGood});
  Client client(server.options());
  const auto reply = client.call({"POST", "/api/v1/claims/a/b", "{}", "application/json", "k-1"});
  ASSERT_TRUE(reply) << reply.error().text();
  EXPECT_EQ(reply->body, "{}");
  EXPECT_EQ(reply->fields.get("x"), "y");
  ASSERT_EQ(server.requests.size(), 3U);
  EXPECT_THAT(server.requests[0], HasSubstr("\r\nIdempotency-Key: k-1\r\n"));
  EXPECT_EQ(server.requests[0], server.requests[1]);
  EXPECT_EQ(server.requests[0], server.requests[2]);
  EXPECT_EQ(server.pauses, 2);
}

TEST(Client, GivesUpAndSaysThatItMayHaveHappened) {
  Scripted server({"", "", "", kGood});
  Client client(server.options());
  const auto reply = client.call({"PUT", "/api/v1/streams/a"});
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Errc::kUnavailable);
  EXPECT_THAT(reply.error().detail, HasSubstr("after 3 attempts"));
  EXPECT_THAT(reply.error().detail, HasSubstr("may have happened"));
}

// Answers the first bytes it reads, and resets the connection while the rest is being sent.
class Hasty {
 public:
  explicit Hasty(std::string answer) : listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<const sockaddr*>(&at), size), 0);
    EXPECT_EQ(::listen(listener_, 1), 0);
    EXPECT_EQ(::getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &size), 0);
    url_ = "http://127.0.0.1:" + std::to_string(ntohs(at.sin_port));
    thread_ = std::thread([this, answer = std::move(answer)] { serve(answer); });
  }
  ~Hasty() {
    thread_.join();
    ::close(listener_);
  }
  Hasty(const Hasty&) = delete;
  Hasty& operator=(const Hasty&) = delete;

  [[nodiscard]] const std::string& url() const { return url_; }

 private:
  void serve(const std::string& answer) const {
    const int peer = ::accept(listener_, nullptr, nullptr);
    std::array<char, 1'024> some{};
    EXPECT_GT(::recv(peer, some.data(), some.size(), 0), 0);
    EXPECT_EQ(::send(peer, answer.data(), answer.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(answer.size()));
    ::close(peer);  // What was not read resets it.
  }

  int listener_;
  std::string url_;
  std::thread thread_;
};

TEST(Client, ReadsTheRefusalOfWhatItCouldNotSendToItsEnd) {
  const Hasty server("HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\n{}");
  Options options;
  options.url = *parse_url(server.url());
  options.attempts_max = 1;
  const std::string body(std::size_t{64} << 20, 'x');
  const auto reply = Client(options).call({"POST", "/", body, "application/json"});
  ASSERT_TRUE(reply) << reply.error().text();
  EXPECT_EQ(reply->status, 401);
}

TEST(Client, DoesNotTryAgainWhereNobodyListens) {
  Options options;
  {
    Scripted gone({});
    options = gone.options();
  }
  options.pause = [](std::chrono::milliseconds) { ADD_FAILURE(); };
  const auto reply = Client(options).call({"GET", "/"});
  ASSERT_FALSE(reply);
  EXPECT_THAT(reply.error().detail, HasSubstr("nobody listens on 127.0.0.1:"));
}

TEST(Client, KnowsWhatIsNoHttp) {
  Scripted server({"SSH-2.0-OpenSSH_9.2\r\n"});
  const auto reply = Client(server.options()).call({"GET", "/"});
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Errc::kUnsupportedMedia);
}

TEST(Client, ReadsChunksAndBodiesThatEndWithTheConnection) {
  Scripted server(
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
       "2\r\n{\"\r\n3\r\na\":\r\n2\r\n1}\r\n0\r\n\r\n",
       "HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\ngone"});
  Client client(server.options());
  EXPECT_EQ(client.call({"GET", "/"})->body, "{\"a\":1}");
  EXPECT_EQ(client.call({"GET", "/"})->body, "gone");
}

}  // namespace
}  // namespace hapax::client
