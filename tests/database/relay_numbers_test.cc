// A relay over an outbox whose sequence went back.
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

constexpr int kSent = 20;
constexpr int kGiven = 5;  // where the sequence is after it went back

// Twenty events were sent, the last one alone in its lane; then the sequence went back, and five
// more were published in that lane, behind where it stands.
class RelayNumbers : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(text("SELECT hapax.outbox_lane('many', 'i') <> hapax.outbox_lane('last', 'i')"), "t");
    for (int n = 1; n < kSent; ++n) publish("many", "e" + std::to_string(n));
    publish("last", "e" + std::to_string(kSent));
    relay.drain();
    ASSERT_EQ(receiver.sent.size(), std::size_t{kSent});
    ASSERT_TRUE(relay.engine.stop().has_value());
    receiver.sent.clear();
    restored_at = text("SELECT clock_timestamp()");
    text(base::format("SELECT setval('hapax.outbox_seq', {})", kGiven));
    for (int n = 1; n <= 5; ++n) publish("last", "new-" + std::to_string(n));
  }

  std::string text(const std::string& sql) {
    const auto rows = app.run(sql);
    EXPECT_TRUE(rows.has_value()) << sql << ": " << (rows ? "" : rows.error().text());
    return rows ? rows->text(0, kOnly) : "";
  }
  void publish(const std::string& key, const std::string& id) {
    text("SELECT hapax.publish('t', 'x', '" + key + "', '" + id + "')");
  }

  std::string uri = Cluster::instance().make_database();
  Connection app = *Connection::open(uri);
  testing_relay::Receiver receiver;
  testing_relay::Relay relay{open(), receiver};
  std::string restored_at;
  const Ids news{"new-1", "new-2", "new-3", "new-4", "new-5"};

 private:
  Result<std::unique_ptr<relay::Source>> open() {
    EXPECT_TRUE(migrate(app, {}).has_value());
    HAPAX_TRY(auto source, OutboxSource::open({.uri = uri, .owner = "r", .listen = false}));
    return std::unique_ptr<relay::Source>(std::move(source));
  }
};

// Y10: what is behind the lane's position would never be found.
TEST_F(RelayNumbers, ThatWentBackAreNotRelayed) {
  const auto round = relay.engine.step();
  ASSERT_FALSE(round.has_value());
  EXPECT_EQ(round.error().code, Errc::kPreconditionFailed);
  EXPECT_THAT(round.error().detail,
              testing::AllOf(testing::HasSubstr("outbox_seq is at 10, but events up to 20"),
                             testing::HasSubstr("outbox_renumber")));
  EXPECT_EQ(text("SELECT count(*) FROM hapax.outbox_lane WHERE lease_until > now()"), "0");
}

// O1: a session that takes numbers in advance publishes behind where lanes stand.
TEST_F(RelayNumbers, ThatAreTakenInAdvanceAreNotRelayed) {
  text("SELECT hapax.outbox_renumber('" + restored_at + "')");
  for (const std::string change : {"CACHE 10", "INCREMENT BY 2", "INCREMENT BY -1"}) {
    ASSERT_TRUE(app.run("ALTER SEQUENCE hapax.outbox_seq " + change));
    const auto round = relay.engine.step();
    ASSERT_FALSE(round.has_value()) << change;
    EXPECT_EQ(round.error().code, Errc::kPreconditionFailed);
    EXPECT_THAT(round.error().detail, testing::HasSubstr("INCREMENT BY 1 CACHE 1"));
    ASSERT_TRUE(app.run("ALTER SEQUENCE hapax.outbox_seq INCREMENT BY 1 CACHE 1"));
  }
  relay.drain();
  EXPECT_EQ(receiver.sent, news);
}

// Y10: every event that was published since is sent, in order, and no other one.
TEST_F(RelayNumbers, AreMendedFromWhenTheyWentBack) {
  EXPECT_EQ(text("SELECT hapax.outbox_renumber('" + restored_at + "')"), "5");
  publish("last", "new-6");
  relay.drain();
  Ids all = news;
  all.push_back("new-6");
  EXPECT_EQ(receiver.sent, all);
  EXPECT_EQ(text("SELECT hapax.outbox_renumber('-infinity')"), "0");
}

// A relay that stored a retry under a number that is taken would drop it.
TEST_F(RelayNumbers, OfRetriesAreMendedToo) {
  text(
      "INSERT INTO hapax.outbox_retry (n, lane, part, seq, attempts, last_error) OVERRIDING SYSTEM "
      "VALUE VALUES (1, 0, 0, 0, 1, 'older') RETURNING n");
  text("SELECT hapax.outbox_renumber('" + restored_at + "')");
  receiver.refused = {"new-5"};
  relay.drain();
  EXPECT_EQ(text("SELECT max(n) FROM hapax.outbox_retry WHERE last_error <> 'older'"), "2");
}

// Y1, Y4: nor if only the sequence of the outbox was mended.
TEST_F(RelayNumbers, OfRetriesThatAreTakenDropNothing) {
  text(base::format("SELECT setval('hapax.outbox_seq', {})", kSent));
  text(
      "INSERT INTO hapax.outbox_retry (n, lane, part, seq, attempts, last_error) OVERRIDING SYSTEM "
      "VALUE VALUES (1, 0, 0, 0, 1, 'older') RETURNING n");
  publish("last", "refused");
  receiver.refused = {"refused"};
  for (int i = 0; i < 4; ++i) static_cast<void>(relay.engine.step());
  EXPECT_EQ(text("SELECT count(*) FROM hapax.outbox_retry WHERE last_error <> 'older'"), "1");
}

TEST_F(RelayNumbers, AreMendedFromEarlierWithRepetitionsOnly) {
  EXPECT_EQ(text("SELECT hapax.outbox_renumber('-infinity')"), "15");
  relay.drain();
  EXPECT_EQ(receiver.sent.size(), 15U);
  EXPECT_THAT(receiver.sent, testing::IsSupersetOf(news));
}

}  // namespace
}  // namespace hapax::postgres
