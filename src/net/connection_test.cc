// Connection over a carrier that does what the test says.
#include "net/connection.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace hapax::net {
namespace {

using std::chrono::seconds;

// Keeps what it is told.
struct Told {
  std::string taken;
  int asked = 0;  // times that it was offered bytes
  int half_closed = 0;
  int sent = 0;
  int late = 0;
  int drained = 0;
  int lost = 0;
};

class TellingSession final : public Session {
 public:
  explicit TellingSession(Told& told) : told_(told) {}

  // Leaves the last byte, as a session does that waits for the rest of a message.
  std::size_t take(std::string_view bytes) override {
    ++told_.asked;
    const std::size_t count = bytes.empty() ? 0 : bytes.size() - 1;
    told_.taken += bytes.substr(0, count);
    return count;
  }
  void half_closed() override { ++told_.half_closed; }
  void sent() override { ++told_.sent; }
  void late() override { ++told_.late; }
  void drain() override { ++told_.drained; }
  void lost() override { ++told_.lost; }

 private:
  Told& told_;
};

class ManualConnection final : public Connection {
 public:
  using Connection::arrived;
  using Connection::Connection;
  using Connection::ended;
  using Connection::left;
  using Connection::open;
  using Connection::out;
  using Connection::wants_bytes;

  void start() override {}
  [[nodiscard]] bool encrypted() const override { return false; }

  void receive(std::string_view bytes) {
    EXPECT_TRUE(wants_bytes());
    const std::span<char> space = lend_space();
    ASSERT_LE(bytes.size(), space.size());
    space_lent = space.size();
    std::ranges::copy(bytes, space.begin());
    arrived(bytes.size());
  }
  // The peer takes all that was written.
  void pass_all() {
    wire += under_way_;
    out().carrier_is_ready();
    left(under_way_.size());
    flush();
  }

  std::string wire;
  std::size_t space_lent = 0;  // for the last read
  int writes = 0;
  bool sending_ended = false;
  bool is_closed = false;

 private:
  void ask_for_bytes() override {}
  void write() override {
    ++writes;
    out().carrier_begins();
    under_way_ = out().front();
  }
  void end_sending() override { sending_ended = true; }
  void close() override { is_closed = true; }

  std::string_view under_way_;
};

class ConnectionTest : public testing::Test {
 protected:
  void end_turn() { loop_.context().poll(); }
  static SteadyTime later(seconds span) { return std::chrono::steady_clock::now() + span; }

  Told told_;
  MakeSession make_session_ = [this](Link&) -> std::shared_ptr<Session> {
    return std::make_shared<TellingSession>(told_);
  };
  TrafficCounters counters_;
  AsioLoop loop_{0, false, ServerLimits{.unsent_max = 10}, counters_};
  std::shared_ptr<ManualConnection> connection_ =
      std::make_shared<ManualConnection>(loop_, make_session_, "peer");
};

TEST_F(ConnectionTest, WhatATurnSendsLeavesTogether) {
  connection_->open();
  connection_->send("one ");
  connection_->send("two");
  EXPECT_EQ(connection_->writes, 0);
  end_turn();
  EXPECT_EQ(connection_->writes, 1);
  connection_->send(" three");
  end_turn();
  EXPECT_EQ(connection_->writes, 1);  // One write is under way.
  connection_->pass_all();
  EXPECT_EQ(told_.sent, 0);
  connection_->pass_all();
  EXPECT_EQ(connection_->wire, "one two three");
  EXPECT_EQ(told_.sent, 1);
  EXPECT_EQ(counters_.bytes_out, 13U);
}

TEST_F(ConnectionTest, NothingIsReadWhileTooMuchIsUnsent) {
  connection_->open();
  connection_->send(std::string(10, 'x'));
  EXPECT_TRUE(connection_->wants_bytes());
  connection_->send("x");
  EXPECT_FALSE(connection_->wants_bytes());
  end_turn();
  connection_->pass_all();
  EXPECT_TRUE(connection_->wants_bytes());
}

TEST_F(ConnectionTest, WhatWasReadBeforeAPauseIsOfferedAtTheEndOfTheTurn) {
  connection_->open();
  connection_->receive("ab");
  connection_->pause();
  EXPECT_FALSE(connection_->wants_bytes());
  connection_->resume();
  EXPECT_FALSE(connection_->wants_bytes());
  EXPECT_EQ(told_.asked, 1);
  end_turn();
  EXPECT_EQ(told_.asked, 2);
  connection_->receive("c");
  EXPECT_EQ(told_.taken, "ab");
}

TEST_F(ConnectionTest, ASessionThatFinishedIsOfferedNothingAndSendsNothing) {
  connection_->open();
  connection_->send("bye");
  connection_->finish();
  connection_->send("more");
  EXPECT_FALSE(connection_->wants_bytes());
  end_turn();
  EXPECT_FALSE(connection_->sending_ended);
  connection_->pass_all();
  EXPECT_EQ(connection_->wire, "bye");
  EXPECT_TRUE(connection_->sending_ended);
  EXPECT_EQ(told_.lost, 1);
  EXPECT_EQ(told_.sent, 0);
}

// Otherwise the last answer would be lost with the reset.
TEST_F(ConnectionTest, WhatComesAfterTheLastAnswerIsThrownAwayForAWhile) {
  connection_->open();
  connection_->finish();
  end_turn();
  const std::string ignored(ReceiveBuffer::kReadBytes, 'x');
  for (int i = 0; i < 100; ++i) connection_->receive(ignored);
  EXPECT_LE(connection_->space_lent, ReceiveBuffer::kReadBytesMax);
  EXPECT_EQ(told_.asked, 0);
  connection_->check_deadline(later(seconds{0}));
  EXPECT_FALSE(connection_->is_closed);
  connection_->check_deadline(later(seconds{3}));
  EXPECT_TRUE(connection_->is_closed);
  EXPECT_EQ(told_.late, 0);
  EXPECT_EQ(told_.lost, 1);
}

TEST_F(ConnectionTest, ASessionThatIsLateAndSaysNothingIsCutOff) {
  connection_->open();
  connection_->set_deadline(later(seconds{5}));
  connection_->check_deadline(later(seconds{0}));
  EXPECT_EQ(told_.late, 0);
  connection_->check_deadline(later(seconds{6}));
  EXPECT_EQ(told_.late, 1);
  EXPECT_EQ(told_.lost, 1);
  EXPECT_TRUE(connection_->is_closed);
}

TEST_F(ConnectionTest, OnceItFinishesASessionSetsNoDeadline) {
  connection_->open();
  connection_->send("bye");
  connection_->set_deadline(later(seconds{1}));
  connection_->finish();
  connection_->set_deadline(later(seconds{1}));
  connection_->check_deadline(later(seconds{2}));
  EXPECT_EQ(told_.late, 0);
  EXPECT_FALSE(connection_->is_closed);
}

TEST_F(ConnectionTest, ThePeersEndIsToldAndTheWayBackStaysOpen) {
  connection_->open();
  connection_->ended();
  EXPECT_EQ(told_.half_closed, 1);
  EXPECT_FALSE(connection_->wants_bytes());
  connection_->send("answer");
  end_turn();
  EXPECT_EQ(connection_->writes, 1);
}

TEST_F(ConnectionTest, ACutIsToldOnce) {
  connection_->open();
  connection_->cut();
  connection_->cut();
  connection_->ended();
  connection_->drain();
  EXPECT_EQ(told_.lost, 1);
  EXPECT_EQ(told_.half_closed, 0);
  EXPECT_EQ(told_.drained, 0);
}

// The success of a handshake is told after the loop has cut the connection.
TEST_F(ConnectionTest, AConnectionThatIsClosedBeforeItOpensHasNoSession) {
  bool made = false;
  make_session_ = [&](Link&) -> std::shared_ptr<Session> {
    made = true;
    return std::make_shared<TellingSession>(told_);
  };
  connection_->cut();
  connection_->open();
  EXPECT_FALSE(made);
}

}  // namespace
}  // namespace hapax::net
