#include "resp/session.h"

#include <random>

#include <gtest/gtest.h>

#include "access/no_store_test.h"
#include "net/held_loop_test.h"

namespace hapax::resp {
namespace {

class Peer final : public net::Link {
 public:
  explicit Peer(net::Loop& loop) : loop_(loop) {}

  void send(std::string_view bytes) override { sent.emplace_back(bytes); }
  void finish() override { finished = true; }
  void set_deadline(std::chrono::steady_clock::time_point when) override { deadline = when; }
  void clear_deadline() override { deadline.reset(); }
  void pause() override { paused = true; }
  void resume() override { paused = false; }
  [[nodiscard]] std::size_t unsent() const override { return not_taken; }
  [[nodiscard]] const std::string& peer() const override { return name_; }
  [[nodiscard]] bool encrypted() const override { return false; }
  [[nodiscard]] net::Loop& loop() override { return loop_; }

  std::vector<std::string> sent;
  bool finished = false;
  bool paused = false;
  std::size_t not_taken = 0;
  std::optional<std::chrono::steady_clock::time_point> deadline;

 private:
  net::Loop& loop_;
  std::string name_ = "peer";
};

// Commits wait until the test answers them, in any order.
class SlowStore final : public access::NoStore {
 public:
  void submit(const Commit& commit, Done done) override {
    waiting.push_back({commit.ops.size(), std::move(done)});
  }
  void answer(std::size_t which) {
    answer(which, {waiting[which].ops, Held{.number = static_cast<std::int64_t>(which)}});
  }
  void answer(std::size_t which, std::vector<Verdict> verdicts) {
    waiting[which].done(Answer{.committed = true, .verdicts = std::move(verdicts)});
  }
  void fail(std::size_t which) { waiting[which].done(Error{Errc::kIo, "broken"}); }

  Result<Records> read(const ReadRange&) override { return Error{Errc::kUnavailable, "busy"}; }
  Result<std::optional<ClaimStatus>> find_claim(std::string_view, std::string_view key) override {
    reads.emplace_back(key);
    ClaimStatus found{.state = ClaimState::kCompleted, .fence = Fence{7}};
    found.result = StoredResult{200, "", "result of " + std::string(key)};
    return std::optional(std::move(found));
  }

  struct Waiting {
    std::size_t ops;
    Done done;
  };
  std::vector<Waiting> waiting;
  std::vector<std::string> reads;  // keys of claims; one is read at a time
};

class Open final : public access::Authenticator {
 public:
  Result<access::Admission> authenticate(std::string_view, std::string_view) override {
    if (refuses) return Error{Errc::kUnauthenticated, "unknown"};
    return access::Admission{*anybody_, Time::max(), edition_};
  }
  bool holds(const access::Admission& admission) override { return admission.edition == edition_; }
  [[nodiscard]] const std::optional<access::Caller>& anybody() const override {
    return closed ? nobody_ : anybody_;
  }
  void limit(const access::TenantLimits& limits) {
    anybody_->account = std::make_shared<access::Account>(limits);
  }
  // Whoever was admitted before is asked again.
  void change(access::Rights rights) {
    anybody_->rights = rights;
    ++edition_;
  }

  bool closed = false;
  bool refuses = false;

 private:
  std::uint64_t edition_ = 1;
  std::optional<access::Caller> nobody_;
  std::optional<access::Caller> anybody_ = access::Caller{{"", "anybody", access::Rights::all()}};
};

class SessionTest : public testing::Test {
 protected:
  void say(std::string_view lines) {
    EXPECT_EQ(session_->take(lines), lines.size());
    loop_.end_turn();
  }
  // What was answered to the last of these, each said by itself.
  std::string ask(std::initializer_list<std::string_view> lines) {
    for (const std::string_view line : lines) say(std::string(line) + "\r\n");
    return peer_.sent.empty() ? "" : peer_.sent.back();
  }
  void come_again() { session_ = std::make_shared<Session>(peer_, context_, gatherer_); }

  net::TurnByTurn loop_;
  SlowStore store_;
  Open authenticator_;
  access::Entry entry_{store_, 1};
  SessionContext context_{entry_, authenticator_, "1", {}};
  access::Gatherer gatherer_{entry_, loop_};
  Peer peer_{loop_};
  std::shared_ptr<Session> session_ = std::make_shared<Session>(peer_, context_, gatherer_);
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
  context_.pending_max = 2;
  const std::string_view three = "INCR a\r\nINCR b\r\nINCR c\r\n";
  EXPECT_EQ(session_->take(three), 16U);
  loop_.end_turn();
  EXPECT_TRUE(peer_.paused);
  store_.answer(0);
  EXPECT_FALSE(peer_.paused);
}

// --- what one connection may be owed

// How many of the lines are taken before it is paused.
std::size_t taken(Session& session, std::string_view line, std::size_t lines) {
  std::string all;
  for (std::size_t i = 0; i < lines; ++i) all += line;
  return session.take(all) / line.size();
}

TEST_F(SessionTest, OnlySoManyAnswersThatMayBeLargeArePromised) {
  EXPECT_EQ(taken(*session_, "GET a\r\n", 1'000), 256U);
  EXPECT_TRUE(peer_.paused);
  loop_.end_turn();
  store_.answer(0);
  EXPECT_FALSE(peer_.paused);
  EXPECT_EQ(taken(*session_, "HX.RECEIVE s c\r\n", 100), 16U);
  loop_.end_turn();
  store_.fail(1);
  EXPECT_FALSE(peer_.paused);
}

TEST_F(SessionTest, ThoseThatAreSmallAreTakenAsTheyCome) {
  EXPECT_EQ(taken(*session_, "SET a 1 NX\r\n", 5'000), 5'000U);
  EXPECT_FALSE(peer_.paused);
}

TEST_F(SessionTest, ClaimsArePromisedASmallResult) {
  EXPECT_EQ(taken(*session_, "HX.CLAIM s k\r\n", 10'000), 4'096U);
  EXPECT_TRUE(peer_.paused);
}

TEST_F(SessionTest, LargeAnswersAreReadOneByOneAsTheyAreTaken) {
  const DuplicateClaim large{.fence = Fence{7}, .left_out = true};
  say("HX.CLAIM s a\r\nINCR b\r\nHX.CLAIM s c\r\nINCR d\r\n");
  store_.answer(0, {large, Held{.number = 1}, large, Held{.number = 2}});
  EXPECT_TRUE(peer_.sent.empty());
  peer_.not_taken = context_.unsent_max;
  loop_.run_posted();
  ASSERT_EQ(peer_.sent.size(), 1U);
  EXPECT_NE(peer_.sent[0].find("result of a"), std::string::npos) << peer_.sent[0];
  EXPECT_TRUE(peer_.sent[0].ends_with("\r\n:1\r\n")) << peer_.sent[0];
  session_->sent();
  EXPECT_EQ(store_.reads, std::vector<std::string>{"a"});
  peer_.not_taken = 0;
  session_->sent();
  loop_.run_posted();
  ASSERT_EQ(peer_.sent.size(), 2U);
  EXPECT_NE(peer_.sent[1].find("result of c"), std::string::npos) << peer_.sent[1];
  EXPECT_TRUE(peer_.sent[1].ends_with("\r\n:2\r\n")) << peer_.sent[1];
  EXPECT_EQ(store_.reads, (std::vector<std::string>{"a", "c"}));
}

// The record was handed out: who is not told so would not look.
TEST_F(SessionTest, WhatWasDoneAndCannotBeReadIsOfUnknownOutcome) {
  say("HX.RECEIVE s c\r\nINCR b\r\n");
  store_.answer(0, {Received{.deliveries = {{}}, .left_out = true}, Held{.number = 1}});
  loop_.run_posted();
  ASSERT_EQ(peer_.sent.size(), 1U);
  EXPECT_TRUE(peer_.sent[0].starts_with("-ERR HX1011")) << peer_.sent[0];
  EXPECT_TRUE(peer_.sent[0].ends_with("\r\n:1\r\n")) << peer_.sent[0];
}

TEST_F(SessionTest, WhoDoesNotTakeItsAnswersIsHeardAgainWhenItHas) {
  const std::string echo = "ECHO " + std::string(60'000, 'x') + "\r\n";
  EXPECT_EQ(taken(*session_, echo, 100), 70U);
  EXPECT_FALSE(peer_.paused);  // They have left; the link below says that they have not.
  peer_.not_taken = context_.unsent_max;
  EXPECT_EQ(taken(*session_, "PING\r\n", 1), 0U);
  EXPECT_TRUE(peer_.paused);
  peer_.not_taken = 0;
  session_->sent();
  EXPECT_FALSE(peer_.paused);
}

// --- MULTI

TEST_F(SessionTest, CommandsThatAreNoOperationsWaitForExecToo) {
  EXPECT_EQ(ask({"MULTI", "PING"}), "+QUEUED\r\n");
  EXPECT_EQ(ask({"INCR a", "ECHO hi", "SELECT 9", "CLIENT SETNAME me"}), "+QUEUED\r\n");
  EXPECT_EQ(ask({"EXEC"}), "+QUEUED\r\n");  // The store has not answered.
  store_.answer(0);
  EXPECT_EQ(peer_.sent.back(),
            "*5\r\n+PONG\r\n:0\r\n$2\r\nhi\r\n"
            "-ERR DB index is out of range: there is only 0\r\n+OK\r\n");
  EXPECT_EQ(ask({"CLIENT GETNAME"}), "$2\r\nme\r\n");
  EXPECT_EQ(ask({"MULTI", "PING", "EXEC"}), "*1\r\n+PONG\r\n");
  EXPECT_EQ(ask({"MULTI", "CLIENT SETNAME other", "DISCARD", "CLIENT GETNAME"}), "$2\r\nme\r\n");
}

TEST_F(SessionTest, WhatMakesNoSenseInsideMultiIsAnError) {
  EXPECT_EQ(ask({"MULTI", "HELLO 3"}), "-ERR Command not allowed inside a transaction\r\n");
  EXPECT_TRUE(ask({"EXEC"}).starts_with("-EXECABORT"));
  EXPECT_TRUE(ask({"MULTI", "PING a b"}).starts_with("+QUEUED"));
  EXPECT_TRUE(ask({"ECHO"}).starts_with("-ERR wrong number"));
  EXPECT_TRUE(ask({"EXEC"}).starts_with("-EXECABORT"));
  EXPECT_TRUE(ask({"MULTI", "PING", "HX.COMMIT ID a"}).starts_with("-ERR with HX.COMMIT"));
  EXPECT_TRUE(ask({"DISCARD", "MULTI", "HX.COMMIT ID a", "PING"}).starts_with("-ERR behind"));
}

TEST_F(SessionTest, AsMuchIsQueuedAsMakesOneCommit) {
  ask({"MULTI"});
  const std::string set = "SET a " + std::string(60'000, 'x');
  const std::size_t fit = limits::kCommitBytesMax / (set.size() + 2 - 600);
  for (std::size_t i = 0; i < fit; ++i) ASSERT_EQ(ask({set}), "+QUEUED\r\n") << i;
  EXPECT_TRUE(ask({set}).starts_with("-ERR HX1002"));
  EXPECT_EQ(ask({set}), "+QUEUED\r\n");
  EXPECT_TRUE(ask({"EXEC"}).starts_with("-EXECABORT"));
  EXPECT_TRUE(store_.waiting.empty());
}

TEST_F(SessionTest, AsManyAreQueuedAsMakeOneCommit) {
  say("MULTI\r\n");
  std::string thousand;
  for (int i = 0; i < 1'000; ++i) thousand += i % 2 == 0 ? "PING\r\n" : "GET a\r\n";
  for (std::size_t i = 0; i < limits::kCommitOpsMax / 1'000; ++i) say(thousand);
  EXPECT_TRUE(ask({"PING"}).starts_with("-ERR HX1002"));
  EXPECT_TRUE(ask({"EXEC"}).starts_with("-EXECABORT"));
}

// Not with EXEC, or a list that is never carried out would cost nothing.
TEST_F(SessionTest, WhatIsQueuedIsChargedToTheRate) {
  authenticator_.limit({.rate = 1, .burst = 4});
  come_again();
  EXPECT_EQ(ask({"MULTI", "SET a 1", "PING", "GET a"}), "+QUEUED\r\n");
  std::string told = ask({"GET a"});
  for (int i = 0; i < 100 && told == "+QUEUED\r\n"; ++i) told = ask({"GET a"});  // Seconds passed.
  EXPECT_TRUE(told.starts_with("-ERR HX1015")) << told;
  EXPECT_TRUE(ask({"EXEC"}).starts_with("-EXECABORT"));
}

std::string del_of(int names) {
  std::string command = "DEL";
  for (int i = 0; i < names; ++i) command += " n" + std::to_string(i);
  return command;
}

TEST_F(SessionTest, EveryNameOfAQueuedCommandIsChargedWhenItIsQueued) {
  authenticator_.limit({.rate = 1, .burst = 50});
  come_again();
  EXPECT_EQ(ask({"MULTI", del_of(1'000)}), "+QUEUED\r\n");
  EXPECT_EQ(ask({"DISCARD"}), "+OK\r\n");
  EXPECT_TRUE(ask({"PING"}).starts_with("-ERR HX1015"));
}

TEST_F(SessionTest, WhatIsCarriedOutIsChargedOnce) {
  authenticator_.limit({.rate = 1, .burst = 50});
  come_again();
  EXPECT_EQ(ask({"MULTI", del_of(30)}), "+QUEUED\r\n");
  ask({"EXEC"});
  store_.answer(0);
  EXPECT_EQ(ask({"PING"}), "+PONG\r\n");
}

// A5
TEST_F(SessionTest, WhatIsQueuedIsCarriedOutForTheCallerWhoSaidItOrNotAtAll) {
  authenticator_.closed = true;
  come_again();
  ask({"AUTH token", "MULTI", "SET a 1"});
  authenticator_.change(access::Rights::all());
  EXPECT_EQ(ask({"SET b 1"}), "+QUEUED\r\n");
  authenticator_.change({});
  EXPECT_TRUE(ask({"EXEC"}).starts_with("-EXECABORT"));
  authenticator_.change(access::Rights::all());
  EXPECT_EQ(ask({"MULTI", "SET a 1"}), "+QUEUED\r\n");
  authenticator_.refuses = true;
  authenticator_.change(access::Rights::all());
  EXPECT_TRUE(ask({"EXEC"}).starts_with("-NOAUTH"));
  authenticator_.refuses = false;
  EXPECT_EQ(ask({"AUTH token", "EXEC"}), "-ERR EXEC without MULTI\r\n");
  EXPECT_TRUE(store_.waiting.empty());
}

// --- who is slow

using std::chrono::steady_clock;

TEST_F(SessionTest, ACommandThatHasBegunHasItsTime) {
  EXPECT_FALSE(peer_.deadline);
  EXPECT_EQ(session_->take("*2\r\n$3\r\nGET"), 0U);
  ASSERT_TRUE(peer_.deadline);
  EXPECT_GT(*peer_.deadline, steady_clock::now() + context_.command_time / 2);
  const auto first = *peer_.deadline;
  EXPECT_EQ(session_->take("*2\r\n$3\r\nGET\r"), 0U);
  EXPECT_EQ(*peer_.deadline, first);  // Byte by byte takes no longer.
  say("*2\r\n$3\r\nGET\r\n$1\r\na\r\n");
  EXPECT_FALSE(peer_.deadline);
  // While the store is waited for, nobody is late.
  EXPECT_EQ(session_->take("*2\r\n"), 0U);
  EXPECT_FALSE(peer_.deadline);
  store_.answer(0);
  EXPECT_TRUE(peer_.deadline);
}

TEST_F(SessionTest, WhoIsLateIsToldAndLetGo) {
  EXPECT_EQ(session_->take("*2\r\n$3\r\nGET"), 0U);
  session_->late();
  EXPECT_TRUE(peer_.finished);
  EXPECT_TRUE(peer_.sent.back().starts_with("-ERR Protocol error")) << peer_.sent.back();
}

TEST_F(SessionTest, WhoSaysNothingMayStayUnlessThereIsATimeForThat) {
  EXPECT_EQ(ask({"PING"}), "+PONG\r\n");
  EXPECT_FALSE(peer_.deadline);
  context_.idle_time = std::chrono::hours{1};
  EXPECT_EQ(ask({"PING"}), "+PONG\r\n");
  ASSERT_TRUE(peer_.deadline);
  EXPECT_GT(*peer_.deadline, steady_clock::now() + context_.idle_time / 2);
  EXPECT_EQ(session_->take("*2\r\n"), 0U);  // The time of a command is another.
  EXPECT_LT(*peer_.deadline, steady_clock::now() + context_.idle_time / 2);
  session_->late();
  EXPECT_TRUE(peer_.finished);
}

// A10: of somebody who has still to sign in no more is taken than that needs.
TEST_F(SessionTest, WhoHasStillToSignInIsGivenLittleRoomAndTime) {
  authenticator_.closed = true;
  come_again();
  EXPECT_TRUE(peer_.deadline);
  EXPECT_TRUE(ask({"GET a"}).starts_with("-NOAUTH"));
  EXPECT_EQ(ask({"AUTH token"}), "+OK\r\n");
  EXPECT_FALSE(peer_.deadline);
  EXPECT_EQ(session_->take("*11\r\n"), 0U);
  come_again();
  say("*11\r\n");
  EXPECT_EQ(peer_.sent.back(), "-ERR Protocol error: unauthenticated multibulk length\r\n");
  come_again();
  say("*2\r\n$4\r\nAUTH\r\n$16385\r\n");
  EXPECT_EQ(peer_.sent.back(), "-ERR Protocol error: unauthenticated bulk length\r\n");
}

// --- small things

TEST_F(SessionTest, ANameOfAClientIsOneWord) {
  EXPECT_EQ(ask({"CLIENT GETNAME"}), "$-1\r\n");
  const std::string refusal =
      "-ERR Client names cannot contain spaces, newlines or special characters.\r\n";
  EXPECT_EQ(ask({"CLIENT SETNAME \"a b\""}), refusal);
  EXPECT_EQ(ask({"HELLO 2 SETNAME \"a\\nb\""}), refusal);
  EXPECT_EQ(ask({"CLIENT GETNAME"}), "$-1\r\n");
  EXPECT_TRUE(ask({"CLIENT SETNAME a b"}).starts_with("-ERR wrong number of arguments"));
}

TEST_F(SessionTest, CommandInfoTellsHowManyArgumentsThereAreAtLeast) {
  EXPECT_TRUE(ask({"COMMAND INFO HX.APPEND"}).starts_with("*1\r\n*6\r\n$9\r\nhx.append\r\n:-3"));
  EXPECT_TRUE(ask({"COMMAND INFO nosuch PING"}).starts_with("*2\r\n$-1\r\n*6\r\n"));
}

TEST_F(SessionTest, CommandListIsFilteredByAPatternOnly) {
  EXPECT_EQ(ask({"COMMAND LIST FILTERBY PATTERN Hx.App*"}), "*1\r\n$9\r\nhx.append\r\n");
  EXPECT_EQ(ask({"COMMAND LIST FILTERBY PATTERN nosuch"}), "*0\r\n");
  for (const char* other : {"FILTERBY MODULE hapax", "FILTERBY PATTERN", "x"}) {
    EXPECT_TRUE(ask({"COMMAND LIST " + std::string(other)}).starts_with("-ERR COMMAND LIST knows"));
  }
}

// A ClientHello whose session ticket is chosen by the server that the client believes to be here.
std::string client_hello(std::mt19937& random, std::string_view ticket) {
  const auto two = [](std::size_t number) {
    return std::string{static_cast<char>(number >> 8), static_cast<char>(number)};
  };
  const auto some = [&](std::size_t size) {
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    return bytes;
  };
  std::string body = "\x03\x03" + some(32) + '\x20' + some(32);  // version, random, session
  body += two(4) + "\x13\x01\xc0\x2f" + '\x01' + '\0';           // suites, compression
  const std::string extension = two(35) + two(ticket.size()) + std::string(ticket);
  body += two(extension.size()) + extension;
  const std::string handshake = '\x01' + std::string(1, '\0') + two(body.size()) + body;
  return "\x16\x03\x01" + two(handshake.size()) + handshake;
}

// A9: whatever the rest of a hello happens to be, a line within it is no command.
TEST_F(SessionTest, NoBytesOfATlsHelloAreCarriedOut) {
  std::mt19937 random(7);
  for (int i = 0; i < 30; ++i) {
    const std::string hello = client_hello(random, "\r\nSET x 1\r\nSET x 2\r\n");
    for (const std::size_t pieces : {std::size_t{1}, hello.size()}) {
      come_again();
      peer_.finished = false;
      for (std::size_t at = 0; at < hello.size() && !peer_.finished; at += hello.size() / pieces) {
        say(hello.substr(at, hello.size() / pieces));
      }
      EXPECT_TRUE(peer_.finished);
      EXPECT_EQ(peer_.sent.back(), "-ERR Protocol error: TLS is not spoken at this port\r\n");
    }
  }
  EXPECT_TRUE(store_.waiting.empty());
}

TEST_F(SessionTest, ALineOfAnHttpHeaderEndsTheConnection) {
  for (const std::string_view line : {"POST / HTTP/1.1", "Host: evil", "host:evil"}) {
    come_again();
    peer_.finished = false;
    say(std::string(line) + "\r\nINCR x\r\n");
    EXPECT_TRUE(peer_.finished) << line;
  }
  EXPECT_TRUE(store_.waiting.empty());
}

TEST_F(SessionTest, AnUnknownCommandIsToldTheNearestName) {
  EXPECT_EQ(ask({"GTE x"}), "-ERR unknown command 'GTE'; did you mean 'GET'?\r\n");
  EXPECT_EQ(ask({"HX.APEND s"}), "-ERR unknown command 'HX.APEND'; did you mean 'HX.APPEND'?\r\n");
  EXPECT_EQ(ask({"ZUNIONSTORE a"}),
            "-ERR unknown command 'ZUNIONSTORE'; COMMAND LIST names those there are\r\n");
}

TEST_F(SessionTest, NobodyIsToldWhenTheConnectionIsGone) {
  say("INCR a\r\n");
  session_->lost();
  store_.answer(0);
  EXPECT_TRUE(peer_.sent.empty());
}

}  // namespace
}  // namespace hapax::resp
