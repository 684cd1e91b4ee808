#include "delivery/attempt_pages.h"

#include <limits>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "delivery/attempt_log.h"
#include "delivery/logged_source.h"
#include "delivery/stream_stock_test.h"

namespace hapax::delivery {
namespace {

using testing::ElementsAre;

Attempt attempt_of(std::string key, AttemptOutcome outcome = AttemptOutcome::kDelivered) {
  return {.key = std::move(key), .outcome = outcome};
}

class AttemptPages : public testing::Test {
 protected:
  // One commit, a second after the one before.
  void write(std::vector<Attempt> attempts) {
    clock_.advance(1'000);
    log_.note(std::move(attempts));
    log_.write();
  }
  [[nodiscard]] Time at_second(int second) const {
    return RuleStore::kStart + Duration{second * 1'000};
  }
  AttemptPage find(const AttemptQuery& query, std::uint64_t bytes_max = kAttemptsLookedAtBytes) {
    return find_attempts(store_, "erp.attempts", query, bytes_max).value();
  }
  static std::vector<std::string> keys_of(const AttemptPage& page) {
    std::vector<std::string> keys;
    for (const FoundAttempt& each : page.attempts) keys.push_back(each.logged.attempt.key);
    return keys;
  }
  // All pages, one after the other.
  std::vector<std::string> read_all(AttemptQuery query, std::uint64_t bytes_max) {
    std::vector<std::string> all;
    for (int i = 0; i < 100; ++i) {
      const AttemptPage page = find(query, bytes_max);
      for (std::string& key : keys_of(page)) all.push_back(std::move(key));
      if (!page.next) return all;
      query.from = *page.next;
    }
    ADD_FAILURE() << "the pages do not end";
    return all;
  }

  sim::SimClock clock_;
  RuleStore store_{clock_};
  AttemptLog log_{store_, clock_, {"erp.attempts", Duration{600'000}, 1 << 20}, {}};
};

TEST_F(AttemptPages, FollowEachOtherWithoutGapOrRepetition) {
  write({attempt_of("a"), attempt_of("b"), attempt_of("c")});
  write({attempt_of("d")});
  write({attempt_of("e"), attempt_of("f")});
  for (const std::size_t max : {1U, 2U, 3U, 100U}) {
    EXPECT_THAT(read_all({.max = max}, kAttemptsLookedAtBytes),
                ElementsAre("a", "b", "c", "d", "e", "f"))
        << max;
  }
  EXPECT_THAT(read_all({}, 1), ElementsAre("a", "b", "c", "d", "e", "f"));
  EXPECT_FALSE(find({.max = 6}).next.has_value());
}

TEST_F(AttemptPages, TakeWhatIsAskedFor) {
  write({attempt_of("a", AttemptOutcome::kTryLater), attempt_of("b")});
  write({attempt_of("a")});
  EXPECT_THAT(keys_of(find({.keys = {{"a"}}})), ElementsAre("a", "a"));
  EXPECT_THAT(keys_of(find({.outcome = AttemptOutcome::kDelivered})), ElementsAre("b", "a"));
  EXPECT_THAT(keys_of(find({.endpoint = "crm"})), ElementsAre());
  EXPECT_THAT(keys_of(find({.keys = {{"nobody"}}})), ElementsAre());
}

TEST_F(AttemptPages, TakeATimeWithBothEnds) {
  for (const char* key : {"a", "b", "c", "d"}) write({attempt_of(key)});
  EXPECT_THAT(keys_of(find({.since = at_second(2), .until = at_second(3)})), ElementsAre("b", "c"));
  EXPECT_THAT(keys_of(find({.since = at_second(5)})), ElementsAre());
  EXPECT_THAT(keys_of(find({.until = at_second(1)})), ElementsAre("a"));
}

TEST_F(AttemptPages, GoOnBehindWhatWasRemoved) {
  write({attempt_of("a")});
  write({attempt_of("b")});
  const Op trim = Trim{"erp.attempts", Sequence{2}};
  ASSERT_TRUE(store_.commit({.ops = {&trim, 1}}).ok());
  EXPECT_THAT(keys_of(find({})), ElementsAre("b"));
  EXPECT_THAT(keys_of(find({.from = std::numeric_limits<std::uint64_t>::max()})), ElementsAre());
}

TEST_F(AttemptPages, RefuseAnotherStream) {
  EXPECT_EQ(find_attempts(store_, "erp.attempts", {}).error().code, Errc::kNotFound);
  const Op append = Append{.stream = "orders", .payload = "{}"};
  const Op create = CreateStream{"orders", {}};
  ASSERT_TRUE(store_.commit({.ops = {&create, 1}}).ok());
  ASSERT_TRUE(store_.commit({.ops = {&append, 1}}).ok());
  EXPECT_EQ(find_attempts(store_, "orders", {}).error().code, Errc::kPreconditionFailed);
}

TEST_F(AttemptPages, PassOverWhatOthersAppended) {
  const Op append = Append{.stream = "erp.attempts", .payload = "{}"};
  write({attempt_of("a")});
  ASSERT_TRUE(store_.commit({.ops = {&append, 1}}).ok());
  write({attempt_of("b")});
  EXPECT_THAT(keys_of(find({})), ElementsAre("a", "b"));
  ASSERT_TRUE(store_.commit({.ops = {&append, 1}}).ok());
  EXPECT_THAT(read_all({}, 1), ElementsAre("a", "b"));
  const Op trim = Trim{"erp.attempts", Sequence{2}};
  ASSERT_TRUE(store_.commit({.ops = {&trim, 1}}).ok());
  EXPECT_THAT(keys_of(find({})), ElementsAre("b"));
}

// --- the log beside a database

class SettledElsewhere final : public Source {
 public:
  Result<Hand> take(const TakeCall&) override { return Hand{}; }
  Status give_back(std::span<const Settlement>) override { return Ok{}; }
  void wait(Duration) override {}
  void nudge() override {}
};

class LogBesideADatabase : public AttemptPages {
 protected:
  [[nodiscard]] std::size_t logged() {
    const auto found = find_attempts(store_, "erp.attempts", {});
    return found ? found->attempts.size() : 0;
  }
  LoggedSource source_{std::make_unique<SettledElsewhere>(), clock_, std::move(log_)};
};

TEST_F(LogBesideADatabase, IsWrittenForManyAttemptsAtOnce) {
  source_.note_attempts({attempt_of("a")});
  ASSERT_TRUE(source_.take({}).ok());
  EXPECT_EQ(logged(), 1U);
  source_.note_attempts({attempt_of("b")});
  ASSERT_TRUE(source_.take({}).ok());
  EXPECT_EQ(logged(), 1U);
  source_.wait(Duration{1});
  EXPECT_EQ(logged(), 1U);
  clock_.advance(LoggedSource::kWriteEvery.count());
  ASSERT_TRUE(source_.take({}).ok());
  EXPECT_EQ(logged(), 2U);
}

TEST_F(LogBesideADatabase, IsWrittenBeforeARestAndAtTheEnd) {
  source_.note_attempts({attempt_of("a")});
  source_.wait(LoggedSource::kWriteEvery);
  EXPECT_EQ(logged(), 1U);
  source_.note_attempts({attempt_of("b")});
  ASSERT_TRUE(source_.give_back({}).ok());
  EXPECT_EQ(logged(), 2U);
}

}  // namespace
}  // namespace hapax::delivery
