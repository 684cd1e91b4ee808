// Starting, waiting, and the end of a sender.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "webhook/receiver_test.h"
#include "webhook/sender.h"

namespace hapax::webhook {
namespace {

using std::chrono::milliseconds;
using ::testing::SizeIs;

// Answers when the test says so.
Receiver::Script holding() {
  return [](Peer& peer, Receiver& receiver) {
    while (receiver.next(peer)) {
      receiver.hold();
      peer.say(kOk);
    }
  };
}

// Q2: only a request that did not leave is told as not sent.
TEST(SenderStop, TellsEachRequestAsItIs) {
  Receiver receiver([](Peer& peer, Receiver& self) {
    self.next(peer);
    peer.wait_for_end();
  });
  const auto sender = open_sender(on_loopback({.per_origin = 1}));
  auto sent = start(*sender, post_to(receiver.url()));
  auto waiting = start(*sender, post_to(receiver.url()));
  ASSERT_TRUE(receiver.wait_for_requests(1));
  sender->stop(milliseconds(0));
  const SendReply unknown = sent.get();
  EXPECT_EQ(unknown.ending, SendEnding::kUnknown);
  EXPECT_EQ(unknown.cause, SendCause::kStopped);
  const SendReply unsent = waiting.get();
  EXPECT_EQ(unsent.ending, SendEnding::kNotSent);
  EXPECT_EQ(unsent.cause, SendCause::kStopped);
  EXPECT_THAT(receiver.requests(), SizeIs(1));
}

TEST(SenderStop, WaitsForThoseUnderWayAndBeginsNothing) {
  Receiver receiver(holding());
  const auto sender = open_sender(on_loopback({.per_origin = 1}));
  auto sent = start(*sender, post_to(receiver.url()));
  auto waiting = start(*sender, post_to(receiver.url()));
  ASSERT_TRUE(receiver.wait_for_requests(1));
  std::thread stopping([&] { sender->stop(kPatient); });
  EXPECT_EQ(waiting.get().ending, SendEnding::kNotSent);  // told before the other has ended
  receiver.release();
  stopping.join();
  EXPECT_EQ(sent.get().status, 200);
  EXPECT_THAT(receiver.requests(), SizeIs(1));
}

TEST(SenderStop, TakesNothingAfterwards) {
  const auto sender = open_sender();
  sender->stop(kPatient);
  EXPECT_FALSE(sender->start(post_to("http://127.0.0.1/"), [](const SendReply&) { FAIL(); }));
  sender->stop(kPatient);
}

TEST(SenderStop, IsWhatTheEndOfASenderDoes) {
  Receiver receiver(holding());
  auto sender = open_sender();
  auto sent = start(*sender, post_to(receiver.url()));
  ASSERT_TRUE(receiver.wait_for_requests(1));
  sender.reset();
  EXPECT_EQ(sent.get().ending, SendEnding::kUnknown);
}

TEST(SenderLimits, BoundTheConnectionsOfAnOrigin) {
  Receiver receiver(holding());
  const auto sender = open_sender(on_loopback({.per_origin = 2}));
  std::vector<std::future<SendReply>> replies;
  for (int i = 0; i < 6; ++i) replies.push_back(start(*sender, post_to(receiver.url())));
  ASSERT_TRUE(receiver.wait_for_requests(2));
  receiver.release();
  for (auto& reply : replies) EXPECT_EQ(reply.get().status, 200);
  EXPECT_EQ(receiver.connections(), 2U);
}

TEST(SenderLimits, AnOriginThatHangsHoldsUpNoOther) {
  Receiver hanging(holding());
  Receiver living(Receiver::answering(kOk));
  const auto sender = open_sender(on_loopback({.per_origin = 1}));
  std::vector<std::future<SendReply>> held;
  for (int i = 0; i < 20; ++i) held.push_back(start(*sender, post_to(hanging.url())));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(send(*sender, post_to(living.url())).status, 200);
  sender->stop(milliseconds(0));
}

// The place for a connect is free when the connect is over, not when the request is.
TEST(SenderLimits, ARequestWithoutAnAnswerKeepsNoPlaceForConnects) {
  Receiver first(Receiver::answering(kOk));
  Receiver hanging(holding());
  Receiver living(Receiver::answering(kOk));
  const auto sender = open_sender(on_loopback({.lookups = 1, .connects = 1}));
  std::promise<SendReply> held;
  std::promise<SendReply> answered;
  // From here both come in one turn.
  EXPECT_TRUE(sender->start(post_to(first.url()), [&](const SendReply&) {
    EXPECT_TRUE(sender->start(post_to(hanging.url()),
                              [&](SendReply reply) { held.set_value(std::move(reply)); }));
    EXPECT_TRUE(sender->start(post_to(living.url()),
                              [&](SendReply reply) { answered.set_value(std::move(reply)); }));
  }));
  EXPECT_EQ(answered.get_future().get().status, 200);
  sender->stop(milliseconds(0));
  EXPECT_EQ(held.get_future().get().ending, SendEnding::kUnknown);
}

TEST(SenderLimits, TheTotalTimeoutCountsTheWaiting) {
  Receiver receiver(holding());
  const auto sender = open_sender(on_loopback({.per_origin = 1}));
  auto first = start(*sender, post_to(receiver.url()));
  ASSERT_TRUE(receiver.wait_for_requests(1));
  SendRequest request = post_to(receiver.url());
  request.total_timeout = milliseconds(1);
  auto late = start(*sender, std::move(request));
  const auto begun = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begun <= milliseconds(2)) std::this_thread::yield();
  receiver.release();
  EXPECT_EQ(first.get().status, 200);
  const SendReply reply = late.get();
  EXPECT_EQ(reply.ending, SendEnding::kNotSent);
  EXPECT_EQ(reply.cause, SendCause::kTimeout);
  EXPECT_GE(reply.times.waited, milliseconds(1));
  EXPECT_THAT(receiver.requests(), SizeIs(1));
}

TEST(SenderStart, WorksFromDone) {
  Receiver receiver(Receiver::answering(kOk));
  const auto sender = open_sender();
  std::promise<int> second;
  EXPECT_TRUE(sender->start(post_to(receiver.url()), [&](const SendReply&) {
    EXPECT_TRUE(sender->start(post_to(receiver.url()),
                              [&](const SendReply& reply) { second.set_value(reply.status); }));
  }));
  EXPECT_EQ(second.get_future().get(), 200);
}

// Q3: `done` runs once for each start, on one thread, and after_turn follows.
TEST(SenderStart, FromManyThreadsEndsOnceEach) {
  Receiver receiver(Receiver::answering(kOk));
  struct Told {
    std::vector<int> times = std::vector<int>(400);
    std::size_t all = 0;
    std::size_t handed_on = 0;
    std::thread::id thread;
    std::promise<void> finished;
  } told;
  SenderSettings settings = on_loopback({.per_origin = 8});
  settings.after_turn = [&told] {
    EXPECT_EQ(std::this_thread::get_id(), told.thread);
    told.handed_on = told.all;
    if (told.all == told.times.size()) told.finished.set_value();
  };
  const auto sender = open_sender(std::move(settings));
  std::vector<std::thread> starters;
  for (std::size_t from = 0; from < 4; ++from) {
    starters.emplace_back([&, from] {
      for (std::size_t i = from; i < told.times.size(); i += 4) {
        EXPECT_TRUE(sender->start(post_to(receiver.url()), [&told, i](const SendReply& reply) {
          EXPECT_EQ(reply.status, 200);
          told.thread = std::this_thread::get_id();
          ++told.times[i];
          ++told.all;
        }));
      }
    });
  }
  for (std::thread& one : starters) one.join();
  told.finished.get_future().get();
  sender->stop(kPatient);
  EXPECT_THAT(told.times, ::testing::Each(1));
  EXPECT_EQ(told.handed_on, told.times.size());
  EXPECT_THAT(receiver.requests(), SizeIs(400));
  EXPECT_LE(receiver.connections(), 8U);
}

// Connections are opened and closed under numbers that others had before: none is overlooked.
TEST(SenderStart, SurvivesConnectionsThatComeAndGo) {
  Receiver closing([](Peer& peer, Receiver& self) {
    if (self.next(peer))
      peer.say("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
  });
  Receiver keeping(Receiver::answering(kOk));
  const auto sender = open_sender(on_loopback({.per_origin = 4}));
  for (int round = 0; round < 20; ++round) {
    std::vector<std::future<SendReply>> replies;
    for (int i = 0; i < 8; ++i) {
      replies.push_back(start(*sender, post_to(i % 2 == 0 ? closing.url() : keeping.url())));
    }
    for (auto& reply : replies) EXPECT_EQ(reply.get().status, 200);
  }
}

}  // namespace
}  // namespace hapax::webhook
