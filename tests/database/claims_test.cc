// Claims in the application's database: what the suite of tests/contract/store_claims_test.cc,
// which runs over them, cannot ask of every backend.
#include "application.h"

namespace hapax::application {
namespace {

class ClaimsTest : public ApplicationTest {
 protected:
  void SetUp() override {
    ApplicationTest::SetUp();
    claims_.emplace(database(), "pay");
  }
  JobClaims& claims() { return *claims_; }
  Result<Verdict> lock(const std::string& key, OnLapse on_lapse = OnLapse::kTakeOver) {
    return claims().check_and_lock(key, "one", limits::kLeaseDefault, "10 EUR", on_lapse);
  }
  Fence claim(const std::string& key) { return as<Claimed>(lock(key)).fence; }
  JobStatus status(const std::string& key) { return *claims().get_status(key); }

  std::optional<JobClaims> claims_;
};
INSTANTIATE_TEST_SUITE_P(All, ClaimsTest, testing::ValuesIn(all_kinds()), name_of);

TEST_P(ClaimsTest, what_was_not_filled_in_is_refused) {
  JobClaims nameless(database(), "");
  for (const auto& refused : {lock(""), nameless.check_and_lock("k", "one"),
                              claims().check_and_lock("k", "one", Duration{-1}),
                              claims().check_and_lock("k", "one", Duration{0}),
                              claims().renew("k", Fence{1}, Duration{-1})}) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::kInvalidArgument) << refused.error().text();
  }
  EXPECT_EQ(count(table("claims")), 0);
  if (GetParam().name == "sqlite") {
    const Status told = app_->run(
        "INSERT OR IGNORE INTO hapax_claims (scope, key, state, owner, fence, attempts, "
        "lease_until, first_seen) VALUES ('s', '', 'processing', 'o', 1, 1, 1, 1)");
    EXPECT_EQ(told.error().code, Errc::kInvalidArgument);
    return;
  }
  for (const std::string call :
       {"check_and_lock('s', '', 'o', '1 s')", "check_and_lock('', 'k', 'o', '1 s')",
        "check_and_lock('s', 'k', 'o', '-1 s')", "check_and_lock('s', 'k', 'o', '0')",
        "check_and_lock('s', 'k', 'o', '1 s', on_lapse => 'maybe')", "renew('s', 'k', 1, '-1 s')",
        "mark_complete('s', 'k', 1, 'x', '-1 s')", "mark_complete('s', '', 1)",
        "claim_drop('s', '', 1)", "resolve('s', '', 'release', 'ann', 'why')",
        "forget('s', '', 'ann', 'why')", "forget('', 'k', 'ann', 'why')",
        "forget('s', 'k', '', 'why')", "resolve('s', 'k', 'maybe', 'ann', 'why')"}) {
    const Status told = app_->run("SELECT hapax." + call);
    ASSERT_FALSE(told) << call;
    EXPECT_EQ(told.error().code, Errc::kInvalidArgument) << told.error().text();
  }
}

TEST_P(ClaimsTest, a_lapse_of_unknown_outcome_tells_when) {
  as<Claimed>(lock("k", OnLapse::kUnknown));
  lapse();
  const auto told = as<UnknownOutcome>(lock("k"));
  EXPECT_EQ(told.owner, "one");
  EXPECT_EQ(told.reason,
            "the lease of owner 'one' ran out at 2020-01-01T00:00:00.000Z before the owner "
            "settled; it may have done the work");
}

TEST_P(ClaimsTest, an_unknown_outcome_is_never_forgotten) {
  as<Done>(claims().mark_unknown("k", claim("k"), "time-out"));
  lapse();
  EXPECT_EQ(*Inbox(database()).forget_expired(), 0U);
  EXPECT_EQ(as<UnknownOutcome>(lock("k")).reason, "time-out");
}

TEST_P(ClaimsTest, after_the_retention_the_key_is_free_and_it_can_be_given_later) {
  const Window none{std::chrono::seconds{0}};
  const Fence fence = claim("k");
  as<Done>(claims().mark_complete("k", fence, "x", none));
  EXPECT_EQ(status("k"), JobStatus::kNotSeen);
  const auto next =
      as<Claimed>(claims().check_and_lock("k", "two", limits::kLeaseDefault, "other content"));
  EXPECT_EQ(next.attempt, 1U);
  as<Done>(claims().mark_complete("forever", claim("forever")));
  EXPECT_EQ(as<DuplicateClaim>(lock("forever")).expires_at, Time::max());
  as<Done>(claims().mark_unknown("unknown", claim("unknown"), "time-out"));
  const auto last = claims().retain(none);
  ASSERT_TRUE(last) << last.error().text();
  EXPECT_EQ(*last, "unknown");
  EXPECT_EQ(*claims().retain(none, **last), std::nullopt);
  EXPECT_EQ(status("forever"), JobStatus::kNotSeen);
  EXPECT_EQ(status("unknown"), JobStatus::kUnknown);
}

}  // namespace
}  // namespace hapax::application
