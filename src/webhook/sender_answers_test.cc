// Receivers of every kind, and how the sender says that a request to them ended.
#include <cstdlib>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "webhook/receiver_test.h"
#include "webhook/sender.h"

namespace hapax::webhook {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

SendReply reply_of(Receiver& receiver, std::chrono::milliseconds total = kPatient) {
  const auto sender = open_sender();
  SendRequest request = post_to(receiver.url());
  request.total_timeout = total;
  return send(*sender, std::move(request));
}

SendReply reply_to(std::string_view answer, std::chrono::milliseconds total = kPatient) {
  Receiver receiver(Receiver::answering(answer));
  return reply_of(receiver, total);
}

// One that says all this and then closes.
Receiver::Script closing_after(std::string_view answer) {
  return [answer](Peer& peer, Receiver& receiver) {
    if (receiver.next(peer)) peer.say(answer);
  };
}

TEST(SenderAnswers, TellStatusFieldsBodyAndTimes) {
  const SendReply reply = reply_to(
      "HTTP/1.1 503 Busy\r\nretry-after:  120 \r\nDate: Wed, 21 Oct 2015 07:28:00 GMT\r\n"
      "Content-Type: text/plain\r\nContent-Length: 5\r\n\r\nlater");
  EXPECT_EQ(reply.ending, SendEnding::kAnswered);
  EXPECT_EQ(reply.cause, SendCause::kNone);
  EXPECT_EQ(reply.reason, "");
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(reply.retry_after, "120");
  EXPECT_EQ(reply.date, "Wed, 21 Oct 2015 07:28:00 GMT");
  EXPECT_EQ(reply.content_type, "text/plain");
  EXPECT_EQ(reply.body, "later");
  EXPECT_FALSE(reply.truncated);
  EXPECT_GT(reply.times.connected.count(), 0);
  EXPECT_GE(reply.times.first_byte, reply.times.connected);
  EXPECT_GE(reply.times.total, reply.times.first_byte);
}

TEST(SenderAnswers, EveryStatusIsAnAnswer) {
  for (const int status : {200, 201, 204, 304, 400, 401, 404, 407, 410, 417, 421, 429, 500, 599}) {
    const std::string answer =
        base::format("HTTP/1.1 {} Word\r\nContent-Length: 0\r\n\r\n", status);
    Receiver receiver(Receiver::answering(answer));
    const SendReply reply = reply_of(receiver);
    EXPECT_EQ(reply.ending, SendEnding::kAnswered) << status;
    EXPECT_EQ(reply.status, status);
    EXPECT_THAT(receiver.requests(), SizeIs(1)) << status;
  }
}

TEST(SenderRequest, HasTheGivenHeadersAndNoOthers) {
  Receiver receiver(Receiver::answering(kOk));
  const auto sender = open_sender();
  SendRequest request = post_to(receiver.url() + "?a=b%20c&d", "{\"n\":1}");
  request.headers = {{"Content-Type", "application/json"}, {"webhook-id", "m1"}, {"X-Empty", ""}};
  EXPECT_EQ(send(*sender, request).status, 200);
  EXPECT_EQ(receiver.requests().at(0),
            base::format("POST /hook?a=b%20c&d HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n"
                         "Content-Type: application/json\r\nwebhook-id: m1\r\nX-Empty:\r\n"
                         "Content-Length: 7\r\n\r\n{{\"n\":1}}",
                         receiver.at().port()));
}

TEST(SenderRequest, HasTheMethodAndTheLengthThatBelongToIt) {
  Receiver receiver(Receiver::answering(kOk));
  const auto sender = open_sender();
  const auto head_of = [&](const std::string& method, const std::string& body) {
    SendRequest request = post_to(receiver.url(), body);
    request.method = method;
    EXPECT_EQ(send(*sender, std::move(request)).status, 200) << method;
    return receiver.requests().back();
  };
  EXPECT_THAT(head_of("PUT", "abc"), StartsWith("PUT /hook "));
  EXPECT_THAT(head_of("POST", ""), HasSubstr("Content-Length: 0\r\n"));
  EXPECT_THAT(head_of("DELETE", ""), Not(HasSubstr("Content-Length")));
  EXPECT_THAT(head_of("GET", ""), StartsWith("GET /hook "));
  EXPECT_THAT(head_of("PATCH", "x"), HasSubstr("Content-Length: 1\r\n"));
}

TEST(SenderRequest, OfManyMegabytesArrivesWholeAndWithoutExpect) {
  Receiver receiver(Receiver::answering(kOk));
  const auto sender = open_sender();
  const std::string body(3 * 1024 * 1024, 'b');
  EXPECT_EQ(send(*sender, post_to(receiver.url(), body)).status, 200);
  const std::string seen = receiver.requests().at(0);
  EXPECT_THAT(seen.substr(0, 400), Not(HasSubstr("Expect")));
  EXPECT_TRUE(seen.ends_with("\r\n\r\n" + body));
}

TEST(SenderRequest, TakesAnOpenConnection) {
  Receiver receiver(Receiver::answering(kOk));
  const auto sender = open_sender();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(send(*sender, post_to(receiver.url())).status, 200);
  EXPECT_EQ(receiver.connections(), 1U);
}

TEST(SenderRequest, CarriesNothingThatAnAnswerLeftBehind) {
  Receiver receiver(Receiver::answering(
      "HTTP/1.1 401 No\r\nSet-Cookie: a=b\r\nWWW-Authenticate: Basic\r\n"
      "Strict-Transport-Security: max-age=9\r\nAlt-Svc: h2=\":1\"\r\nContent-Length: 0\r\n\r\n"));
  const auto sender = open_sender();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(send(*sender, post_to(receiver.url())).status, 401);
  EXPECT_EQ(receiver.requests().at(0), receiver.requests().at(1));
}

TEST(SenderRequest, DoesNotFollowTheEnvironmentToAProxy) {
  const BoundSocket nobody;
  ::setenv("http_proxy", nobody.url().c_str(), 1);
  ::setenv("all_proxy", nobody.url().c_str(), 1);
  const SendReply reply = reply_to(kOk);
  ::unsetenv("http_proxy");
  ::unsetenv("all_proxy");
  EXPECT_EQ(reply.status, 200) << reply.reason;
}

TEST(SenderAnswers, ARedirectIsAnAnswerAndNotFollowed) {
  Receiver other(Receiver::answering(kOk));
  const std::string answer =
      base::format("HTTP/1.1 307 There\r\nLocation: {}\r\nContent-Length: 0\r\n\r\n", other.url());
  const SendReply reply = reply_to(answer);
  EXPECT_EQ(reply.status, 307);
  EXPECT_EQ(reply.location, other.url());
  EXPECT_EQ(other.connections(), 0U);
}

TEST(SenderAnswers, ProvisionalHeadsAreSkipped) {
  const SendReply reply = reply_to(
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nRetry-After: 7\r\n\r\n"
      "HTTP/1.1 202 Taken\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(reply.ending, SendEnding::kAnswered);
  EXPECT_EQ(reply.status, 202);
  EXPECT_EQ(reply.retry_after, "");
}

TEST(SenderAnswers, ATrailerIsNotAHeader) {
  const SendReply reply = reply_to(
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
      "2\r\nok\r\n0\r\nRetry-After: 7\r\n\r\n");
  EXPECT_EQ(reply.body, "ok");
  EXPECT_EQ(reply.retry_after, "");
}

TEST(SenderAnswers, ProvisionalHeadsWithoutEndAreNone) {
  Receiver receiver([](Peer& peer, Receiver& self) {
    if (!self.next(peer)) return;
    while (peer.say("HTTP/1.1 103 Hints\r\nLink: </a>\r\n\r\n")) {
    }
  });
  const SendReply reply = reply_of(receiver);
  EXPECT_EQ(reply.ending, SendEnding::kUnknown);
  EXPECT_EQ(reply.cause, SendCause::kProtocol);
  EXPECT_EQ(reply.status, 0);
  EXPECT_THAT(reply.reason, HasSubstr("head of the answer is larger"));
}

TEST(SenderAnswers, AHeadThatIsTooLargeIsNone) {
  Receiver receiver([](Peer& peer, Receiver& self) {
    if (!self.next(peer)) return;
    peer.say("HTTP/1.1 200 OK\r\n");
    while (peer.say("X-More: 0123456789012345678901234567890123456789\r\n")) {
    }
  });
  const SendReply reply = reply_of(receiver);
  EXPECT_EQ(reply.ending, SendEnding::kUnknown);
  EXPECT_EQ(reply.cause, SendCause::kProtocol);
}

TEST(SenderAnswers, ABodyIsKeptUpToItsLimit) {
  const std::string body(kBodyKeptMax, 'k');
  const std::string head = "HTTP/1.1 400 No\r\nContent-Length: ";
  const SendReply just = reply_to(base::format("{}{}\r\n\r\n{}", head, body.size(), body));
  EXPECT_EQ(just.body, body);
  EXPECT_FALSE(just.truncated);
  const SendReply more = reply_to(base::format("{}{}\r\n\r\n{}+", head, body.size() + 1, body));
  EXPECT_EQ(more.ending, SendEnding::kAnswered);
  EXPECT_EQ(more.status, 400);
  EXPECT_EQ(more.body, body);
  EXPECT_TRUE(more.truncated);
}

TEST(SenderAnswers, AnEndlessBodyIsCutAndCountsAsAnswered) {
  Receiver receiver([](Peer& peer, Receiver& self) {
    if (!self.next(peer)) return;
    peer.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    while (peer.say("10\r\n0123456789abcdef\r\n")) {
    }
  });
  const SendReply reply = reply_of(receiver);
  EXPECT_EQ(reply.ending, SendEnding::kAnswered);
  EXPECT_EQ(reply.status, 200);
  EXPECT_THAT(reply.body, SizeIs(kBodyKeptMax));
  EXPECT_TRUE(reply.truncated);
}

TEST(SenderAnswers, ACompressedBodyStaysAsItCame) {
  const SendReply reply =
      reply_to("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b!!");
  EXPECT_EQ(reply.ending, SendEnding::kAnswered);
  EXPECT_EQ(reply.body, "\x1f\x8b!!");
}

TEST(SenderAnswers, AnAnswerThatEndsWithTheConnectionIsWhole) {
  Receiver receiver(closing_after("HTTP/1.0 200 OK\r\n\r\nall of it"));
  const SendReply reply = reply_of(receiver);
  EXPECT_EQ(reply.ending, SendEnding::kAnswered);
  EXPECT_EQ(reply.body, "all of it");
}

TEST(SenderFailures, GarbageIsUnknown) {
  for (const std::string_view answer :
       {std::string_view("\x01\x02\n\x1b[31mno\n\n"),
        std::string_view("220 mail.example ESMTP\r\n"), std::string_view("HTTP/1.1 abc\r\n\r\n"),
        std::string_view("HTTP/1.1 200\0 OK\r\n\r\n", 21),
        std::string_view("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"),
        std::string_view("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")}) {
    Receiver receiver(closing_after(answer));
    const SendReply reply = reply_of(receiver);
    EXPECT_EQ(reply.ending, SendEnding::kUnknown) << answer;
    EXPECT_NE(reply.reason, "");
    for (const char c : reply.reason) EXPECT_TRUE(c >= ' ' && c <= '~') << reply.reason;
  }
}

TEST(SenderFailures, AConnectionThatEndsBeforeTheAnswerIsUnknown) {
  Receiver receiver(closing_after(""));
  const SendReply reply = reply_of(receiver);
  EXPECT_EQ(reply.ending, SendEnding::kUnknown);
  EXPECT_EQ(reply.cause, SendCause::kBroken);
  EXPECT_EQ(reply.status, 0);
  EXPECT_THAT(receiver.requests(), SizeIs(1));
}

TEST(SenderFailures, AResetIsUnknownBeforeAndInTheAnswer) {
  for (const std::string_view begun :
       {"", "HTTP/1.1 200 OK\r\nContent-Le", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nfour"}) {
    Receiver receiver([begun](Peer& peer, Receiver& self) {
      if (!self.next(peer)) return;
      peer.say(begun);
      peer.reset();
    });
    const SendReply reply = reply_of(receiver);
    EXPECT_EQ(reply.ending, SendEnding::kUnknown) << begun;
    EXPECT_EQ(reply.cause, SendCause::kBroken) << begun;
    EXPECT_THAT(receiver.requests(), SizeIs(1));
  }
}

TEST(SenderFailures, AResetAfterTheAnswerIsAnAnswer) {
  Receiver receiver([](Peer& peer, Receiver& self) {
    if (!self.next(peer)) return;
    peer.say(kOk);
    self.hold();
    peer.reset();
  });
  const auto sender = open_sender();
  EXPECT_EQ(send(*sender, post_to(receiver.url())).status, 200);
}

TEST(SenderFailures, AnAnswerThatEndsTooEarlyIsUnknownButItsStatusIsTold) {
  Receiver receiver(closing_after("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nfour"));
  const SendReply reply = reply_of(receiver);
  EXPECT_EQ(reply.ending, SendEnding::kUnknown);
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, "four");
}

TEST(SenderFailures, SilenceIsUnknownAfterTheTotalTimeout) {
  for (const std::string_view begun :
       {"", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nfour"}) {
    Receiver receiver([begun](Peer& peer, Receiver& self) {
      if (!self.next(peer)) return;
      peer.say(begun);
      peer.wait_for_end();
    });
    const SendReply reply = reply_of(receiver, kBrief);
    EXPECT_EQ(reply.ending, SendEnding::kUnknown) << begun;
    EXPECT_EQ(reply.cause, SendCause::kTimeout) << begun;
    EXPECT_EQ(reply.status, begun.ends_with("four") ? 200 : 0);
  }
}

TEST(SenderFailures, DrippingDoesNotProlongTheTotalTimeout) {
  Receiver receiver([](Peer& peer, Receiver& self) {
    if (!self.next(peer)) return;
    peer.say("HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n");
    pollfd quiet{.fd = peer.get(), .events = POLLIN, .revents = 0};
    while (::poll(&quiet, 1, 5) == 0 && peer.say("x")) {
    }
  });
  const SendReply reply = reply_of(receiver, kBrief);
  EXPECT_EQ(reply.ending, SendEnding::kUnknown);
  EXPECT_EQ(reply.cause, SendCause::kTimeout);
}

TEST(SenderFailures, ARefusedConnectIsNotSent) {
  const BoundSocket nobody;  // holds the port and does not listen
  const auto sender = open_sender();
  const SendReply reply = send(*sender, post_to(nobody.url()));
  EXPECT_EQ(reply.ending, SendEnding::kNotSent);
  EXPECT_EQ(reply.cause, SendCause::kConnect);
}

TEST(SenderFailures, AConnectWithoutAnAnswerIsNotSent) {
  const BoundSocket full;
  full.listen(0);
  // The kernel drops the SYN of those that come when the queue is full.
  std::vector<int> crowd;
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(full.port());
  for (int i = 0; i < 4; ++i) {
    crowd.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    ::connect(crowd.back(), reinterpret_cast<const sockaddr*>(&at), sizeof at);
  }
  const auto sender = open_sender();
  SendRequest request = post_to(full.url());
  request.connect_timeout = kBrief;
  const SendReply reply = send(*sender, std::move(request));
  for (const int one : crowd) ::close(one);
  EXPECT_EQ(reply.ending, SendEnding::kNotSent);
  EXPECT_EQ(reply.cause, SendCause::kTimeout) << reply.reason;
}

TEST(SenderFailures, ARequestThatCheckRequestRefusesIsNotSent) {
  const auto sender = open_sender();
  for (const char* url : {"ftp://127.0.0.1/", "http://u:p@127.0.0.1/", "http://127.0.0.1/#a"}) {
    const SendReply reply = send(*sender, post_to(url));
    EXPECT_EQ(reply.ending, SendEnding::kNotSent);
    EXPECT_EQ(reply.cause, SendCause::kInvalid) << url;
  }
}

}  // namespace
}  // namespace hapax::webhook
