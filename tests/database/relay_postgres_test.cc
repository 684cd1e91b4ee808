// Relays over a real PostgreSQL: what becomes visible late, who holds what, what a server keeps
// open.
#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include "../postgres/cluster.h"
#include "base/format.h"
#include "delivery/inline_relay.h"
#include "host/clock.h"
#include "postgres/migrate.h"
#include "postgres/outbox_source.h"
#include "relay_rig.h"

namespace hapax::postgres {
namespace {

using testing_postgres::Cluster;
using testing_relay::Ids;
using testing_relay::Receiver;

// As another process would.
struct Relay : testing_relay::Relay {
  Relay(const std::string& uri, relay::Sink& sink, const std::string& owner,
        delivery::RelaySettings settings = {})
      : testing_relay::Relay(open(uri, owner), sink, settings) {}
  static Result<std::unique_ptr<relay::Source>> open(const std::string& uri,
                                                     const std::string& owner) {
    HAPAX_TRY(auto source, OutboxSource::open({.uri = uri, .owner = owner, .listen = false}));
    return std::unique_ptr<relay::Source>(std::move(source));
  }
};

class PostgresRelay : public testing::Test {
 protected:
  void SetUp() override {
    auto connection = connect();
    const auto done = migrate(connection, {});
    ASSERT_TRUE(done.has_value()) << done.error().text();
  }

  Connection connect() { return *Connection::open(uri); }
  static void run(Connection& connection, const std::string& sql) {
    const auto done = connection.run(sql);
    ASSERT_TRUE(done.has_value()) << sql << ": " << done.error().text();
  }
  static std::string publish(const std::string& id, const std::string& key = {}) {
    return "SELECT hapax.publish('t', '" + id + "', " + (key.empty() ? "NULL" : "'" + key + "'") +
           ", '" + id + "')";
  }
  std::int64_t number(const std::string& sql) {
    auto connection = connect();
    const auto rows = connection.run(sql);
    EXPECT_TRUE(rows.has_value()) << sql << (rows ? "" : rows.error().text());
    return rows ? rows->number(0, kOnly) : -1;
  }

  std::string uri = Cluster::instance().make_database();
  Receiver receiver;
};

TEST_F(PostgresRelay, CarriesEverythingOfAnEvent) {
  auto app = connect();
  run(app,
      "SELECT hapax.publish('order.paid', '\\x00ff27'::bytea, 'k\"ey', 'id-1', "
      "'[[\"a\", \"1\"], [\"b:2\", \"ü\"]]', 'corr', 'cause')");
  Relay relay(uri, receiver, "a");
  relay.drain();
  ASSERT_EQ(receiver.sent, Ids{"id-1"});
  const relay::Outgoing& record = receiver.records_by_id.at("id-1");
  EXPECT_EQ(record.type, "order.paid");
  EXPECT_EQ(record.payload, std::string("\0\xff'", 3));
  EXPECT_EQ(record.key, "k\"ey");
  EXPECT_EQ(record.correlation_id, "corr");
  EXPECT_EQ(record.causation_id, "cause");
  using Headers = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(record.headers, (Headers{{"a", "1"}, {"b:2", "ü"}}));
}

// A database that checks no texts may hold any bytes, and they do not hold up the others.
TEST_F(PostgresRelay, TextsOfADatabaseWithoutAnEncodingComeAsTheyAre) {
  auto admin = *Connection::open(Cluster::instance().uri("postgres"));
  run(admin,
      "CREATE DATABASE raw ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'");
  const std::string raw = Cluster::instance().uri("raw");
  auto app = *Connection::open(raw);
  ASSERT_TRUE(migrate(app, {}));
  run(app, publish("caf\xe9", "k\xff"));
  run(app, publish("caf\xc3\xa9", "k\xff"));
  receiver.refused = {"caf\xe9"};
  {
    Relay relay(raw, receiver, "a");
    relay.drain();
    receiver.refused.clear();
    run(app, "UPDATE hapax.outbox_retry SET next_at = now() WHERE next_at IS NOT NULL");
    relay.drain();
    EXPECT_TRUE(relay.engine.stop());
  }
  EXPECT_EQ(receiver.sent, (Ids{"caf\xe9", "caf\xc3\xa9"}));
  EXPECT_EQ(receiver.records_by_id.at("caf\xe9").key, "k\xff");
}

// One row that nobody can send does not hold up the others.
TEST_F(PostgresRelay, ARowWithUnusableHeadersIsADeadLetter) {
  auto app = connect();
  const char* const bad[] = {"{\"trace\":\"7\"}", "[\"trace\"]",  "[1]",   "[[\"x\"]]",
                             "[[\"a\",null]]",    "[[\"a\", 1]]", "\"x\"", "[[[\"a\"],\"b\"]]"};
  int made = 0;
  for (const char* each : bad) {
    const std::string headers = "'" + std::string(each) + "'";
    EXPECT_FALSE(app.run("SELECT hapax.publish('t', '', 'k', 'r', " + headers + ")")) << each;
    EXPECT_EQ(app.sqlstate(), "HX001");
    run(app,
        "INSERT INTO hapax.outbox (xid, lane, id, type, key, payload, headers) VALUES "
        "(hapax.outbox_xid('k'), hapax.outbox_lane('k', 'i'), 'bad" +
            std::to_string(made++) + "', 't', 'k', '', " + headers + ")");
  }
  run(app, publish("good", "k"));
  run(app, "SELECT hapax.publish('t', '', 'k', 'none', '[]')");
  Relay relay(uri, receiver, "a");
  relay.drain();
  EXPECT_EQ(receiver.sent, (Ids{"good", "none"}));
  EXPECT_EQ(number("SELECT count(*) FROM hapax.outbox_dead WHERE attempts = 1 AND reason = "
                   "'its headers are not an array of pairs of strings'"),
            8);
  run(app, "UPDATE hapax.outbox_dead SET headers = NULL WHERE id = 'bad3'");
  const auto told = relay.source->redrive({});
  EXPECT_EQ(told->count, 1U);
  EXPECT_EQ(told->refused.size(), 7U);
  relay.drain();
  EXPECT_EQ(receiver.sent.back(), "bad3");
}

// All of them or those that are named: one that is refused is told, and keeps back no other.
TEST_F(PostgresRelay, ALetterThatIsRefusedKeepsBackNoOther) {
  auto app = connect();
  const std::string endless(256, 'x');
  for (const std::string& id : {std::string("a"), endless, std::string(), std::string("b")}) {
    run(app,
        "INSERT INTO hapax.outbox_dead (seq, id, type, payload, created_at, attempts, reason) "
        "VALUES (nextval('hapax.outbox_seq'), '" +
            id + "', 't', 'x', now(), 2, 'no')");
  }
  Relay relay(uri, receiver, "r");
  const auto told = relay.source->redrive({});
  ASSERT_TRUE(told) << told.error().text();
  EXPECT_EQ(told->count, 2U);
  ASSERT_EQ(told->refused.size(), 2U);
  EXPECT_EQ(told->refused[0].id, endless);
  EXPECT_THAT(told->refused[0].reason, testing::HasSubstr("has 256 bytes, at most 255"));
  EXPECT_EQ(told->refused[1].id, "");
  EXPECT_THAT(told->refused[1].reason, testing::HasSubstr("HX1001: the id of an event is empty"));
  relay.drain();
  EXPECT_THAT(receiver.sent, testing::UnorderedElementsAre("a", "b"));
  const Ids named{endless};
  EXPECT_EQ(relay.source->redrive(named)->refused.size(), 1U);
  EXPECT_EQ(number("SELECT count(*) FROM hapax.outbox_dead"), 2);
}

// Y6: the order of numbers is not the order of commits.
TEST_F(PostgresRelay, ARowThatCommitsLateIsNotSkipped) {
  auto first = connect();
  auto second = connect();
  Relay relay(uri, receiver, "a");
  run(first, "BEGIN");
  run(first, publish("1"));
  run(second, publish("2"));
  relay.drain();
  EXPECT_EQ(receiver.sent, Ids{"2"}) << "and it does not wait for the open transaction";
  run(first, "COMMIT");
  relay.drain();
  EXPECT_EQ(receiver.sent, (Ids{"2", "1"}));
  relay.drain();
  EXPECT_EQ(receiver.sent.size(), 2U);
}

// Y6: what is late waits from its commit on, as everything else does.
TEST_F(PostgresRelay, WhatCommittedLateIsReportedAsWaiting) {
  auto late = connect();
  auto app = connect();
  const auto waiting = [&](relay::Source& source) {
    std::uint64_t all = 0;
    for (const auto& lane : source.report()->lanes) {
      EXPECT_EQ(lane.waiting > 0, lane.oldest_waiting.has_value());
      all += lane.waiting;
    }
    return all;
  };
  Relay relay(uri, receiver, "a");
  run(late, "BEGIN");
  for (int i = 0; i < 40; ++i) run(late, publish("late" + std::to_string(i), std::to_string(i)));
  for (int i = 0; i < 40; ++i) run(app, publish("x" + std::to_string(i)));
  relay.drain();
  EXPECT_EQ(waiting(*relay.source), 0U);
  run(late, "COMMIT");
  const std::uint64_t told = waiting(*relay.source);
  relay.drain();
  EXPECT_EQ(told, receiver.sent.size() - 40);
  EXPECT_EQ(receiver.sent.size(), 80U);
  EXPECT_EQ(waiting(*relay.source), 0U);
}

// However much there is, sent or not: who only looks at what waits reads no more than it counts.
TEST_F(PostgresRelay, ALookAtWhatWaitsReadsNoMoreThanItCounts) {
  auto app = connect();
  run(app,
      "INSERT INTO hapax.outbox (xid, lane, id, type, payload) SELECT pg_current_xact_id(), i % 2, "
      "i::text, 't', '' FROM generate_series(1, 60000) AS i");
  // Of lane 0 all is sent, if not a row of a transaction that ran for long and has ended.
  run(app,
      "INSERT INTO hapax.outbox_progress (lane, fence, pos, pending, since, draining, late_to, "
      "sent, attempts) SELECT 0, 0, max(seq), '{3}', '{0}', '{}', 0, 0, 0 FROM hapax.outbox");
  auto looking = connect();
  run(looking, "BEGIN");
  enum Column { kWaiting, kLanes, kColumns };
  const auto told = looking.run(
      "SELECT sum(u.waiting) AS waiting, string_agg(l::text, ',') FILTER (WHERE u.more) AS lanes "
      "FROM generate_series(0, 15) AS l, hapax.relay_unsent(l, 1000) AS u");
  ASSERT_TRUE(told.has_value()) << told.error().text();
  EXPECT_EQ(told->number(0, kWaiting), 1'000);
  EXPECT_EQ(told->at(0, kLanes), "0,1") << "there may be more than that";
  const auto read = looking.run(
      "SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_xact_user_tables "
      "WHERE schemaname = 'hapax' AND relname ~ '^outbox_p[0-9]+$'");
  ASSERT_TRUE(read.has_value()) << read.error().text();
  EXPECT_GE(read->number(0, kOnly), 11'000);
  EXPECT_LT(read->number(0, kOnly), 12'000);
}

// Y6: nor if it had its number in a subtransaction, was rolled back, or the relay was another by
// then.
TEST_F(PostgresRelay, ALateRowIsFoundByTheNextRelayToo) {
  auto first = connect();
  auto second = connect();
  auto third = connect();
  run(first, "BEGIN; SAVEPOINT s");
  run(first, publish("1"));
  run(first, "RELEASE s");
  run(second, "BEGIN");
  run(second, publish("undone"));
  run(third, publish("2"));
  {
    Relay relay(uri, receiver, "a");
    relay.drain();
    ASSERT_TRUE(relay.engine.stop().has_value());
  }
  run(first, "COMMIT");
  run(second, "ROLLBACK");
  Relay relay(uri, receiver, "b");
  relay.drain();
  EXPECT_EQ(receiver.sent, (Ids{"2", "1"}));
}

// Y6: a transaction that is prepared belongs to no session, and still holds its rows back.
TEST_F(PostgresRelay, APreparedTransactionIsLate) {
  auto app = connect();
  Relay relay(uri, receiver, "a");
  run(app, "BEGIN");
  run(app, publish("1"));
  run(app, "PREPARE TRANSACTION 'p'");
  run(app, publish("2"));
  relay.drain();
  run(app, "COMMIT PREPARED 'p'");
  relay.drain();
  EXPECT_EQ(receiver.sent, (Ids{"2", "1"}));
}

// Y6: many late rows are sent in parts, in the order of their numbers, across a change of relays.
TEST_F(PostgresRelay, ALateTransactionMayBeLargerThanABatch) {
  auto bulk = connect();
  auto app = connect();
  run(bulk, "BEGIN");
  run(bulk,
      "SELECT count(hapax.publish('t', '', 'k', 'b' || i)) FROM generate_series(1, 500) AS i");
  const std::int64_t lane = number("SELECT hashtext('k') & 15");
  // Keys of the same lane that do not wait for the lock of the bulk's key.
  run(app, base::format("SELECT hapax.publish('t', '', k, 'x' || k) FROM (SELECT 'f' || i AS k "
                        "FROM generate_series(1, 3000) AS i) AS s WHERE hashtext(k) & 15 = {} AND "
                        "hashtext(k) & 4095 <> hashtext('k') & 4095 LIMIT 60",
                        lane));
  const delivery::RelaySettings small{.batch = 20};
  {
    Relay relay(uri, receiver, "a", small);
    relay.drain();
    EXPECT_EQ(receiver.sent.size(), 60U);
    run(bulk, "COMMIT");
    for (int i = 0; i < 5; ++i) relay.round();
    run(app, publish("last", "k"));
    ASSERT_TRUE(relay.engine.stop().has_value());
  }
  Relay relay(uri, receiver, "b", small);
  relay.drain();
  Ids expected;
  for (int i = 1; i <= 500; ++i) expected.push_back("b" + std::to_string(i));
  expected.emplace_back("last");
  const Ids got(receiver.sent.begin() + 60, receiver.sent.end());
  EXPECT_EQ(got.size(), expected.size());
  const auto differs = std::mismatch(got.begin(), got.end(), expected.begin(), expected.end());
  EXPECT_TRUE(differs.first == got.end()) << *differs.first << " for " << *differs.second;
}

TEST_F(PostgresRelay, OpenTransactionsElsewhereAndAHeldSnapshotHoldNothingUp) {
  auto elsewhere = *Connection::open(Cluster::instance().make_database());
  auto reader = connect();
  auto app = connect();
  run(elsewhere, "BEGIN; SELECT pg_current_xact_id()");
  run(reader, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1");
  Relay relay(uri, receiver, "a");
  for (int i = 0; i < 200; ++i) {
    run(app, publish(std::to_string(i), "k" + std::to_string(i % 7)));
    if (i % 10 == 9) relay.drain();
    EXPECT_EQ(receiver.sent.size(), static_cast<std::size_t>((i + 1) / 10 * 10));
  }
  EXPECT_LT(number("SELECT max(cardinality(pending)) FROM hapax.outbox_progress"), 3);
}

// Y6: late rows are looked for along the numbers, in parts if there were many meanwhile.
TEST_F(PostgresRelay, ALateRowIsFoundFarBehind) {
  auto late = connect();
  auto app = connect();
  Relay relay(uri, receiver, "a");
  const std::int64_t lane = number("SELECT hashtext('k') & 15");
  const std::string neighbour = base::format(
      "SELECT hapax.publish('t', '', k, 'n' || k) FROM (SELECT i::text AS k FROM "
      "generate_series(1, 500) AS i) AS s WHERE hashtext(k) & 15 = {} AND hashtext(k) & 4095 <> "
      "hashtext('k') & 4095 LIMIT 1",
      lane);
  run(app, neighbour);
  relay.drain();
  run(late, "BEGIN");
  run(late, publish("1", "k"));
  run(app, neighbour);
  relay.drain();
  run(app, "SELECT setval('hapax.outbox_seq', 450000)");
  run(late, publish("2", "k"));
  run(app, neighbour);
  relay.drain();
  run(late, "COMMIT");
  run(app, publish("3", "k"));
  relay.drain();
  ASSERT_EQ(receiver.sent.size(), 6U);
  EXPECT_EQ(Ids(receiver.sent.begin() + 3, receiver.sent.end()), (Ids{"1", "2", "3"}));
}

// Y6, O4: who runs for long and has not published is not looked for.
TEST_F(PostgresRelay, ABystanderIsForgottenAndAPublisherIsNot) {
  auto bystander = connect();
  auto publisher = connect();
  auto undone = connect();
  auto app = connect();
  Relay relay(uri, receiver, "a");
  const auto publish_everywhere = [&](const std::string& name) {
    for (int i = 0; i < 100; ++i) run(app, publish(name + std::to_string(i), std::to_string(i)));
    relay.drain();
  };
  const auto looked_for_since_long = [&] {
    return number(
        "SELECT max((SELECT count(*) FROM unnest(p.since) AS s WHERE s < 50000)) FROM "
        "(SELECT DISTINCT ON (lane) since FROM hapax.outbox_progress "
        "ORDER BY lane, fence DESC, n DESC) AS p");
  };
  run(bystander, "BEGIN; SELECT pg_current_xact_id()");
  run(publisher, "BEGIN");
  run(publisher, publish("late"));
  run(undone, "BEGIN; SAVEPOINT s");
  run(undone, publish("undone"));
  run(undone, "ROLLBACK TO s");
  publish_everywhere("a");
  EXPECT_EQ(looked_for_since_long(), 3);
  run(app, "SELECT setval('hapax.outbox_seq', 50000)");
  publish_everywhere("b");
  publish_everywhere("c");
  EXPECT_EQ(looked_for_since_long(), 1);
  run(bystander, publish("of the bystander"));
  publish_everywhere("d");
  EXPECT_EQ(looked_for_since_long(), 1);
  for (Connection* each : {&bystander, &publisher, &undone}) run(*each, "COMMIT");
  relay.drain();
  ASSERT_EQ(receiver.sent.size(), 402U);
  const std::set<std::string> last(receiver.sent.end() - 2, receiver.sent.end());
  EXPECT_EQ(last, (std::set<std::string>{"late", "of the bystander"}));
}

// A database that is put back to an earlier moment, as by a restore or by a standby without the
// latest commits.
class PostgresRelayAfterALoss : public PostgresRelay {
 protected:
  void SetUp() override {
    PostgresRelay::SetUp();
    relay.emplace(uri, receiver, "a", settings);
  }
  void publish_all(const std::string& name) {
    for (int i = 0; i < 40; ++i) run(app, publish(name + std::to_string(i), std::to_string(i)));
  }
  void publish_and_send(const std::string& name) {
    publish_all(name);
    relay->drain();
  }
  void save() {
    run(app,
        "CREATE TABLE lanes AS TABLE hapax.outbox_lane; "
        "CREATE TABLE progress AS TABLE hapax.outbox_progress; "
        "CREATE TABLE rows AS TABLE hapax.outbox");
  }
  void go_back() {
    run(app,
        "TRUNCATE hapax.outbox_lane, hapax.outbox_progress, hapax.outbox; "
        "INSERT INTO hapax.outbox_lane TABLE lanes; INSERT INTO hapax.outbox TABLE rows; "
        "INSERT INTO hapax.outbox_progress OVERRIDING SYSTEM VALUE TABLE progress; "
        "SELECT setval('hapax.outbox_seq', (SELECT max(seq) FROM rows))");
  }
  void end_session() {
    run(app,
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE "
        "datname = current_database() AND application_name = 'hapax relay'");
  }
  void expect_all_of(const std::string& name) {
    for (int i = 0; i < 3; ++i) {
      ignore(relay->engine.step(), "it may have lost its session");
      relay->clock.move(settings.lease / 2);
      relay->drain();
    }
    std::set<std::string> expected;
    for (int i = 0; i < 40; ++i) expected.insert(name + std::to_string(i));
    std::set<std::string> got(receiver.sent.begin(), receiver.sent.end());
    std::erase_if(got, [&](const std::string& id) { return !id.starts_with(name); });
    EXPECT_EQ(got, expected);
  }

  Connection app = connect();
  delivery::RelaySettings settings{};
  std::optional<Relay> relay{};
};

// Y8: also if the fences are those that it knows.
TEST_F(PostgresRelayAfterALoss, ANewSessionBelievesNothingThatItKnew) {
  publish_and_send("kept");
  save();
  end_session();
  EXPECT_FALSE(relay->engine.step().has_value());
  run(app, "UPDATE hapax.outbox_lane SET lease_until = '-infinity'");
  publish_and_send("lost");
  end_session();
  go_back();
  run(app, "UPDATE hapax.outbox_lane SET lease_until = '-infinity'");
  publish_all("new");
  expect_all_of("new");
}

// Y8: a pooler may go over to another server without a word.
TEST_F(PostgresRelayAfterALoss, NeitherTakesNorKeepsLanesThatStandElsewhere) {
  publish_and_send("kept");
  save();
  publish_and_send("lost");
  go_back();
  publish_all("new");
  expect_all_of("new");
}

// Y8: nor does what it says about a batch count there.
TEST_F(PostgresRelayAfterALoss, SettlesNothingThatStandsElsewhere) {
  publish_and_send("kept");
  save();
  publish_all("lost");
  relay->round();  // Sent, and not settled.
  go_back();
  publish_all("new");
  expect_all_of("new");
}

// Y9: xids of another cluster are nobody's here if they are yet to come; one that runs here, too,
// is waited for.
TEST_F(PostgresRelay, WhatCommittedLateInAnotherClusterIsSentInThisOne) {
  for (const char* moved : {"0", "1000000"}) {
    receiver.sent.clear();
    auto late = connect();
    auto app = connect();
    {
      Relay relay(uri, receiver, "a");
      run(late, "BEGIN");
      run(late, publish("1", "k"));
      run(late, publish("2", "l"));
      for (int i = 0; i < 40; ++i) run(app, publish("x", "x" + std::to_string(i)));
      relay.drain();
      ASSERT_TRUE(relay.engine.stop().has_value());
    }
    run(late, "COMMIT");
    receiver.sent.clear();
    // As it would be restored: the rows are there, and the numbers mean nothing here. One of them
    // is that of a transaction which runs and does not end.
    auto running = connect();
    run(running, "BEGIN; SELECT pg_current_xact_id()");
    const std::string here =
        std::to_string(number("SELECT max(backend_xid::text::bigint) FROM pg_stat_activity WHERE "
                              "backend_xid IS NOT NULL"));
    const std::string there = std::string(moved) == "0" ? here : moved;
    run(app,
        "UPDATE hapax.outbox_lane SET cluster = 7; "
        "UPDATE hapax.outbox_progress SET pending = ARRAY['" +
            there +
            "'::xid8], "
            "since = ARRAY[(SELECT min(s) FROM unnest(since) AS s)] WHERE pending <> '{}'; "
            "UPDATE hapax.outbox SET xid = '" +
            there + "' WHERE id IN ('1', '2')");
    Relay relay(uri, receiver, "b");
    if (there != here) run(app, publish("3", "k"));
    relay.drain();
    const std::size_t all = there == here ? 2 : 3;
    EXPECT_EQ(receiver.sent.size(), there == here ? 0 : all) << there;
    run(running, "COMMIT");
    relay.drain();
    EXPECT_EQ(receiver.sent.size(), all);
    const auto at = [&](const std::string& id) {
      return std::find(receiver.sent.begin(), receiver.sent.end(), id) - receiver.sent.begin();
    };
    EXPECT_LT(at("1"), at("3")) << "the order of its key";
    EXPECT_LT(at("2"), static_cast<std::ptrdiff_t>(all));
    ASSERT_TRUE(relay.engine.stop().has_value());
  }
}

// Y9: what was noted as running since the move runs here, whatever the lanes say of their cluster.
TEST_F(PostgresRelay, WhoRunsHereIsNotGivenUpWhenTheClusterHasAnotherName) {
  auto late = connect();
  auto app = connect();
  Relay relay(uri, receiver, "a");
  run(late, "BEGIN");
  run(late, publish("1", "k"));
  for (int i = 0; i < 40; ++i) run(app, publish("x", "x" + std::to_string(i)));
  relay.drain();
  ASSERT_TRUE(relay.engine.stop().has_value());
  run(app, "UPDATE hapax.outbox_lane SET cluster = 7");
  Relay next(uri, receiver, "b");
  next.drain();
  receiver.sent.clear();
  run(late, "COMMIT");
  next.drain();
  EXPECT_EQ(receiver.sent, std::vector<std::string>{"1"});
  ASSERT_TRUE(next.engine.stop().has_value());
}

// New ones, late ones and those that are tried again: 2 MiB of each lane at once.
TEST_F(PostgresRelay, TakesNoMoreThanItsMemoryIsMeantFor) {
  auto bulk = connect();
  auto app = connect();
  const std::string large =
      "SELECT count(hapax.publish('t', convert_to(repeat('x', 1048576), 'UTF8'), ";
  run(app, large + "'k', 'a' || i)) FROM generate_series(1, 9) AS i");
  const delivery::RelaySettings quick{.retry_first = Duration{1}, .retry_max = Duration{1}};
  Relay relay(uri, receiver, "a", quick);
  EXPECT_EQ(most_taken_until(relay, receiver, 9), 2U);
  EXPECT_EQ(receiver.sent.front(), "a1");
  relay.drain();

  run(bulk, "BEGIN");
  run(bulk, large + "'k', 'b' || i)) FROM generate_series(1, 9) AS i");
  const std::string lane = std::to_string(number("SELECT hashtext('k') & 15"));
  run(app,
      "SELECT hapax.publish('t', '', k, 'n') FROM (SELECT i::text AS k FROM "
      "generate_series(1, 500) AS i) AS s WHERE hashtext(k) & 15 = " +
          lane + " AND hashtext(k) & 4095 <> hashtext('k') & 4095 LIMIT 1");
  relay.drain();
  run(bulk, "COMMIT");
  run(app, publish("last", "k"));
  EXPECT_LE(most_taken_until(relay, receiver, 20), 3U);
  Ids expected{"n"};
  for (int i = 1; i <= 9; ++i) expected.push_back("b" + std::to_string(i));
  expected.emplace_back("last");
  EXPECT_EQ(Ids(receiver.sent.begin() + 9, receiver.sent.end()), expected);
  relay.drain();

  for (int i = 1; i <= 80; ++i) receiver.refused.insert("c" + std::to_string(i));
  run(app, large + "NULL, 'c' || i)) FROM generate_series(1, 80) AS i");
  while (number("SELECT count(*) FROM hapax.outbox_retry") < 80) relay.round();
  ASSERT_TRUE(relay.engine.stop().has_value());
  receiver.refused.clear();
  EXPECT_LE(most_taken_until(relay, receiver, 100), 32U);
}

// Y6: a server with thousands of running transactions.
TEST_F(PostgresRelay, ThousandsOfPendingTransactionsAreLookedUpTogether) {
  auto app = connect();
  for (int i = 0; i < 20; ++i) run(app, publish(std::to_string(i), "k" + std::to_string(i)));
  run(app,
      "INSERT INTO hapax.outbox_progress (lane, fence, pos, pending, since, draining, late_to, "
      "sent, attempts) SELECT l, 0, 1000, (SELECT array_agg(x::text::xid8) FROM generate_series("
      "pg_current_xact_id()::text::bigint - 5000, pg_current_xact_id()::text::bigint + 5000) "
      "AS x), array_fill(0, '{10001}'), '{}', 0, 0, 0 FROM generate_series(0, 15) AS l");
  run(app, "SELECT setval('hapax.outbox_seq', 1000)");
  Relay relay(uri, receiver, "a");
  const auto begun = relay.clock.steady_ms();
  relay.drain();
  EXPECT_LT(relay.clock.steady_ms() - begun, 30'000);
  EXPECT_EQ(receiver.sent.size(), 20U);
}

// Y1, Y4: in the tables, not only in memory.
TEST_F(PostgresRelay, ARefusedRecordHoldsUpItsKeyAndDiesWithItsReason) {
  auto app = connect();
  receiver.refused = {"a1"};
  for (const char* id : {"a1", "a2", "a3"}) run(app, publish(id, "a"));
  run(app, publish("b1", "b"));
  const delivery::RelaySettings quick{.attempts_max = 2, .retry_first = Duration{300}};
  Relay relay(uri, receiver, "a", quick);
  relay.round();  // a1, which is refused
  relay.round();
  run(app, publish("a4", "a"));
  ASSERT_TRUE(relay.engine.stop().has_value());
  EXPECT_EQ(receiver.sent, Ids{"b1"});
  EXPECT_EQ(number("SELECT count(*) FROM hapax.outbox_retry"), 3);
  EXPECT_EQ(number("SELECT count(next_at) FROM hapax.outbox_retry"), 1);

  Relay successor(uri, receiver, "b", quick);
  while (receiver.sent.size() < 4) {
    successor.drain();
    ::poll(nullptr, 0, 1);
  }
  successor.drain();
  EXPECT_EQ(receiver.sent, (Ids{"b1", "a2", "a3", "a4"}));
  EXPECT_EQ(number("SELECT attempts FROM hapax.outbox_dead WHERE id = 'a1' AND key = 'a' "
                   "AND reason LIKE 'no \"thanks\"%'"),
            2);
  EXPECT_EQ(number("SELECT count(*) FROM hapax.outbox_retry"), 0);

  expect_redrive_of_a1(successor, receiver);
}

// Y2, Y3, Y5: a relay that stands still loses its lanes; what it took is sent again by the other,
// and it sends nothing when it goes on.
TEST_F(PostgresRelay, TwoRelaysShareAndOneStandsStill) {
  auto app = connect();
  const Duration renewal{30'000};
  const delivery::RelaySettings settings{.lease = 2 * renewal};
  Receiver of_b;
  Relay a(uri, receiver, "a", settings);
  Relay b(uri, of_b, "b", settings);
  a.round();
  EXPECT_EQ(a.engine.lanes(), 16U);
  b.round();
  EXPECT_EQ(b.engine.lanes(), 0U);
  a.round_after(renewal);
  b.round_after(renewal);
  EXPECT_EQ(a.engine.lanes(), 8U);
  EXPECT_EQ(b.engine.lanes(), 8U);
  for (int i = 0; i < 64; ++i) run(app, publish(std::to_string(i), std::to_string(i)));
  while (receiver.sent.size() + of_b.sent.size() < 64) {
    a.round();
    b.round();
  }
  EXPECT_FALSE(receiver.sent.empty());
  EXPECT_FALSE(of_b.sent.empty());
  const std::size_t before = receiver.sent.size();
  // `a` stands still, with what it sent not settled, until its leases are over.
  run(app,
      "UPDATE hapax.outbox_lane SET lease_until = '-infinity' WHERE owner = 'a'; "
      "UPDATE hapax.outbox_relay SET alive_until = '-infinity' WHERE owner = 'a'");
  b.round_after(renewal);
  EXPECT_EQ(b.engine.lanes(), 16U);
  b.drain();
  for (int i = 64; i < 128; ++i) run(app, publish(std::to_string(i), std::to_string(i)));
  b.drain();
  const std::set<std::string> distinct(of_b.sent.begin(), of_b.sent.end());
  EXPECT_GE(distinct.size(), 64U);
  a.round_after(2 * renewal);
  EXPECT_EQ(receiver.sent.size(), before);
  EXPECT_GT(a.engine.lanes_lost(), 0U);
}

// Who stands still with a lock of the lanes does not keep a relay from ending.
TEST_F(PostgresRelay, DoesNotWaitLongForALockToGiveLanesBack) {
  auto opened = OutboxSource::open(
      {.uri = uri, .owner = "a", .listen = false, .silence_max = Duration{15'000}});
  ASSERT_TRUE(opened.has_value());
  OutboxSource& source = **opened;
  const auto leases = source.lease({}, Duration{15'000});
  ASSERT_TRUE(leases.has_value());
  auto holder = connect();
  run(holder, "BEGIN; SELECT 1 FROM hapax.outbox_lane FOR UPDATE");
  const Status released = source.release(leases->held);
  ASSERT_FALSE(released.has_value());
  EXPECT_THAT(released.error().text(), testing::HasSubstr("lock timeout"));
}

// Whether notifications come through is tried at the start, for two seconds at most.
std::unique_ptr<OutboxSource> open_source(const std::string& uri, bool listen = true) {
  for (;;) {
    auto opened = OutboxSource::open({.uri = uri, .owner = "a", .listen = listen});
    if (!opened) throw std::runtime_error(opened.error().text());
    if ((*opened)->is_notified() == listen) return *std::move(opened);
  }
}

// A relay that listens, until publishers know that it sleeps.
class Listening {
 public:
  Listening(std::unique_ptr<OutboxSource> source, relay::Sink& sink)
      : source_(std::move(source)), engine_(*source_, sink, clock_, {}) {}

  void turn() {
    const auto told = engine_.step();
    if (!told) throw std::runtime_error(told.error().text());
    if (told->idle_for > Duration{0}) source_->wait(std::min(told->idle_for, Duration{1'000}));
  }
  OutboxSource& source() { return *source_; }

 private:
  host::HostClock clock_;
  std::unique_ptr<OutboxSource> source_;
  delivery::InlineRelay engine_;
};

// A publisher's NOTIFY wakes a relay that sleeps; also one whose connection for it was lost.
TEST_F(PostgresRelay, SleepsUntilSomethingIsPublished) {
  Listening relay(open_source(uri), receiver);
  OutboxSource& source = relay.source();
  auto app = connect();
  const auto publish_to_a_sleeper = [&](const std::string& id) {
    while (number("SELECT hapax.outbox_is_awaited()::int") == 0) relay.turn();
    const std::uint64_t before = source.notifications();
    run(app, publish(id));
    // It may look by itself before the notification is there.
    for (int i = 0; i < 30 && source.notifications() == before; ++i) relay.turn();
    EXPECT_EQ(source.notifications(), before + 1);
  };
  publish_to_a_sleeper("1");

  run(app,
      "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE "
      "datname = current_database() AND application_name = 'hapax relay (listens)'");
  while (source.is_notified()) relay.turn();
  while (!source.is_notified()) relay.turn();
  publish_to_a_sleeper("2");
  while (receiver.sent.size() < 2) relay.turn();
  EXPECT_EQ(receiver.sent, (Ids{"1", "2"}));
}

class HeldClock final : public ports::Clock {
 public:
  [[nodiscard]] std::int64_t wall_ms() override { return now_ms; }
  [[nodiscard]] std::int64_t steady_ms() override { return now_ms; }
  std::int64_t now_ms = 1;
};

// Ten minutes of nothing, with the sleeping left out.
TEST_F(PostgresRelay, AsksLessThanOnceASecondWhileNothingHappens) {
  constexpr std::int64_t kSeconds = 600;
  for (const bool listen : {true, false}) {
    const auto opened = open_source(uri, listen);
    OutboxSource& source = *opened;
    HeldClock clock;
    delivery::InlineRelay engine(source, receiver, clock, {});
    while (clock.now_ms < 1'000 * kSeconds) {
      const auto told = engine.step();
      ASSERT_TRUE(told.has_value());
      clock.now_ms += source.ready_to_sleep(told->idle_for, clock.now_ms).count();
    }
    EXPECT_LT(source.questions(), static_cast<std::uint64_t>(kSeconds * (listen ? 6 : 9) / 10));
    ASSERT_TRUE(engine.stop().has_value());
  }
}

// History older than the retention goes, once it is sent; what is not sent stays.
TEST_F(PostgresRelay, CleansOnlyWhatIsOldAndSent) {
  auto app = connect();
  const auto old_row = [](const std::string& id, int part) {
    return "INSERT INTO hapax.outbox (part, xid, lane, id, type, payload, created_at) VALUES (" +
           std::to_string(part) + ", pg_current_xact_id(), 3, '" + id +
           "', 't', '', now() - interval '31 days')";
  };
  const auto part = static_cast<int>(number("SELECT hapax.outbox_part()"));
  run(app, old_row("old", (part + 2) % 32));
  Relay relay(uri, receiver, "a");
  EXPECT_FALSE(*relay.source->clean()) << "it was not sent";
  relay.drain();
  run(app, old_row("unsent", (part + 3) % 32));
  run(app, publish("new"));
  auto inserting = connect();
  run(inserting, "BEGIN");
  run(inserting, publish("open"));
  EXPECT_TRUE(*relay.source->clean());
  EXPECT_FALSE(*relay.source->clean());
  EXPECT_EQ(number("SELECT count(*) FROM hapax.outbox"), 2);
  relay.drain();
  std::sort(receiver.sent.begin(), receiver.sent.end());
  EXPECT_EQ(receiver.sent, (Ids{"new", "old", "unsent"}));
}

// Progress is the row with the highest fence; after a restore without sequences its n is not the
// highest. Cleaned by n, the lane would fall back to where an older relay stood.
TEST_F(PostgresRelay, CleansProgressByFence) {
  auto app = connect();
  const auto progress = [](int fence, int n, int pos) {
    return "INSERT INTO hapax.outbox_progress (lane, fence, n, pos, pending, since, draining, "
           "late_to, sent, attempts) OVERRIDING SYSTEM VALUE VALUES (3, " +
           std::to_string(fence) + ", " + std::to_string(n) + ", " + std::to_string(pos) +
           ", '{}', '{}', '{}', 0, 0, 0)";
  };
  for (const auto& row : {progress(1, 900, 10), progress(2, 901, 20), progress(3, 1, 30)}) {
    run(app, row);
  }
  run(app, "SELECT hapax.relay_forget_progress(3)");
  EXPECT_EQ(number("SELECT sum(pos) FROM hapax.outbox_progress WHERE lane = 3"), 30);
  EXPECT_EQ(number("SELECT count(*) FROM pg_proc WHERE prosrc LIKE '%max(q.n)%'"), 0);
}

// Whoever uses the inbox may never think of it.
TEST_F(PostgresRelay, ForgetsWhatIsOverInTheInboxAndAmongClaims) {
  auto app = connect();
  run(app,
      "INSERT INTO hapax.inbox (subscriber, message_id, expires_at) SELECT 's', n, "
      "now() - interval '1 s' FROM generate_series(1, 1500) AS n");
  run(app,
      "SELECT hapax.inbox_take('s', 'young', NULL, '1 hour'), hapax.inbox_take('s', 'eternal'), "
      "hapax.check_and_lock('s', 'k', 'w', '1 min')");
  run(app, "SELECT hapax.mark_complete('s', 'k', 1, NULL, '0')");
  Relay relay(uri, receiver, "a");
  EXPECT_TRUE(*relay.source->clean());
  EXPECT_EQ(number("SELECT count(*) FROM hapax.inbox"), 502);
  EXPECT_FALSE(*relay.source->clean());
  EXPECT_EQ(number("SELECT count(*) FROM hapax.inbox"), 2);
  EXPECT_EQ(number("SELECT count(*) FROM hapax.claims"), 0);
}

// The rights that the guide gives.
TEST_F(PostgresRelay, ARoleOfItsOwnRelaysAndCleans) {
  auto app = connect();
  run(app,
      "CREATE ROLE relay LOGIN; GRANT USAGE ON SCHEMA hapax TO relay; "
      "GRANT SELECT ON hapax.migrations, hapax.outbox TO relay; "
      "GRANT SELECT, INSERT, UPDATE, DELETE ON hapax.outbox_relay, hapax.outbox_lane, "
      "hapax.outbox_progress, hapax.outbox_retry, hapax.outbox_dead TO relay; "
      "GRANT SELECT, UPDATE ON SEQUENCE hapax.outbox_listening TO relay; "
      "GRANT INSERT ON hapax.outbox TO relay; GRANT USAGE ON SEQUENCE hapax.outbox_seq TO relay");
  run(app,
      "INSERT INTO hapax.outbox (part, xid, lane, id, type, payload, created_at) VALUES "
      "((hapax.outbox_part() + 2) % 32, pg_current_xact_id(), 3, 'old', 't', '', "
      "now() - interval '31 days')");
  run(app, publish("new"));
  std::string as_relay = uri;
  as_relay.replace(as_relay.find("user=postgres"), 13, "user=relay");
  receiver.refused = {"bad"};
  run(app, publish("bad", "a"));
  Relay relay(as_relay, receiver, "a", {.attempts_max = 2, .retry_first = Duration{1}});
  for (int i = 0; i < 20; ++i) relay.drain();
  EXPECT_THAT(receiver.sent, testing::UnorderedElementsAre("old", "new"));
  receiver.refused.clear();
  const std::string bad[] = {"bad"};
  EXPECT_EQ(relay.source->redrive(bad)->count, 1U);
  relay.drain();
  EXPECT_THAT(receiver.sent, testing::UnorderedElementsAre("old", "new", "bad"));
  run(app, "SELECT hapax.inbox_take('s', 'm', NULL, '0')");
  const auto cleaned = relay.source->clean();
  ASSERT_TRUE(cleaned) << cleaned.error().text();
  EXPECT_TRUE(*cleaned);
  EXPECT_EQ(number("SELECT count(*) FROM hapax.outbox WHERE id = 'old'"), 0);
  EXPECT_EQ(number("SELECT count(*) FROM hapax.inbox"), 0);
  const auto report = relay.source->report();
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_FALSE(report->sees_transactions);
  run(app, "BEGIN; SELECT pg_current_xact_id()");
  auto owner = connect();
  run(owner, "GRANT pg_read_all_stats TO relay");
  EXPECT_TRUE(relay.source->report()->sees_transactions);
  EXPECT_TRUE(relay.source->report()->oldest_transaction.has_value());
}

// What was published while the cleaner waited for the partition is there when it looks again, also
// where transactions have one snapshot by default.
TEST_F(PostgresRelay, CleansNothingThatCameWhileItWaited) {
  auto app = connect();
  run(app,
      "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation TO "
      "%L', current_database(), 'repeatable read'); END $$");
  const auto row = [](const std::string& id, const std::string& age) {
    return "INSERT INTO hapax.outbox (part, xid, lane, id, type, payload, created_at) VALUES "
           "((hapax.outbox_part() + 2) % 32, pg_current_xact_id(), 3, '" +
           id + "', 't', '', now() - interval '" + age + "')";
  };
  run(app, row("old", "31 days"));
  Relay relay(uri, receiver, "a");
  relay.drain();
  auto inserting = connect();
  run(inserting, "BEGIN ISOLATION LEVEL READ COMMITTED");
  run(inserting, row("new", "0 days"));
  std::atomic<bool> done = false;
  std::thread cleaner([&] {
    EXPECT_FALSE(*relay.source->clean());
    done = true;
  });
  const std::string waits =
      "SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' "
      "AND NOT granted";
  while (!done && number(waits) == 0) continue;  // It waits for 100 ms only.
  run(inserting, "COMMIT");
  cleaner.join();
  relay.drain();
  EXPECT_EQ(receiver.sent, (Ids{"old", "new"}));
}

TEST_F(PostgresRelay, CleaningAndRenumberingRefuseASnapshotThatIsOld) {
  auto app = connect();
  for (const std::string call : {"relay_clean()", "outbox_renumber(now())"}) {
    run(app, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    const auto told = app.run("SELECT hapax." + call);
    ASSERT_FALSE(told) << call;
    EXPECT_EQ(told.error().code, Errc::kPreconditionFailed) << told.error().text();
    EXPECT_EQ(app.sqlstate(), "HX012");
    run(app, "ROLLBACK");
  }
}

// Everything that commits arrives, per key in the order of commits, whatever is open meanwhile and
// whoever crashes. Y1, Y5, Y6.
TEST_F(PostgresRelay, NothingIsLostInADisorderOfTransactionsAndCrashes) {
  std::mt19937 random(4711);
  const auto chance = [&](unsigned of) { return random() % of == 0; };
  std::vector<Connection> apps;
  std::vector<Ids> open(6);
  for (std::size_t i = 0; i < open.size(); ++i) apps.push_back(connect());
  std::vector<std::string> committed;
  std::map<std::string, Ids> committed_by_key;
  int made = 0;
  int life = 0;
  const delivery::RelaySettings settings{.batch = 7};
  auto relay = std::make_unique<Relay>(uri, receiver, "life 0", settings);
  const auto finish = [&](std::size_t i, const char* how) {
    run(apps[i], how);
    if (std::string(how) == "COMMIT") {
      for (const std::string& id : open[i]) {
        committed.push_back(id);
        committed_by_key[id.substr(0, id.find('-'))].push_back(id);
      }
    }
    open[i].clear();
  };
  for (int step = 0; step < 1'500; ++step) {
    const std::size_t i = random() % open.size();
    if (open[i].empty()) run(apps[i], "BEGIN");
    // A key of its own for each connection, or they would wait for each other here.
    const std::string key = base::format("k{}{}", i, random() % 3);
    open[i].push_back(base::format("{}-{}", key, made++));
    run(apps[i], publish(open[i].back(), key));
    if (chance(4)) finish(i, chance(5) ? "ROLLBACK" : "COMMIT");
    if (chance(3)) relay->round();
    if (chance(100)) {  // It crashes: its leases end, and nothing is settled.
      relay = std::make_unique<Relay>(uri, receiver, "life " + std::to_string(++life), settings);
      run(apps[i], "SELECT 1");
      auto other = connect();
      run(other,
          "UPDATE hapax.outbox_lane SET lease_until = '-infinity'; "
          "DELETE FROM hapax.outbox_relay");
    }
  }
  for (std::size_t i = 0; i < open.size(); ++i) {
    if (!open[i].empty()) finish(i, "COMMIT");
  }
  for (int i = 0; i < 50; ++i) relay->drain();
  EXPECT_GT(life, 5);
  const std::set<std::string> distinct(receiver.sent.begin(), receiver.sent.end());
  EXPECT_EQ(distinct, std::set<std::string>(committed.begin(), committed.end()));
  std::map<std::string, Ids> first_seen;
  std::set<std::string> seen;
  for (const std::string& id : receiver.sent) {
    if (seen.insert(id).second) first_seen[id.substr(0, id.find('-'))].push_back(id);
  }
  EXPECT_EQ(first_seen, committed_by_key);
}

}  // namespace
}  // namespace hapax::postgres
