#include "client/client.h"

#include <array>
#include <future>
#include <latch>
#include <thread>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/sink_thread.h"
#include "client/sinks.h"
#include "client/webhook_sink.h"
#include "net/link.h"
#include "net/server.h"

namespace hapax::client {
namespace {

using testing::HasSubstr;

constexpr const char* kSilence = "(nothing)";

// Answers each request with the next of the texts, and closes the connection, unless the text says
// keep-alive; an empty one closes it without a word, and kSilence leaves it open without one.
class Scripted {
 public:
  explicit Scripted(std::vector<std::string> answers) : answers_(std::move(answers)) {
    const net::MakeSession make = [this](net::Link& link) -> std::shared_ptr<net::Session> {
      return std::make_shared<OneAnswer>(link, *this);
    };
    server_ = *net::Server::open({{"127.0.0.1:0", make, std::nullopt}}, 1, {});
    server_->start();
  }
  ~Scripted() { stop(); }
  // Then nothing more arrives: where no answer was waited for, `requests` may be read.
  void stop() { server_->stop(std::chrono::milliseconds{0}); }

  [[nodiscard]] ClientOptions options() {
    ClientOptions options;
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
      const bool silent = number < script_.answers_.size() && script_.answers_[number] == kSilence;
      if (silent) return bytes.size();
      const std::string answer = number < script_.answers_.size() ? script_.answers_[number] : "";
      link_.send(answer);
      if (answer.find("keep-alive") == std::string::npos) link_.finish();
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

// Whoever forgets to escape a text of others sends nothing, instead of more than was meant.
TEST(Client, SendsNoTextThatWouldBeMoreThanOne) {
  Scripted server({kGood});
  const auto refused = [&](const ApiCall& call, ClientOptions options) {
    const auto reply = Client(std::move(options)).call(call);
    return !reply && reply.error().code == Errc::kInvalidArgument;
  };
  EXPECT_TRUE(refused({.path = "/a", .key = "a\r\nX-Evil: 1"}, server.options()));
  EXPECT_TRUE(refused({.path = "/a HTTP/1.1\r\nX-Evil: 1"}, server.options()));
  EXPECT_TRUE(refused({.method = "GET /b", .path = "/a"}, server.options()));
  EXPECT_TRUE(
      refused({.method = "PUT", .path = "/a", .body = "x", .type = "a\nb"}, server.options()));
  ApiCall fields{.path = "/a"};
  fields.fields.add("Hapax-Type", "x\ny");
  EXPECT_TRUE(refused(fields, server.options()));
  ClientOptions token = server.options();
  token.token = "a\r\nb";
  EXPECT_TRUE(refused({.path = "/a"}, token));
  EXPECT_TRUE(server.requests.empty());
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

constexpr const char* kGoodAndStay =
    "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\n{}";

TEST(Client, CountsNoAttemptOnAConnectionThatWasClosedWhileItRested) {
  Scripted server({kGoodAndStay, "", kGood});
  ClientOptions options = server.options();
  options.attempts_max = 1;
  Client client(options);
  ASSERT_TRUE(client.call({"PUT", "/a"}));
  int asked = 0;
  const ApiCall call{.method = "PUT", .path = "/a", .may_send = [&] { return ++asked != 0; }};
  ASSERT_TRUE(client.call(call));
  EXPECT_EQ(asked, 2) << "before each of the two attempts";
}

// Y2: who asks may have lost the right since the attempt before.
TEST(Client, SendsNothingMoreWhenItMayNot) {
  Scripted server({kGoodAndStay, "", kGood});
  Client client(server.options());
  ASSERT_TRUE(client.call({"PUT", "/a"}));
  int asked = 0;
  const ApiCall call{.method = "PUT", .path = "/a", .may_send = [&] { return ++asked == 1; }};
  EXPECT_FALSE(client.call(call));
  server.stop();
  EXPECT_EQ(server.requests.size(), 2U);
}

class RealClock final : public ports::Clock {
 public:
  std::int64_t wall_ms() override { return 0; }
  std::int64_t steady_ms() override {
    const auto since = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
  }
};

// What becomes of one record at an endpoint.
class WebhookSinkTest : public testing::Test {
 protected:
  delivery::SendResult send(Scripted& server, Duration left = Duration{60'000}) {
    const delivery::Outgoing record{.id = "r 1", .type = "t", .key = "k", .payload = "x"};
    const std::array<const delivery::Outgoing*, 1> one{&record};
    WebhookSink sink(*sender_, clock_,
                     {.url = server.options().url.text() + "/in?key=1&to=a%20b",
                      .token = "secret",
                      .answer_time = Duration{3'000}});
    std::promise<delivery::SendResult> told;
    sink.start(one, clock_.steady_ms() + left.count(),
               [&](std::vector<delivery::SendResult> results) { told.set_value(results.at(0)); });
    return told.get_future().get();
  }

  using Outcome = delivery::SendResult::Outcome;
  RealClock clock_;
  const std::unique_ptr<webhook::Sender> sender_ = *webhook::Sender::open({});
};

TEST_F(WebhookSinkTest, SendsTheRecordUnderItsId) {
  Scripted server({"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + std::string(kGood)});
  EXPECT_EQ(send(server).outcome, Outcome::kDelivered);
  server.stop();
  ASSERT_EQ(server.requests.size(), 1U);
  const std::string& request = server.requests[0];
  EXPECT_THAT(request, testing::StartsWith("POST /in?key=1&to=a%20b HTTP/1.1\r\n"));
  for (const char* line : {"Idempotency-Key: r 1", "Hapax-Type: t", "Hapax-Key: k",
                           "Authorization: Bearer secret", "Content-Length: 1"}) {
    EXPECT_THAT(request, HasSubstr(line));
  }
}

TEST_F(WebhookSinkTest, JudgesByTheStatus) {
  const auto told = [&](const std::string& status) {
    Scripted server(
        {"HTTP/1.1 " + status + "\r\nContent-Length: 3\r\nConnection: close\r\n\r\nwhy"});
    return send(server);
  };
  EXPECT_EQ(told("204 No Content").outcome, Outcome::kDelivered);
  EXPECT_EQ(told("422 No").outcome, Outcome::kRejected);
  EXPECT_THAT(told("422 No").reason, HasSubstr("HTTP 422 why"));
  for (const char* status : {"408 Late", "425 Early", "429 Much", "302 There"}) {
    EXPECT_EQ(told(status).outcome, Outcome::kTryLater) << status;
    EXPECT_FALSE(told(status).answered) << status;
  }
  EXPECT_EQ(told("500 Oh").outcome, Outcome::kTryLater);
  EXPECT_TRUE(told("500 Oh").answered);
}

TEST_F(WebhookSinkTest, TellsForHowLongItIsAskedToWait) {
  Scripted server({"HTTP/1.1 503 No\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n"});
  EXPECT_EQ(send(server).after, Duration{7'000});
}

// Nobody knows whether the endpoint has it, and it is not sent again.
TEST_F(WebhookSinkTest, AnAnswerThatDoesNotComeIsUnknown) {
  Scripted server({kSilence, kGood});
  EXPECT_EQ(send(server).outcome, Outcome::kUnknown);
  server.stop();
  EXPECT_EQ(server.requests.size(), 1U);
}

// Z1
TEST_F(WebhookSinkTest, NothingLeavesAfterItsTime) {
  Scripted server({kGood});
  EXPECT_EQ(send(server, Duration{0}).outcome, Outcome::kNotSent);
  server.stop();
  EXPECT_TRUE(server.requests.empty());
}

// Of what it says about a record the beginning is enough, and its end may never come.
TEST_F(WebhookSinkTest, ReadsNoMoreOfAnAnswerThanItNeeds) {
  const std::string much(std::size_t{40} << 10, 'x');
  Scripted server({"HTTP/1.1 422 No\r\nTransfer-Encoding: chunked\r\n\r\n7fffffff\r\n" + much});
  const delivery::SendResult told = send(server);
  EXPECT_EQ(told.outcome, Outcome::kRejected);
  EXPECT_LT(told.reason.size(), 400U);
}

// Z9: what has not begun when the engine winds down is not sent any more.
TEST(SinkThread, SendsNothingOnceItWindsDown) {
  Scripted server({kGood});
  RealClock clock;
  SinkThread sink(std::make_unique<StreamSink>(server.options(), "orders"), clock, 10);
  const delivery::Outgoing record{.id = "r1", .type = "t", .payload = "x"};
  const std::array<const delivery::Outgoing*, 1> one{&record};
  const auto outcome = [&] {
    std::promise<delivery::SendResult> told;
    sink.start(one, clock.steady_ms() + 60'000,
               [&](std::vector<delivery::SendResult> results) { told.set_value(results.at(0)); });
    return told.get_future().get().outcome;
  };
  EXPECT_EQ(outcome(), delivery::SendResult::Outcome::kDelivered);
  sink.wind_down();
  EXPECT_EQ(outcome(), delivery::SendResult::Outcome::kNotSent);
  server.stop();
  EXPECT_EQ(server.requests.size(), 1U);
}

TEST(StreamSink, TellsTheEndOfItsTimeFromAServerThatIsAway) {
  const relay::Outgoing record{.id = "r1", .type = "t", .payload = "x"};
  const std::array<const relay::Outgoing*, 1> one{&record};
  RealClock clock;
  Scripted server({kSilence, ""});
  StreamSink sink(server.options(), "orders");
  EXPECT_EQ(sink.deliver(one, relay::Permit(clock, clock.steady_ms() + 300)).ending,
            relay::SinkDelivery::Ending::kOutOfTime);
  EXPECT_EQ(sink.deliver(one, relay::Permit(clock, clock.steady_ms() + 60'000)).ending,
            relay::SinkDelivery::Ending::kUnavailable);
}

// A payload of control characters would be six times as long as text.
TEST(StreamSink, SendsBytesInTheShorterWay) {
  Scripted server({kGood, kGood});
  RealClock clock;
  const relay::Permit permit(clock, clock.steady_ms() + 10'000);
  const auto sent = [&](const std::string& payload) {
    StreamSink sink(server.options(), "orders");
    const relay::Outgoing record{.id = "r1", .type = "t", .payload = payload};
    const std::array<const relay::Outgoing*, 1> one{&record};
    EXPECT_EQ(sink.deliver(one, permit).accepted, 1U);
    return server.requests.back();
  };
  EXPECT_THAT(sent("{\"a\": \"b\"}"), HasSubstr(R"("payload":"{\"a\": \"b\"}")"));
  EXPECT_THAT(sent(std::string(9, '\x01')), HasSubstr(R"("payload_base64":"AQEBAQEBAQEB")"));
}

// A server without a library, which may do what none should.
class Listener {
 public:
  Listener() : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    EXPECT_EQ(::bind(socket_, reinterpret_cast<const sockaddr*>(&at), size), 0);
    EXPECT_EQ(::listen(socket_, 1), 0);
    EXPECT_EQ(::getsockname(socket_, reinterpret_cast<sockaddr*>(&at), &size), 0);
    options_.url = *parse_url("http://127.0.0.1:" + std::to_string(ntohs(at.sin_port)));
    options_.attempts_max = 1;
  }
  ~Listener() { ::close(socket_); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  [[nodiscard]] const ClientOptions& options() const { return options_; }
  // Of the next connection, whose first bytes are answered.
  [[nodiscard]] int answer_next(std::string_view answer) const {
    const int peer = ::accept(socket_, nullptr, nullptr);
    std::array<char, 1'024> some{};
    EXPECT_GT(::recv(peer, some.data(), some.size(), 0), 0);
    say(peer, answer);
    return peer;
  }
  static void say(int peer, std::string_view text) {
    EXPECT_EQ(::send(peer, text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }

 private:
  int socket_;
  ClientOptions options_;
};

// Answers the first bytes it reads, and resets the connection while the rest is being sent; or adds
// a byte every 10 ms, so many.
class Hasty {
 public:
  explicit Hasty(std::string answer, int trickle = 0)
      : trickle_(trickle), thread_([this, answer = std::move(answer)] { serve(answer); }) {}
  ~Hasty() { thread_.join(); }
  Hasty(const Hasty&) = delete;
  Hasty& operator=(const Hasty&) = delete;

  [[nodiscard]] const ClientOptions& options() const { return listener_.options(); }

 private:
  // Whether the peer closed, or sent more, meanwhile.
  static bool moves(int peer) {
    pollfd one{peer, POLLIN, 0};
    return ::poll(&one, 1, 10) != 0;
  }

  void serve(const std::string& answer) const {
    const int peer = listener_.answer_next(answer);
    for (int n = 0; n < trickle_ && !moves(peer); ++n) ::send(peer, "x", 1, MSG_NOSIGNAL);
    ::close(peer);  // What was not read resets it.
  }

  const int trickle_;
  const Listener listener_;
  std::thread thread_;
};

TEST(Client, ReadsTheRefusalOfWhatItCouldNotSendToItsEnd) {
  const Hasty server("HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\n{}");
  const std::string body(std::size_t{64} << 20, 'x');
  const auto reply = Client(server.options()).call({"POST", "/", body, "application/json"});
  ASSERT_TRUE(reply) << reply.error().text();
  EXPECT_EQ(reply->status, 401);
}

TEST(Client, WaitsNoLongerForAPeerThatMovesThanItSays) {
  const Hasty server("HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n", 3'000);
  const auto begun = std::chrono::steady_clock::now();
  const ApiCall call{.method = "PUT", .path = "/", .time = std::chrono::seconds{1}};
  EXPECT_FALSE(Client(server.options()).call(call));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds{20});
}

// An answer that comes when nothing was asked would be taken for that to the next request.
TEST(Client, TakesNoAnswerThatCameBeforeTheQuestion) {
  const Listener server;
  std::latch answered(1);
  std::latch unasked(1);
  std::thread thread([&] {
    const int first = server.answer_next(kGoodAndStay);
    answered.wait();
    Listener::say(first, kGoodAndStay);
    int on_the_way = 1;
    while (on_the_way > 0) EXPECT_EQ(::ioctl(first, SIOCOUTQ, &on_the_way), 0);
    unasked.count_down();
    ::close(server.answer_next("HTTP/1.1 422 No\r\nContent-Length: 0\r\n\r\n"));
    ::close(first);
  });
  Client client(server.options());
  EXPECT_EQ(client.call({"PUT", "/a"})->status, 200U);
  answered.count_down();
  unasked.wait();
  EXPECT_EQ(client.call({"PUT", "/b"})->status, 422U);
  thread.join();
}

TEST(Client, DoesNotTryAgainWhereNobodyListens) {
  ClientOptions options;
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
