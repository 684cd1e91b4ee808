#include "delivery/attempt_log.h"

#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/facts.h"
#include "delivery/stream_stock_test.h"

namespace hapax::delivery {
namespace {

using testing::HasSubstr;

constexpr std::string_view kKey =
    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

Attempt usual_attempt() {
  Attempt attempt{.key = std::string(kKey), .place = 1'500'000, .began_ms = 990};
  attempt.facts.status = 200;
  attempt.facts.times = {
      .waited = 40, .name = 21, .connected = 63, .first_byte = 9'800, .total = 9'890};
  return attempt;
}

Attempt failed_attempt(std::string answer) {
  Attempt attempt = usual_attempt();
  attempt.endpoint = "crm";
  attempt.number = 3;
  attempt.replay = 1;
  attempt.outcome = AttemptOutcome::kRejected;
  attempt.facts.status = 422;
  attempt.facts.answer = std::move(answer);
  attempt.reason = "HTTP 422";
  return attempt;
}

class AttemptLogTest : public testing::Test {
 protected:
  AttemptLogTest() { clock_.advance(1'000); }

  AttemptLog make_log(std::uint64_t bytes_max = 1 << 20) {
    return {store_,
            clock_,
            {.stream = "erp.attempts", .kept = Duration{60'000}, .bytes_max = bytes_max},
            [this](std::string_view line) { said_.emplace_back(line); }};
  }
  std::vector<LoggedAttempt> logged() {
    std::vector<LoggedAttempt> all;
    const auto found = store_.read({.stream = "erp.attempts", .max = 1'000});
    if (!found) return all;
    for (const Record& record : found->records) {
      auto some = read_attempts(record.payload, record.time).value();
      std::move(some.begin(), some.end(), std::back_inserter(all));
    }
    return all;
  }

  sim::SimClock clock_;
  RuleStore store_{clock_};
  std::vector<std::string> said_;
};

TEST_F(AttemptLogTest, TellsWhatItWasTold) {
  AttemptLog log = make_log();
  log.note({usual_attempt(), failed_attempt("no such customer")});
  log.write();
  const auto all = logged();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].attempt.key, kKey);
  EXPECT_EQ(all[0].attempt.place, 1'500'000U);
  EXPECT_EQ(all[0].attempt.endpoint, "");
  EXPECT_EQ(all[0].attempt.facts.times, usual_attempt().facts.times);
  EXPECT_EQ(all[0].noted - all[0].began, Duration{10});
  EXPECT_EQ(all[1].attempt.outcome, AttemptOutcome::kRejected);
  EXPECT_EQ(all[1].attempt.endpoint, "crm");
  EXPECT_EQ(all[1].attempt.number, 3U);
  EXPECT_EQ(all[1].attempt.replay, 1U);
  EXPECT_EQ(all[1].attempt.facts.status, 422);
  EXPECT_EQ(all[1].attempt.facts.answer, "no such customer");
  EXPECT_FALSE(all[1].attempt.facts.answer_cut);
  EXPECT_EQ(all[1].attempt.reason, "HTTP 422");
}

TEST_F(AttemptLogTest, KeepsKeysThatAreNoHash) {
  AttemptLog log = make_log();
  for (const std::string& key :
       {std::string("Zm9vYmFyYmF6"), std::string(64, 'x'), std::string(64, 'A'), std::string()}) {
    Attempt attempt = usual_attempt();
    attempt.key = key;
    log.note({attempt});
    log.write();
    EXPECT_EQ(logged().back().attempt.key, key);
  }
}

std::size_t bytes_on_disk(const std::vector<Attempt>& attempts) {
  AttemptWriter writer(1'000);
  for (const Attempt& attempt : attempts) writer.add(attempt);
  core::RecordAppended fact;
  fact.stream = core::StreamUid{100};
  fact.sequence = Sequence{1'500'000};
  fact.id_hash = {};
  fact.fingerprint = {};
  fact.payload = writer.payload();
  std::string bytes;
  core::encode(fact, bytes);
  constexpr std::size_t kLength = 2;
  return bytes.size() + core::kFactTrailer + kLength;
}

// What a success costs the journal, with its key and all that is around it.
TEST_F(AttemptLogTest, ASuccessTakesAtMostAHundredBytes) {
  EXPECT_LE(bytes_on_disk({usual_attempt()}), 100U) << "alone in its commit";
  EXPECT_LE(bytes_on_disk(std::vector<Attempt>(64, usual_attempt())), 64U * 50);
}

TEST_F(AttemptLogTest, KeepsSixteenKibibytesOfAnAnswer) {
  AttemptLog log = make_log();
  log.note({failed_attempt(std::string(AttemptLog::kAnswerMax + 1, 'x'))});
  log.write();
  EXPECT_EQ(logged()[0].attempt.facts.answer.size(), AttemptLog::kAnswerMax);
  EXPECT_TRUE(logged()[0].attempt.facts.answer_cut);
}

TEST_F(AttemptLogTest, KeepsNoMoreAnswersThanACommitMayHave) {
  AttemptLog log = make_log(16 << 20);
  log.note(std::vector<Attempt>(100, failed_attempt(std::string(AttemptLog::kAnswerMax, 'x'))));
  log.write();
  std::size_t bytes = 0;
  for (const LoggedAttempt& each : logged()) {
    const AttemptFacts& facts = each.attempt.facts;
    bytes += facts.answer.size();
    EXPECT_EQ(facts.answer_cut, facts.answer.empty());
  }
  EXPECT_EQ(bytes, AttemptLog::kAnswersPerCommit);
  log.note({failed_attempt("there is room again")});
  log.write();
  EXPECT_EQ(logged().back().attempt.facts.answer, "there is room again");
}

TEST_F(AttemptLogTest, DividesManyAmongRecords) {
  AttemptLog log = make_log();
  log.note(std::vector<Attempt>(kAttemptsPerRecord + 1, usual_attempt()));
  log.write();
  EXPECT_EQ(logged().size(), kAttemptsPerRecord + 1);
  EXPECT_EQ(store_.describe("erp.attempts")->last, Sequence{2});
}

TEST_F(AttemptLogTest, TheOldestGoWhenItIsFull) {
  AttemptLog log = make_log(20'000);
  for (int i = 0; i < 2'000; ++i) {
    log.note({usual_attempt()});
    log.write();
  }
  EXPECT_LT(logged().size(), 2'000U);
  EXPECT_GT(logged().size(), 10U);
  EXPECT_EQ(log.given_up(), 0U);
}

TEST_F(AttemptLogTest, TakesNewSettingsIntoUse) {
  AttemptLog log = make_log();
  log.note({usual_attempt()});
  log.write();
  AttemptLog larger = make_log(5 << 20);
  larger.note({usual_attempt()});
  larger.write();
  EXPECT_EQ(store_.describe("erp.attempts")->settings.retention.bytes, std::uint64_t{5 << 20});
  EXPECT_EQ(logged().size(), 2U);
}

// A retention of ours would remove somebody's records.
TEST_F(AttemptLogTest, LeavesAStreamOfSomebodyElseAlone) {
  const Op create = CreateStream{"erp.attempts", {}};
  ASSERT_TRUE(store_.commit({.ops = {&create, 1}}).ok());
  AttemptLog log = make_log();
  log.note({usual_attempt()});
  log.write();
  EXPECT_EQ(store_.describe("erp.attempts")->last, Sequence{0});
  EXPECT_EQ(store_.describe("erp.attempts")->settings, StreamSettings{});
  EXPECT_EQ(log.given_up(), 1U);
  ASSERT_EQ(said_.size(), 1U);
  EXPECT_THAT(said_[0], HasSubstr("erp.attempts"));
}

TEST_F(AttemptLogTest, MakesItsStreamAgain) {
  AttemptLog log = make_log();
  log.note({usual_attempt()});
  log.write();
  const Op gone = DeleteStream{"erp.attempts"};
  ASSERT_TRUE(store_.commit({.ops = {&gone, 1}}).ok());
  log.note({usual_attempt()});
  log.write();
  EXPECT_EQ(log.given_up(), 1U);
  log.note({usual_attempt()});
  log.write();
  EXPECT_EQ(logged().size(), 1U);
}

// Z21
TEST_F(AttemptLogTest, WritesNothingTwiceThatMayBeThere) {
  AttemptLog log = make_log();
  log.note({usual_attempt()});
  const auto ignore_op = [](const Op&) { return std::size_t{0}; };
  log.speak(ignore_op);
  log.hear_nothing(Errc::kUnavailable);
  log.speak(ignore_op);
  log.hear_nothing(Errc::kOutcomeUnknown);
  EXPECT_EQ(log.given_up(), 1U);
  log.write();
  EXPECT_EQ(logged().size(), 0U);
}

// Z22: a log that is not taken costs no settlement.
TEST_F(AttemptLogTest, IsGivenUpBeforeASettlement) {
  const Op made[] = {CreateStream{"orders", {}}, Append{.stream = "orders", .id = "o1"},
                     Append{.stream = "orders", .id = "o2"}};
  ASSERT_TRUE(store_.commit({.ops = made}).ok());
  StreamSource source(
      store_, clock_, stream_of_world("p1"),
      [](const Record& record, std::uint64_t) { return record.id; }, {},
      [this](std::string_view line) { said_.emplace_back(line); });
  const Hand hand = source.take({.room = 10, .lease = Duration{10'000}}).value();
  ASSERT_EQ(hand.records.size(), 2U);
  for (const Handout& handout : hand.records) {
    source.note_attempts({usual_attempt()});
    const Settlement settled{.number = handout.number, .kind = Settlement::Kind::kDelivered};
    ASSERT_TRUE(source.take({.settled = {&settled, 1}, .lease = Duration{10'000}}).ok());
    if (handout.number != hand.records.front().number) break;
    EXPECT_EQ(logged().size(), 1U);
    const Op gone = DeleteStream{"erp.attempts"};
    ASSERT_TRUE(store_.commit({.ops = {&gone, 1}}).ok());
  }
  EXPECT_EQ(store_.describe("orders")->consumers.at(0).floor, Sequence{2});
  ASSERT_EQ(said_.size(), 1U);
  EXPECT_THAT(said_[0], HasSubstr("attempts that are not in the log 'erp.attempts': 1"));
}

TEST_F(AttemptLogTest, BoundsWhatWaits) {
  AttemptLog log = make_log();
  log.note(std::vector<Attempt>(AttemptLog::kWaitingMax + 5, usual_attempt()));
  EXPECT_EQ(log.given_up(), 5U);
}

TEST(AttemptRecord, RefusesWhatIsNone) {
  AttemptWriter writer(1'000);
  writer.add(failed_attempt("text"));
  const std::string payload = writer.payload();
  ASSERT_TRUE(read_attempts(payload, Time{}).ok());
  for (std::size_t size = 0; size < payload.size(); ++size) {
    EXPECT_FALSE(read_attempts(payload.substr(0, size), Time{}).ok()) << size;
  }
  EXPECT_FALSE(read_attempts(R"({"order":1})", Time{}).ok());
}

}  // namespace
}  // namespace hapax::delivery
