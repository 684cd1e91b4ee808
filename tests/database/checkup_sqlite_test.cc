// What `hapax doctor` says of an SQLite file whose retries nobody takes.
#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/temporary_folder_test.h"
#include "relay_rig.h"
#include "sqlite/checkup.h"
#include "sqlite/migrate.h"
#include "sqlite/outbox_source.h"

namespace hapax::sqlite {
namespace {

using tables::Finding;
using tables::Severity;
using testing::HasSubstr;
using testing_relay::Ids;

class SqliteRetryCheckup : public testing::Test {
 protected:
  SqliteRetryCheckup() {
    EXPECT_TRUE(migrate(app_, {}));
    for (const char* id : {"a1", "a2", "a3"}) {
      run("INSERT INTO hapax_outbox (id, type, key, payload) VALUES ('" + std::string(id) +
          "', 't', 'a', 'x')");
    }
    receiver_.refused = {"a1"};
    testing_relay::Relay relay(source(), receiver_);
    relay.drain();
    EXPECT_TRUE(relay.engine.stop());
  }

  [[nodiscard]] Result<std::unique_ptr<relay::Source>> source() const {
    HAPAX_TRY(auto source, OutboxSource::open({.path = path_, .owner = "relay-7"}));
    return std::unique_ptr<relay::Source>(std::move(source));
  }
  void run(const std::string& sql) {
    const Status done = app_.run(sql);
    EXPECT_TRUE(done) << sql << ": " << done.error().text();
  }
  // And the second after which the retry is due.
  void let_ten_minutes_pass() {
    run("UPDATE hapax_outbox SET created_at = created_at - 600000; "
        "UPDATE hapax_outbox_retry SET next_at = next_at - 602000; "
        "UPDATE hapax_outbox_lane SET moved_at = moved_at - 600000");
  }
  [[nodiscard]] Finding found(const std::string& check) const {
    tables::Findings findings;
    check_file({.path = path_}, findings);
    const auto& all = findings.all();
    const auto it = std::find_if(all.begin(), all.end(),
                                 [&](const Finding& each) { return each.check == check; });
    return it == all.end() ? Finding{} : *it;
  }

  const host::TemporaryFolder folder_;
  const std::string path_ = folder_.text() + "/app.db";
  Connection app_ = *Connection::open(path_);
  testing_relay::Receiver receiver_;
};

TEST_F(SqliteRetryCheckup, ARetryThatNobodyTakesIsNotHealthy) {
  EXPECT_EQ(found("waiting").severity, Severity::kOk);
  let_ten_minutes_pass();
  const Finding nobody = found("no relay");
  EXPECT_NE(nobody.severity, Severity::kOk);
  EXPECT_THAT(nobody.found, HasSubstr("1 records"));
  EXPECT_THAT(nobody.found, HasSubstr("the oldest for 10 min"));

  run("UPDATE hapax_outbox_lane SET owner = 'r', lease_until = (unixepoch() + 15) * 1000");
  const Finding stuck = found("stuck lanes");
  EXPECT_EQ(stuck.severity, Severity::kCritical);
  EXPECT_THAT(stuck.found, HasSubstr("has sent nothing for 10 min"));
}

TEST_F(SqliteRetryCheckup, TheReportTellsHowLongARetryHasWaited) {
  testing_relay::Relay relay(source(), receiver_);
  EXPECT_LT(*relay.source->report()->lanes.at(0).oldest_waiting, Duration{600'000});
  let_ten_minutes_pass();
  EXPECT_GE(*relay.source->report()->lanes.at(0).oldest_waiting, Duration{600'000});
  run("DELETE FROM hapax_outbox_retry");
  EXPECT_FALSE(relay.source->report()->lanes.at(0).oldest_waiting.has_value());
}

// Somebody skips a record by deleting its retry: the next of its key go on with the next relay.
TEST_F(SqliteRetryCheckup, AKeyWhoseRetryWasDeletedGetsItsTurn) {
  run("DELETE FROM hapax_outbox_retry WHERE next_at IS NOT NULL");
  EXPECT_EQ(found("turns").severity, Severity::kCritical);
  EXPECT_THAT(found("turns").found, HasSubstr("1 keys"));
  testing_relay::Relay(source(), receiver_).drain();
  EXPECT_EQ(receiver_.sent, (Ids{"a2", "a3"}));
  EXPECT_EQ(found("turns").check, "");
}

}  // namespace
}  // namespace hapax::sqlite
