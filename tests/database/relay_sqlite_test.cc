// Relays over an SQLite file.
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/temporary_folder_test.h"
#include "relay_rig.h"
#include "sqlite/migrate.h"
#include "sqlite/outbox_source.h"

namespace hapax::sqlite {
namespace {

using testing_relay::Ids;
using testing_relay::Killer;
using testing_relay::Receiver;

struct Relay : testing_relay::Relay {
  Relay(const std::string& path, relay::Sink& sink, const std::string& owner,
        delivery::RelaySettings settings = {})
      : testing_relay::Relay(open(path, owner), sink, settings) {}
  static Result<std::unique_ptr<relay::Source>> open(const std::string& path,
                                                     const std::string& owner) {
    HAPAX_TRY(auto source, OutboxSource::open({.path = path, .owner = owner}));
    return std::unique_ptr<relay::Source>(std::move(source));
  }
};

class SqliteRelay : public testing::Test {
 protected:
  SqliteRelay() {
    app = std::make_unique<Connection>(*Connection::open(path));
    EXPECT_TRUE(migrate(*app, {}).has_value());
    run(*app, "PRAGMA synchronous = OFF");  // Power stays on here.
  }

  static void run(Connection& connection, const std::string& sql) {
    const auto done = connection.run(sql);
    ASSERT_TRUE(done.has_value()) << sql << ": " << done.error().text();
  }
  static std::string publish(const std::string& id, const std::string& key = {}) {
    return "INSERT INTO hapax_outbox (id, type, key, payload) VALUES ('" + id + "', 't', " +
           (key.empty() ? "NULL" : "'" + key + "'") + ", '" + id + "')";
  }
  std::int64_t number(const std::string& sql) { return app->ask(sql, {})->at(0)[kOnly].number; }

  const host::TemporaryFolder folder;
  const std::string path = folder.text() + "/app.db";
  std::unique_ptr<Connection> app;
  Receiver receiver;
};

// One row that nobody can send does not hold up the others, however it came to be there.
TEST_F(SqliteRelay, ARowWithUnusableHeadersIsADeadLetter) {
  const auto row = [](const std::string& id, const std::string& headers) {
    return "INSERT INTO hapax_outbox (id, type, key, payload, headers) VALUES ('" + id +
           "', 't', 'k', x'00', '" + headers + "')";
  };
  const char* const bad[] = {"[\"trace\"]",    "{\"trace\":\"7\"}",     "[1]", "[[\"x\"]]",
                             "[[\"a\",null]]", "[[\"a\",\"b\",\"c\"]]", "7",   "no JSON"};
  for (const char* each : bad) EXPECT_FALSE(app->run(row("refused", each)).has_value()) << each;
  run(*app, "DROP TRIGGER hapax_outbox_headers; PRAGMA ignore_check_constraints = ON");
  int made = 0;
  for (const char* each : bad) run(*app, row("bad" + std::to_string(made++), each));
  run(*app, publish("good", "k"));
  Relay relay(path, receiver, "a");
  relay.drain();
  EXPECT_EQ(receiver.sent, Ids{"good"});
  EXPECT_EQ(number("SELECT count(*) FROM hapax_outbox_dead WHERE attempts = 1 AND reason = "
                   "'its headers are not an array of pairs of strings'"),
            8);
  run(*app, "UPDATE hapax_outbox_dead SET headers = '[]' WHERE id = 'bad3'");
  EXPECT_GE(relay.source->redrive({})->count, 1U);
  relay.drain();
  EXPECT_EQ(receiver.sent, (Ids{"good", "bad3"}));
}

// All of them or those that are named: one that is refused is told, and keeps back no other.
TEST_F(SqliteRelay, ALetterThatIsRefusedKeepsBackNoOther) {
  const std::string endless(256, 'x');
  for (const std::string& id : {std::string("a"), endless, std::string("b")}) {
    run(*app,
        "INSERT INTO hapax_outbox_dead (id, type, payload, created_at, attempts, reason) "
        "VALUES ('" +
            id + "', 't', 'x', 0, 2, 'no')");
  }
  Relay relay(path, receiver, "r");
  const auto told = relay.source->redrive({});
  ASSERT_TRUE(told) << told.error().text();
  EXPECT_EQ(told->count, 2U);
  ASSERT_EQ(told->refused.size(), 1U);
  EXPECT_EQ(told->refused.front().id, endless);
  EXPECT_NE(told->refused.front().reason.find("CHECK"), std::string::npos);
  relay.drain();
  EXPECT_EQ(receiver.sent, (Ids{"a", "b"}));
  const Ids named{endless};
  EXPECT_EQ(relay.source->redrive(named)->refused.size(), 1U);
}

TEST_F(SqliteRelay, TakesNoMoreThanItsMemoryIsMeantFor) {
  for (int i = 0; i < 12; ++i) {
    const std::string id = std::to_string(i);
    run(*app, "INSERT INTO hapax_outbox (id, type, payload) VALUES ('" + id +
                  "', 't', zeroblob(8388608))");
    receiver.refused.insert(id);
  }
  const delivery::RelaySettings quick{.retry_first = Duration{1}, .retry_max = Duration{1}};
  Relay relay(path, receiver, "a", quick);
  EXPECT_EQ(relay.round().taken, 4U);
  while (number("SELECT count(*) FROM hapax_outbox_retry") < 12) relay.round();
  ASSERT_TRUE(relay.engine.stop().has_value());
  receiver.refused.clear();
  EXPECT_LE(most_taken_until(relay, receiver, 12), 4U);
}

TEST_F(SqliteRelay, APayloadIsBytesOrTextAndArrivesAsItIs) {
  EXPECT_FALSE(app->run("INSERT INTO hapax_outbox (id, type, payload) VALUES ('n', 't', 42)"));
  run(*app, "PRAGMA ignore_check_constraints = ON");
  run(*app, "INSERT INTO hapax_outbox (id, type, payload) VALUES ('n', 't', 42)");
  run(*app, "INSERT INTO hapax_outbox (id, type, payload) VALUES ('x', 't', 'ü')");
  Relay relay(path, receiver, "a");
  relay.drain();
  EXPECT_EQ(receiver.records_by_id.at("n").payload, "42");
  EXPECT_EQ(receiver.records_by_id.at("x").payload, "ü");
}

TEST_F(SqliteRelay, CarriesEverythingOfAnEvent) {
  run(*app,
      "INSERT INTO hapax_outbox (id, type, key, payload, headers, correlation_id, "
      "causation_id) VALUES ('id-1', 'order.paid', 'k', x'00ff', "
      "'[[\"a\", \"1\"], [\"b:2\", \"ü\"]]', 'corr', 'cause')");
  Relay relay(path, receiver, "a");
  relay.drain();
  ASSERT_EQ(receiver.sent, Ids{"id-1"});
  const relay::Outgoing& record = receiver.records_by_id.at("id-1");
  EXPECT_EQ(record.payload, std::string("\0\xff", 2));
  EXPECT_EQ(record.key, "k");
  EXPECT_EQ(record.correlation_id, "corr");
  EXPECT_EQ(record.causation_id, "cause");
  using Headers = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(record.headers, (Headers{{"a", "1"}, {"b:2", "ü"}}));
}

// Y1, Y4: in the tables, not only in memory.
TEST_F(SqliteRelay, ARefusedRecordHoldsUpItsKeyAndDiesWithItsReason) {
  receiver.refused = {"a1"};
  for (const char* id : {"a1", "a2", "a3"}) run(*app, publish(id, "a"));
  run(*app, publish("b1", "b"));
  const delivery::RelaySettings quick{.attempts_max = 2, .retry_first = Duration{300}};
  Relay relay(path, receiver, "a", quick);
  relay.round();  // a1, which is refused
  relay.round();
  run(*app, publish("a4", "a"));
  ASSERT_TRUE(relay.engine.stop().has_value());
  EXPECT_EQ(receiver.sent, Ids{"b1"});
  EXPECT_EQ(number("SELECT count(*) FROM hapax_outbox_retry"), 3);
  EXPECT_EQ(number("SELECT count(next_at) FROM hapax_outbox_retry"), 1);

  Relay successor(path, receiver, "b", quick);
  while (receiver.sent.size() < 4) {
    successor.drain();
    ::poll(nullptr, 0, 1);
  }
  successor.drain();
  EXPECT_EQ(receiver.sent, (Ids{"b1", "a2", "a3", "a4"}));
  EXPECT_EQ(number("SELECT attempts FROM hapax_outbox_dead WHERE id = 'a1' AND key = 'a' "
                   "AND reason LIKE 'no \"thanks\"%'"),
            2);
  EXPECT_EQ(number("SELECT count(*) FROM hapax_outbox_retry"), 0);

  expect_redrive_of_a1(successor, receiver);
}

// A key behind a record that somebody deleted goes on, and no dead letter tells of what is gone.
TEST_F(SqliteRelay, ARetryWhoseRowIsGoneHoldsUpNobody) {
  receiver.refused = {"a1", "n1"};
  for (const char* id : {"a1", "a2", "a3", "a4"}) run(*app, publish(id, "a"));
  run(*app, publish("n1"));
  Relay relay(path, receiver, "a");
  relay.drain();
  EXPECT_EQ(number("SELECT count(*) FROM hapax_outbox_retry"), 5);
  run(*app, "DELETE FROM hapax_outbox WHERE id IN ('a1', 'a3', 'n1')");
  run(*app, "UPDATE hapax_outbox_retry SET next_at = 0 WHERE next_at IS NOT NULL");
  relay.drain();
  run(*app, publish("a5", "a"));
  relay.drain();
  EXPECT_EQ(receiver.sent, (Ids{"a2", "a4", "a5"}));
  EXPECT_EQ(number("SELECT count(*) FROM hapax_outbox_retry"), 0);
  EXPECT_EQ(number("SELECT count(*) FROM hapax_outbox_dead"), 0);
  EXPECT_EQ(relay.engine.counts().dead, 3U);
}

// What becomes of one behind it does not shorten the time that a refused record waits.
TEST_F(SqliteRelay, ARefusedRecordKeepsItsTimeWhenOneBehindItIsGone) {
  receiver.refused = {"a1"};
  for (const char* id : {"a1", "a2", "a3", "a4"}) run(*app, publish(id, "a"));
  Relay relay(path, receiver, "a", {.retry_first = Duration{1'000'000}});
  relay.drain();
  receiver.refused = {"a2"};
  run(*app, "DELETE FROM hapax_outbox WHERE id = 'a3'");
  run(*app, "UPDATE hapax_outbox_retry SET next_at = 0 WHERE next_at IS NOT NULL");
  relay.drain();
  EXPECT_EQ(receiver.sent, Ids{"a1"});
  EXPECT_EQ(number("SELECT attempts FROM hapax_outbox_retry ORDER BY n LIMIT 1"), 1);
  EXPECT_EQ(number("SELECT count(*) FROM hapax_outbox_retry WHERE next_at IS NULL"), 1);
}

// Y1: what was only held behind one record goes on in batches.
TEST_F(SqliteRelay, AKeyCatchesUpAfterARefusal) {
  constexpr int kRecords = 3'000;
  Ids expected;
  run(*app, "BEGIN");
  for (int i = 0; i < kRecords; ++i) {
    expected.push_back(std::to_string(i));
    run(*app, publish(expected.back(), "hot"));
  }
  run(*app, "COMMIT");
  receiver.refused = {"0", "1700"};
  Relay relay(path, receiver, "a");
  relay.drain();
  EXPECT_TRUE(receiver.sent.empty());
  EXPECT_EQ(number("SELECT count(*) FROM hapax_outbox_retry WHERE attempts = 0"), kRecords - 1);
  receiver.refused = {"1700"};
  int rounds = 0;
  for (; receiver.sent.size() < kRecords && rounds < 50; ++rounds) {
    run(*app, "UPDATE hapax_outbox_retry SET next_at = 0 WHERE next_at IS NOT NULL");
    if (relay.round().idle_for > Duration{0}) receiver.refused.clear();
    // One of the key has its turn, and it is the first.
    EXPECT_LE(number("SELECT count(next_at) FROM hapax_outbox_retry"), 1);
    EXPECT_EQ(number("SELECT count(*) FROM hapax_outbox_retry AS r WHERE next_at IS NOT NULL "
                     "AND n > (SELECT min(n) FROM hapax_outbox_retry)"),
              0);
  }
  EXPECT_EQ(receiver.sent, expected);
  EXPECT_LE(rounds, 20);
  relay.drain();
  EXPECT_EQ(number("SELECT count(*) FROM hapax_outbox_retry"), 0);
}

// One that waits long leaves room for others, and the bytes taken at once have their bound.
TEST_F(SqliteRelay, KeysThatCatchUpShareABatch) {
  receiver.refused = {"a0", "b0", "c0"};
  for (int i = 0; i < 60; ++i) run(*app, publish("a" + std::to_string(i), "a"));
  for (int i = 0; i < 6; ++i) run(*app, publish("b" + std::to_string(i), "b"));
  for (int i = 0; i < 6; ++i) {
    run(*app, "INSERT INTO hapax_outbox (id, type, key, payload) VALUES ('c" + std::to_string(i) +
                  "', 't', 'c', zeroblob(" + (i == 0 ? "1" : "8388608") + "))");
  }
  Relay relay(path, receiver, "a", {.batch = 20, .retry_first = Duration{1'000'000}});
  relay.drain();
  receiver.refused = {"c0"};
  run(*app, "UPDATE hapax_outbox_retry SET next_at = 0 WHERE key <> 'c' AND next_at > 0");
  EXPECT_EQ(relay.round().taken, 2U);
  EXPECT_EQ(relay.round().taken, 20U);
  EXPECT_EQ(number("SELECT count(*) FROM hapax_outbox_retry WHERE key = 'b'"), 5) << "not settled";
  EXPECT_EQ(relay.round().taken, 20U);
  EXPECT_EQ(number("SELECT count(*) FROM hapax_outbox_retry WHERE key = 'b'"), 0);
  relay.drain();
  EXPECT_EQ(receiver.sent.size(), 66U);
  receiver.refused.clear();
  run(*app, "UPDATE hapax_outbox_retry SET next_at = 0 WHERE key = 'c' AND next_at > 0");
  EXPECT_EQ(relay.round().taken, 1U);
  EXPECT_EQ(relay.round().taken, 4U);
  relay.drain();
  EXPECT_EQ(receiver.sent.back(), "c5");
}

// Y4, Y5: whoever dies over a batch of a key that catches up is followed by one that sends one by
// one what was in it; so the one that kills becomes a dead letter and no other does.
TEST_F(SqliteRelay, OneThatKillsIsFoundAmongThoseThatCatchUp) {
  for (int i = 0; i < 12; ++i) run(*app, publish(std::to_string(i), "k"));
  receiver.refused = {"0"};
  Relay(path, receiver, "first").drain();
  receiver.refused.clear();
  Killer killer(receiver, "5");
  int lives = 0;
  for (; lives < 10 && number("SELECT count(*) FROM hapax_outbox_retry") > 0; ++lives) {
    run(*app, "UPDATE hapax_outbox_lane SET lease_until = 0");
    run(*app, "UPDATE hapax_outbox_retry SET next_at = 0 WHERE next_at IS NOT NULL");
    Relay relay(path, killer, "life " + std::to_string(lives), {.attempts_max = 3});
    try {
      relay.drain();
    } catch (const Killer::Killed&) {
      continue;
    }
  }
  EXPECT_EQ(lives, 5) << "once among others, three times alone; then it is buried";
  EXPECT_EQ(number("SELECT count(*) FROM hapax_outbox_dead"), 1);
  EXPECT_EQ(number("SELECT count(*) FROM hapax_outbox_dead WHERE id = '5'"), 1);
  EXPECT_EQ(receiver.sent,
            (Ids{"0", "1", "2", "3", "4", "1", "2", "3", "4", "6", "7", "8", "9", "10", "11"}));
}

// Y2, Y3, Y5: one relay at a time; the other takes over when the lease is over, sends again what
// was not settled, and the first sends nothing when it goes on.
TEST_F(SqliteRelay, OneSendsAndAnotherTakesOver) {
  const Duration renewal{30'000};
  const delivery::RelaySettings settings{.lease = 2 * renewal};
  Receiver of_b;
  Relay a(path, receiver, "a", settings);
  Relay b(path, of_b, "b", settings);
  run(*app, publish("1", "k"));
  a.round();
  b.round();
  EXPECT_EQ(b.engine.lanes(), 0U);
  EXPECT_EQ(receiver.sent, Ids{"1"});
  run(*app, "UPDATE hapax_outbox_lane SET lease_until = 0");
  b.round_after(renewal);
  EXPECT_EQ(b.engine.lanes(), 1U);
  b.drain();
  run(*app, publish("2", "k"));
  b.drain();
  EXPECT_EQ(of_b.sent, (Ids{"1", "2"}));
  a.round_after(2 * renewal);
  EXPECT_EQ(receiver.sent, Ids{"1"});
}

// What was written while the clock was far ahead does not last for as long as it was wrong.
TEST_F(SqliteRelay, ALeaseOfAWrongClockIsOver) {
  run(*app, publish("1", "k"));
  const std::string now = "CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)";
  const auto held_for = [&](const std::string& ms) {
    run(*app, "UPDATE hapax_outbox_lane SET owner = 'other', fence = fence + 1, lease_until = " +
                  now + " + " + ms);
  };
  held_for("3600000");
  Relay relay(path, receiver, "a");
  EXPECT_EQ(relay.round_after(Duration{60'000}).taken, 0U);
  EXPECT_EQ(relay.source->report()->lanes.at(0).owner, "other");
  held_for("31536000000");
  EXPECT_EQ(relay.source->report()->lanes.at(0).owner, "");
  relay.clock.move(Duration{60'000});
  relay.drain();
  EXPECT_EQ(receiver.sent, Ids{"1"});

  // Its own lease it keeps when the clock goes back.
  run(*app, "UPDATE hapax_outbox_lane SET lease_until = lease_until + 31536000000");
  const std::int64_t fence = number("SELECT fence FROM hapax_outbox_lane");
  relay.round_after(Duration{10'000});
  EXPECT_EQ(number("SELECT fence FROM hapax_outbox_lane"), fence);
  EXPECT_EQ(relay.engine.lanes_lost(), 0U);
}

TEST_F(SqliteRelay, ARetryOfAWrongClockIsDue) {
  receiver.refused = {"1", "2"};
  run(*app, publish("1", "k") + "; " + publish("2"));
  Relay relay(path, receiver, "a");
  relay.drain();
  receiver.refused.clear();
  run(*app,
      "UPDATE hapax_outbox_retry SET next_at = next_at + CASE key WHEN 'k' THEN 31536000000 "
      "ELSE 3000000 END");
  relay.clock.move(Duration{10'000});
  relay.drain();
  EXPECT_EQ(receiver.sent, Ids{"1"}) << "the other may have been refused often";
}

// A commit of another process wakes a relay that sleeps. Not an engine: it would wake itself.
TEST_F(SqliteRelay, IsWokenByAnotherProcess) {
  Relay relay(path, receiver, "a");
  const auto& source = dynamic_cast<OutboxSource&>(*relay.source);
  for (int i = 0; i < 11; ++i) {
    relay.round();
    relay.source->wait(Duration{200});
  }
  const std::uint64_t before = source.signs();
  const pid_t child = ::fork();
  if (child == 0) {
    auto connection = Connection::open(path);
    ::_exit(connection->run(publish("1")) ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  for (int i = 0; i < 30 && source.signs() == before; ++i) relay.source->wait(Duration{1'000});
  EXPECT_GT(source.signs(), before);
  relay.drain();
  EXPECT_EQ(receiver.sent, Ids{"1"});
}

// History goes in small pieces; what is not sent stays, however old it is.
TEST_F(SqliteRelay, CleansOnlyWhatIsOldAndSent) {
  for (int i = 0; i < 600; ++i) run(*app, publish("o" + std::to_string(i)));
  run(*app, "UPDATE hapax_outbox SET created_at = created_at - 2592000001");
  Relay relay(path, receiver, "a");
  EXPECT_FALSE(*relay.source->clean()) << "nothing was sent";
  relay.drain();
  run(*app, publish("new"));
  EXPECT_TRUE(*relay.source->clean());
  EXPECT_EQ(number("SELECT count(*) FROM hapax_outbox"), 101);
  EXPECT_TRUE(*relay.source->clean());
  EXPECT_FALSE(*relay.source->clean());
  relay.drain();
  EXPECT_EQ(receiver.sent.size(), 601U);
}

// Whoever uses the inbox may never think of it.
TEST_F(SqliteRelay, ForgetsWhatIsOverInTheInboxAndAmongClaims) {
  run(*app,
      "WITH RECURSIVE n(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM n WHERE n < 600) "
      "INSERT INTO hapax_inbox (subscriber, message_id, expires_at) SELECT 's', n, 1 FROM n");
  run(*app,
      "INSERT INTO hapax_inbox (subscriber, message_id, expires_at) VALUES ('s', 'young', 9e15), "
      "('s', 'eternal', NULL)");
  run(*app,
      "INSERT INTO hapax_claims (scope, key, state, owner, fence, attempts, lease_until, "
      "first_seen, expires_at) VALUES ('s', 'k', 'completed', 'w', 1, 1, 1, 1, 1)");
  Relay relay(path, receiver, "a");
  EXPECT_TRUE(*relay.source->clean());
  EXPECT_EQ(number("SELECT count(*) FROM hapax_inbox"), 102);
  EXPECT_TRUE(*relay.source->clean());
  EXPECT_FALSE(*relay.source->clean());
  EXPECT_EQ(number("SELECT count(*) FROM hapax_inbox"), 2);
  EXPECT_EQ(number("SELECT count(*) FROM hapax_claims"), 0);
}

// Y5: whoever crashes, everything arrives, in the order of commits.
TEST_F(SqliteRelay, NothingIsLostInCrashes) {
  std::mt19937 random(4712);
  auto relay =
      std::make_unique<Relay>(path, receiver, "life 0", delivery::RelaySettings{.batch = 7});
  Ids committed;
  for (int step = 0; step < 600; ++step) {
    const std::string id = std::to_string(step);
    run(*app, "BEGIN");
    run(*app, publish(id, "k"));
    const bool kept = random() % 5 != 0;
    run(*app, kept ? "COMMIT" : "ROLLBACK");
    if (kept) committed.push_back(id);
    if (random() % 3 == 0) relay->round();
    if (random() % 40 != 0) continue;
    relay =
        std::make_unique<Relay>(path, receiver, "life " + id, delivery::RelaySettings{.batch = 7});
    run(*app, "UPDATE hapax_outbox_lane SET lease_until = 0");
  }
  relay->drain();
  Ids first_seen;
  std::set<std::string> seen;
  for (const std::string& id : receiver.sent) {
    if (seen.insert(id).second) first_seen.push_back(id);
  }
  EXPECT_EQ(first_seen, committed);
}

}  // namespace
}  // namespace hapax::sqlite
