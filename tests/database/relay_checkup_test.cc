// What `hapax doctor` says of a relay whose destination is away: it renews its leases, looks after
// its pauses whether it is back, and writes each time how far it is.
#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../postgres/cluster.h"
#include "host/temporary_folder_test.h"
#include "postgres/checkup.h"
#include "postgres/migrate.h"
#include "postgres/outbox_source.h"
#include "relay_rig.h"
#include "sqlite/checkup.h"
#include "sqlite/migrate.h"
#include "sqlite/outbox_source.h"

namespace hapax {
namespace {

using tables::Finding;
using tables::Severity;
using testing::HasSubstr;
using testing_relay::Receiver;
using testing_relay::Relay;

constexpr Duration kBeyondPauses{60'000};

Finding found_in(const tables::Findings& findings, const std::string& check) {
  const auto& all = findings.all();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const Finding& each) { return each.check == check; });
  return found == all.end() ? Finding{} : *found;
}

class PostgresCheckup : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(postgres::migrate(app_, {}).has_value()); }

  void run(const std::string& sql) {
    const auto done = app_.run(sql);
    ASSERT_TRUE(done.has_value()) << sql << ": " << done.error().text();
  }
  void publish() { run("SELECT hapax.publish('t', 'x', 'k' || n) FROM generate_series(1, 40) n"); }
  // For all that is in the database.
  void let_ten_minutes_pass() {
    run("UPDATE hapax.outbox SET created_at = created_at - interval '10 min'; "
        "UPDATE hapax.outbox_progress SET at = at - interval '10 min', "
        "moved_at = moved_at - interval '10 min'");
  }
  [[nodiscard]] Result<std::unique_ptr<relay::Source>> source(const std::string& owner) const {
    HAPAX_TRY(auto source,
              postgres::OutboxSource::open({.uri = uri_, .owner = owner, .listen = false}));
    return std::unique_ptr<relay::Source>(std::move(source));
  }
  Finding found(const std::string& check) {
    tables::Findings findings;
    postgres::check_tables({.uri = uri_, .shown = "DB"}, app_, findings);
    return found_in(findings, check);
  }

  const std::string uri_ = testing_postgres::Cluster::instance().make_database();
  postgres::Connection app_ = *postgres::Connection::open(uri_);
  Receiver receiver_;
};

TEST_F(PostgresCheckup, LanesWhoseDestinationIsAwayAreStuck) {
  publish();
  receiver_.away = true;
  Relay relay(source("relay-7"), receiver_);
  relay.drain();
  EXPECT_EQ(found("waiting").severity, Severity::kOk);
  let_ten_minutes_pass();
  relay.clock.move(kBeyondPauses);
  relay.drain();
  const Finding stuck = found("stuck lanes");
  EXPECT_EQ(stuck.severity, Severity::kCritical);
  EXPECT_THAT(stuck.found, HasSubstr("of 16 lanes are held by relay-7 and do not move"));
  EXPECT_THAT(stuck.found, HasSubstr("nothing was sent for 10 min"));
  EXPECT_THAT(stuck.remedy, HasSubstr("whether its destination answers"));
  EXPECT_EQ(found("waiting").remedy, "");

  receiver_.away = false;
  relay.clock.move(kBeyondPauses);
  relay.drain();
  EXPECT_EQ(found("stuck lanes").found, "");
}

TEST_F(PostgresCheckup, LanesThatHaveJustMovedOrAreNewlyHeldAreBehind) {
  publish();
  Relay relay(source("relay-7"), receiver_);
  relay.drain();
  publish();
  run("UPDATE hapax.outbox SET created_at = created_at - interval '10 min'");
  receiver_.away = true;
  relay.drain();
  EXPECT_EQ(found("stuck lanes").found, "");
  EXPECT_EQ(found("waiting").severity, Severity::kWarning);
  EXPECT_THAT(found("waiting").remedy, HasSubstr("are behind"));

  ASSERT_TRUE(relay.engine.stop().has_value());
  let_ten_minutes_pass();
  Relay next(source("relay-8"), receiver_);
  next.drain();
  EXPECT_EQ(found("stuck lanes").found, "");
}

// A record that was refused waits for a relay, as a new one does.
TEST_F(PostgresCheckup, RetriesThatAreDueWaitForARelay) {
  run("SELECT hapax.publish('t', 'x', 'k', 'bad')");
  receiver_.refused = {"bad"};
  Relay relay(source("a"), receiver_);
  relay.drain();
  EXPECT_EQ(found("waiting").severity, Severity::kOk);
  ASSERT_TRUE(relay.engine.stop());
  EXPECT_EQ(found("no relay").check, "");
  let_ten_minutes_pass();
  run("UPDATE hapax.outbox_retry SET next_at = next_at - interval '10 min'");
  const Finding finding = found("no relay");
  EXPECT_EQ(finding.severity, Severity::kWarning);
  EXPECT_THAT(finding.found, HasSubstr("1 lanes have records that wait, the oldest for 9 min"));
  EXPECT_THAT(found("waiting").found, HasSubstr("1 records"));
  const auto report = relay.source->report();
  Duration oldest{0};
  for (const auto& lane : report->lanes) {
    oldest = std::max(oldest, lane.oldest_waiting.value_or(Duration{0}));
  }
  EXPECT_GE(oldest, std::chrono::minutes{10});
}

TEST_F(PostgresCheckup, NumbersThatAreTakenInAdvanceAreCritical) {
  EXPECT_EQ(found("numbers").severity, Severity::kOk);
  run("ALTER SEQUENCE hapax.outbox_seq CACHE 20");
  const Finding finding = found("numbers");
  EXPECT_EQ(finding.severity, Severity::kCritical);
  EXPECT_THAT(finding.found, HasSubstr("outbox_seq has CACHE 20"));
  EXPECT_THAT(finding.remedy, HasSubstr("ALTER SEQUENCE \"hapax\".outbox_seq INCREMENT BY 1"));
}

class SqliteCheckup : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(sqlite::migrate(app_, {}).has_value()); }

  void run(const std::string& sql) {
    const auto done = app_.run(sql);
    ASSERT_TRUE(done.has_value()) << sql << ": " << done.error().text();
  }
  void publish(const std::string& id) {
    run("INSERT INTO hapax_outbox (id, type, payload) VALUES ('" + id + "', 't', x'')");
  }
  void let_ten_minutes_pass() {
    run("UPDATE hapax_outbox SET created_at = created_at - 600000");
    run("UPDATE hapax_outbox_lane SET moved_at = moved_at - 600000");
  }
  [[nodiscard]] Result<std::unique_ptr<relay::Source>> source(const std::string& owner) const {
    HAPAX_TRY(auto source, sqlite::OutboxSource::open({.path = path_, .owner = owner}));
    return std::unique_ptr<relay::Source>(std::move(source));
  }
  Finding found(const std::string& check) const {
    tables::Findings findings;
    sqlite::check_file({.path = path_}, findings);
    return found_in(findings, check);
  }

  const host::TemporaryFolder folder_;
  const std::string path_ = folder_.text() + "/app.db";
  sqlite::Connection app_ = *sqlite::Connection::open(path_);
  Receiver receiver_;
};

TEST_F(SqliteCheckup, TheLaneWhoseDestinationIsAwayIsStuck) {
  for (const char* id : {"a", "a2", "a3"}) publish(id);
  receiver_.away = true;
  Relay relay(source("relay-7"), receiver_);
  relay.drain();
  EXPECT_EQ(found("waiting").severity, Severity::kOk);
  let_ten_minutes_pass();
  relay.clock.move(kBeyondPauses);
  relay.drain();
  const Finding stuck = found("stuck lanes");
  EXPECT_EQ(stuck.severity, Severity::kCritical);
  EXPECT_THAT(stuck.found, HasSubstr("relay-7 holds the lane and has sent nothing for 10 min"));

  receiver_.away = false;
  relay.clock.move(kBeyondPauses);
  relay.drain();
  receiver_.away = true;
  publish("b");
  run("UPDATE hapax_outbox SET created_at = created_at - 600000");
  relay.drain();
  EXPECT_EQ(found("stuck lanes").found, "");
  EXPECT_THAT(found("waiting").remedy, HasSubstr("the log of relay-7"));
}

}  // namespace
}  // namespace hapax
