// Q1: one start is at most one request on the wire, whatever libcurl would like to repeat.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "webhook/receiver_test.h"
#include "webhook/sender.h"

namespace hapax::webhook {
namespace {

using ::testing::SizeIs;

struct Sort {
  const char* method;
  std::size_t body;
};

class SenderOnce : public ::testing::TestWithParam<Sort> {
 protected:
  [[nodiscard]] static SendRequest request(const Receiver& receiver) {
    SendRequest out = post_to(receiver.url(), std::string(GetParam().body, 'x'));
    out.method = GetParam().method;
    return out;
  }
};

// The receiver keeps the connection after the first answer, reads the second request on it, and
// closes. Without the callback before the request libcurl sends it up to five times more.
TEST_P(SenderOnce, ARequestThatAReusedConnectionLosesIsNotRepeated) {
  Receiver receiver([](Peer& peer, Receiver& self) {
    if (!self.next(peer)) return;
    peer.say(kOk);
    self.next(peer);
  });
  const auto sender = open_sender();
  ASSERT_EQ(send(*sender, request(receiver)).status, 200);
  const SendReply lost = send(*sender, request(receiver));
  EXPECT_EQ(lost.ending, SendEnding::kUnknown);
  EXPECT_EQ(lost.cause, SendCause::kBroken);
  EXPECT_EQ(lost.reason, "the connection ended before the answer");
  EXPECT_THAT(receiver.requests(), SizeIs(2));
  EXPECT_EQ(receiver.connections(), 1U);
  // The sender is well, and the next request is one again.
  EXPECT_EQ(send(*sender, request(receiver)).status, 200);
  EXPECT_THAT(receiver.requests(), SizeIs(3));
}

// Q2: whoever asked for it changed its mind while the connection was made.
TEST_P(SenderOnce, WhatMayNotLeaveIsNotSent) {
  Receiver receiver([](Peer& peer, Receiver& self) {
    while (self.next(peer)) peer.say(kOk);
  });
  const auto sender = open_sender();
  SendRequest late = request(receiver);
  late.may_leave = [] { return false; };
  for (int i = 0; i < 2; ++i) {  // on a new connection, and on a pooled one
    const SendReply withheld = send(*sender, late);
    EXPECT_EQ(withheld.ending, SendEnding::kNotSent);
    EXPECT_EQ(withheld.cause, SendCause::kWithheld);
    EXPECT_EQ(send(*sender, request(receiver)).status, 200);
  }
  EXPECT_THAT(receiver.requests(), SizeIs(2));
}

// The receiver closes while the request is coming in: the kernel answers with a reset.
TEST_P(SenderOnce, ARequestThatAReusedConnectionDoesNotReadIsNotRepeated) {
  Receiver receiver([](Peer& peer, Receiver& self) {
    if (!self.next(peer)) return;
    peer.say(kOk);
    peer.wait_for_bytes();
    peer.close();
  });
  const auto sender = open_sender();
  ASSERT_EQ(send(*sender, request(receiver)).status, 200);
  const SendReply lost = send(*sender, request(receiver));
  EXPECT_EQ(lost.ending, SendEnding::kUnknown);
  EXPECT_EQ(lost.cause, SendCause::kBroken);
  EXPECT_THAT(receiver.requests(), SizeIs(1));
  EXPECT_EQ(receiver.connections(), 1U);
}

// Other idle connections are in the pool: libcurl would take one of them for the repetition.
TEST_P(SenderOnce, ARepetitionDoesNotTakeAnotherOpenConnectionEither) {
  Receiver receiver([](Peer& peer, Receiver& self) {
    if (!self.next(peer)) return;
    self.hold();
    peer.say(kOk);
    self.next(peer);
  });
  const auto sender = open_sender();
  auto first = start(*sender, request(receiver));
  auto second = start(*sender, request(receiver));
  ASSERT_TRUE(receiver.wait_for_requests(2));
  receiver.release();
  ASSERT_EQ(first.get().status, 200);
  ASSERT_EQ(second.get().status, 200);
  EXPECT_EQ(send(*sender, request(receiver)).ending, SendEnding::kUnknown);
  EXPECT_THAT(receiver.requests(), SizeIs(3));
  EXPECT_EQ(receiver.connections(), 2U);
}

// An idle connection that the receiver has closed is noticed before it is used.
TEST_P(SenderOnce, AClosedIdleConnectionIsReplaced) {
  Receiver receiver([](Peer& peer, Receiver& self) {
    if (self.next(peer)) peer.say(kOk);
    ::shutdown(peer.get(), SHUT_WR);
    peer.wait_for_end();
  });
  const auto sender = open_sender();
  for (std::size_t sent = 1; sent <= 3; ++sent) {
    const SendReply reply = send(*sender, request(receiver));
    // Whether the end of the connection has come in by then is up to the kernel.
    EXPECT_NE(reply.ending, SendEnding::kNotSent);
    EXPECT_LE(receiver.requests().size(), sent);
  }
}

INSTANTIATE_TEST_SUITE_P(Requests, SenderOnce,
                         ::testing::Values(Sort{"POST", 2}, Sort{"POST", 0}, Sort{"PUT", 0},
                                           Sort{"GET", 0}, Sort{"DELETE", 0},
                                           Sort{"POST", 200'000}),
                         [](const auto& one) {
                           return base::format("{}{}", one.param.method, one.param.body);
                         });

}  // namespace
}  // namespace hapax::webhook
