#include "resp/session.h"

#include <gtest/gtest.h>

#include "front/no_store_test.h"

namespace hapax::resp {
namespace {

// Turns end when the test says so.
class ByHand final : public net::Loop {
 public:
  void post(std::function<void()> act) override { act(); }
  void at_end_of_turn(std::function<void()> act) override { at_end_.push_back(std::move(act)); }
  void at(std::chrono::steady_clock::time_point, std::function<void()>) override {}
  [[nodiscard]] std::size_t number() const override { return 0; }

  void end_turn() {
    for (const auto& act : std::exchange(at_end_, {})) act();
  }

 private:
  std::vector<std::function<void()>> at_end_;
};

class Peer final : public net::Link {
 public:
  explicit Peer(net::Loop& loop) : loop_(loop) {}

  void send(std::string_view bytes) override { sent.emplace_back(bytes); }
  void finish() override { finished = true; }
  void set_deadline(std::chrono::steady_clock::time_point) override {}
  void clear_deadline() override {}
  void pause() override { paused = true; }
  void resume() override { paused = false; }
  [[nodiscard]] std::size_t unsent() const override { return 0; }
  [[nodiscard]] const std::string& peer() const override { return name_; }
  [[nodiscard]] bool encrypted() const override { return false; }
  [[nodiscard]] net::Loop& loop() override { return loop_; }

  std::vector<std::string> sent;
  bool finished = false;
  bool paused = false;

 private:
  net::Loop& loop_;
  std::string name_ = "peer";
};

// Commits wait until the test answers them, in any order.
class SlowStore final : public front::NoStore {
 public:
  void submit(const Commit& commit, Done done) override {
    waiting.push_back({commit.ops.size(), std::move(done)});
  }
  void answer(std::size_t which) {
    Answer answer{.committed = true};
    answer.verdicts.resize(waiting[which].ops, Held{.number = static_cast<std::int64_t>(which)});
    waiting[which].done(std::move(answer));
  }
  void fail(std::size_t which) { waiting[which].done(Error{Errc::kIo, "broken"}); }

  struct Waiting {
    std::size_t ops;
    Done done;
  };
  std::vector<Waiting> waiting;
};

class Open final : public front::Reception {
 public:
  Result<front::Admission> admit(std::string_view, std::string_view) override {
    return front::Admission{*anybody_};
  }
  bool holds(const front::Admission&) override { return true; }
  [[nodiscard]] const std::optional<front::Caller>& anybody() const override { return anybody_; }

 private:
  std::optional<front::Caller> anybody_ = front::Caller{"", "anybody", front::Rights::all()};
};

class SessionTest : public testing::Test {
 protected:
  void say(std::string_view lines) {
    EXPECT_EQ(session_->take(lines), lines.size());
    loop_.end_turn();
  }

  ByHand loop_;
  SlowStore store_;
  Open reception_;
  front::Desk desk_{store_, 1};
  Hall hall_{desk_, reception_, "1", {}};
  front::Gatherer gatherer_{desk_, loop_};
  Peer peer_{loop_};
  std::shared_ptr<Session> session_ = std::make_shared<Session>(peer_, hall_, gatherer_);
};

TEST_F(SessionTest, WhatIsToldAtOnceLeavesAtOnce) {
  say("INCR a\r\nINCR b\r\nINCR c\r\n");
  EXPECT_TRUE(peer_.sent.empty());
  store_.answer(0);
  EXPECT_EQ(peer_.sent, std::vector<std::string>{":0\r\n:0\r\n:0\r\n"});
}

TEST_F(SessionTest, AnAnswerThatOvertookOthersWaitsForItsTurn) {
  say("INCR a\r\n");
  say("PING\r\nINCR b\r\nPING\r\n");
  say("INCR c\r\n");
  store_.fail(2);
  store_.answer(1);
  EXPECT_TRUE(peer_.sent.empty());
  store_.answer(0);
  ASSERT_EQ(peer_.sent.size(), 1U);
  EXPECT_TRUE(peer_.sent[0].starts_with(":0\r\n+PONG\r\n:1\r\n+PONG\r\n-ERR")) << peer_.sent[0];
  say("PING\r\n");
  EXPECT_EQ(peer_.sent.back(), "+PONG\r\n");
}

TEST_F(SessionTest, ItClosesBehindTheLastAnswer) {
  say("INCR a\r\nINCR b\r\nPING\r\n");
  session_->half_closed();
  EXPECT_FALSE(peer_.finished);
  store_.answer(0);
  EXPECT_TRUE(peer_.finished);
  EXPECT_EQ(peer_.sent, std::vector<std::string>{":0\r\n:0\r\n+PONG\r\n"});
}

TEST_F(SessionTest, WhoAsksTooMuchIsHeardAgainWhenAllIsAnswered) {
  hall_.pending_max = 2;
  const std::string_view three = "INCR a\r\nINCR b\r\nINCR c\r\n";
  EXPECT_EQ(session_->take(three), 16U);
  loop_.end_turn();
  EXPECT_TRUE(peer_.paused);
  store_.answer(0);
  EXPECT_FALSE(peer_.paused);
}

TEST_F(SessionTest, NobodyIsToldWhenTheConnectionIsGone) {
  say("INCR a\r\n");
  session_->lost();
  store_.answer(0);
  EXPECT_TRUE(peer_.sent.empty());
}

}  // namespace
}  // namespace hapax::resp
