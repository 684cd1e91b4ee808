// What waits for another attempt in a PostgreSQL outbox, or behind such a record: nobody waits
// there for ever, whatever somebody did to the tables or the clock.
#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../postgres/cluster.h"
#include "base/format.h"
#include "postgres/migrate.h"
#include "postgres/outbox_source.h"
#include "relay_rig.h"

namespace hapax::postgres {
namespace {

using testing_postgres::Cluster;
using testing_relay::Ids;

constexpr const char* kDueNow =
    "UPDATE hapax.outbox_retry SET next_at = now() WHERE next_at > now()";

class PostgresRetries : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(migrate(app, {}).has_value()); }

  std::string text(const std::string& sql) {
    const auto rows = app.run(sql);
    EXPECT_TRUE(rows.has_value()) << sql << ": " << (rows ? "" : rows.error().text());
    return rows && rows->size() > 0 ? rows->text(0, kOnly) : "";
  }
  // "k1", "k2", … of the key "k".
  void publish(const std::string& key, int first, int last) {
    text(base::format(
        "SELECT hapax.publish('t', 'x', '{}', '{}' || i) FROM generate_series({}, {}) AS i", key,
        key, first, last));
  }
  static Ids ids(const std::string& key, int first, int last) {
    Ids all;
    for (int i = first; i <= last; ++i) all.push_back(key + std::to_string(i));
    return all;
  }
  std::unique_ptr<testing_relay::Relay> start(const std::string& owner,
                                              delivery::RelaySettings settings = {}) {
    auto source = OutboxSource::open({.uri = uri, .owner = owner, .listen = false});
    return std::make_unique<testing_relay::Relay>(
        std::unique_ptr<relay::Source>(*std::move(source)), receiver, settings);
  }
  // k1 was refused, and k2 to `last` wait behind it.
  void refuse_first(testing_relay::Relay& relay, int last) {
    publish("k", 1, last);
    receiver.refused = {"k1"};
    relay.drain();
    ASSERT_EQ(text("SELECT count(*) FROM hapax.outbox_retry"), std::to_string(last));
    receiver.refused.clear();
    text(kDueNow);
  }

  std::string uri = Cluster::instance().make_database();
  Connection app = *Connection::open(uri);
  testing_relay::Receiver receiver;
};

TEST_F(PostgresRetries, ARowThatIsGoneIsGivenUpAndTheNextOfItsKeyIsSent) {
  const auto relay = start("a");
  refuse_first(*relay, 3);
  text("DELETE FROM hapax.outbox WHERE id IN ('k1', 'k2')");
  publish("k", 4, 4);
  for (int i = 0; i < 20 && receiver.sent.size() < 2; ++i) relay->round();
  relay->drain();
  EXPECT_EQ(receiver.sent, (Ids{"k3", "k4"}));
  EXPECT_EQ(relay->engine.counts().dead, 2U);
  EXPECT_EQ(text("SELECT count(*) FROM hapax.outbox_retry"), "0");
  EXPECT_EQ(text("SELECT count(*) FROM hapax.outbox_dead"), "0");
}

TEST_F(PostgresRetries, AfterARetryThatIsDeletedTheKeyGoesOnWithItsNextEvent) {
  const auto relay = start("a");
  refuse_first(*relay, 3);
  text("DELETE FROM hapax.outbox_retry WHERE attempts > 0");
  publish("k", 4, 4);
  relay->drain();
  EXPECT_EQ(receiver.sent, ids("k", 2, 4));
}

// No index holds it, so that it cannot wait for another attempt.
TEST_F(PostgresRetries, AKeyThatIsTooLongIsADeadLetterAtOnce) {
  text(
      "WITH long AS (SELECT string_agg(sha256(i::text::bytea)::text, '') AS key "
      "FROM generate_series(1, 100) AS i) "
      "INSERT INTO hapax.outbox (xid, lane, id, type, key, payload) SELECT hapax.outbox_xid(key), "
      "hapax.outbox_lane(key, 'i'), 'long', 't', key, 'x' FROM long");
  publish("k", 1, 1);
  receiver.refused = {"long"};
  const auto relay = start("a");
  relay->drain();
  EXPECT_EQ(receiver.sent, Ids{"k1"});
  EXPECT_EQ(text("SELECT reason FROM hapax.outbox_dead WHERE id = 'long'"),
            "its key is longer than 255 bytes");
}

// Y1: what was only held goes on in batches, in its order.
TEST_F(PostgresRetries, AKeyThatWaitedIsSentInBatches) {
  const auto relay = start("a");
  refuse_first(*relay, 6'001);
  for (int i = 0; i < 30; ++i) {
    if (i < 10) publish("k", 6'002 + i, 6'002 + i);
    relay->round();
  }
  EXPECT_EQ(receiver.sent, ids("k", 1, 6'011));
  EXPECT_EQ(text("SELECT count(*) FROM hapax.outbox_retry"), "0");
}

// Y1, Y4: one that is refused holds back the rest, which made no attempt.
TEST_F(PostgresRetries, WhatIsHeldAgainWaitsBehindTheOneThatIsRefused) {
  const auto relay = start("a");
  refuse_first(*relay, 9);
  publish("l", 1, 1);
  receiver.refused = {"k5"};
  relay->drain();
  EXPECT_THAT(receiver.sent, testing::UnorderedElementsAre("k1", "k2", "k3", "k4", "l1"));
  EXPECT_EQ(text("SELECT string_agg(attempts || ' ' || (next_at IS NOT NULL) || ' ' || taken, ', ' "
                 "ORDER BY n) FROM hapax.outbox_retry"),
            "1 true false, 0 false false, 0 false false, 0 false false, 0 false false");
  text(kDueNow);
  receiver.refused.clear();
  receiver.away = true;
  relay->drain();
  EXPECT_EQ(text("SELECT sum(attempts) FROM hapax.outbox_retry WHERE NOT taken"), "0");
  receiver.away = false;
  receiver.sent.clear();
  relay->round_after(Duration{60'000});
  relay->drain();
  EXPECT_EQ(receiver.sent, ids("k", 5, 9));
}

// Y4: nobody knows over which of them it died, so they are taken one by one.
TEST_F(PostgresRetries, AfterADeathTheyAreTakenAlone) {
  const auto relay = start("a");
  refuse_first(*relay, 6);
  relay->drain();
  EXPECT_EQ(receiver.sent, ids("k", 1, 6));
  receiver.sent.clear();
  publish("k", 7, 7);
  receiver.refused = {"k7"};
  relay->drain();
  publish("k", 8, 12);
  relay->drain();
  receiver.refused.clear();
  text("DELETE FROM hapax.outbox_retry WHERE attempts > 0");
  text(
      "UPDATE hapax.outbox_retry SET next_at = now() WHERE n = "
      "(SELECT min(n) FROM hapax.outbox_retry)");
  const auto dying = start("b");
  auto held = dying->source->lease({}, Duration{15'000});
  text("UPDATE hapax.outbox_lane SET lease_until = '-infinity'; DELETE FROM hapax.outbox_relay");
  held = dying->source->lease({}, Duration{15'000});
  ASSERT_EQ(held->held.size(), 16U);
  std::vector<relay::LaneTurn> turns;
  for (const relay::Lease& lease : held->held) turns.push_back({lease, {}, 500});
  EXPECT_EQ(dying->source->next(turns)->batches.at(0).records.size(), 5U);

  text("UPDATE hapax.outbox_lane SET lease_until = '-infinity'; DELETE FROM hapax.outbox_relay");
  const auto next = start("c");
  EXPECT_EQ(testing_relay::most_taken_until(*next, receiver, 5), 1U);
  EXPECT_EQ(receiver.sent, ids("k", 8, 12));
}

// Written while the clock was a day ahead.
TEST_F(PostgresRetries, ALeaseOfAnotherTimeHoldsNobodyUp) {
  const auto gone = start("gone");
  refuse_first(*gone, 2);
  text(
      "UPDATE hapax.outbox_lane SET lease_until = lease_until + interval '1 day'; "
      "UPDATE hapax.outbox_relay SET alive_until = alive_until + interval '1 day'; "
      "UPDATE hapax.outbox_retry SET next_at = next_at + interval '1 day'");
  publish("l", 1, 1);
  const auto relay = start("b", {.lease = Duration{1'000}, .margin = Duration{200}});
  relay->round();
  EXPECT_EQ(relay->engine.lanes(), 0U) << "whoever lives has time to renew it";
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{30};
  while (relay->engine.lanes() < 16 && std::chrono::steady_clock::now() < until) {
    relay->round_after(Duration{1'000});
  }
  relay->drain();
  EXPECT_EQ(relay->engine.lanes(), 16U);
  EXPECT_THAT(receiver.sent, testing::UnorderedElementsAre("k1", "k2", "l1"));
}

// One that is as long as a relay may ask for is kept.
TEST_F(PostgresRetries, ALongLeaseIsKept) {
  const auto holder = start("holder", {.lease = std::chrono::hours{1}});
  holder->drain();
  const auto relay = start("b");
  relay->drain();
  EXPECT_EQ(relay->engine.lanes(), 0U);
}

}  // namespace
}  // namespace hapax::postgres
