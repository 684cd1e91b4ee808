// Claims in the application's database: one winner, one result. The rules are those of the store
// (tests/contract/store_claims_test.cc), as far as a database without streams has them.
#include "application.h"

namespace hapax::application {
namespace {

using testing::HasSubstr;

class ClaimsTest : public ApplicationTest {
 protected:
  void SetUp() override {
    ApplicationTest::SetUp();
    claims_.emplace(database(), "pay");
  }
  JobClaims& claims() { return *claims_; }
  Result<Verdict> lock(const std::string& key, const std::string& owner = "one",
                       std::string_view content = "10 EUR", OnLapse on_lapse = OnLapse::kTakeOver) {
    return claims().check_and_lock(key, owner, limits::kLeaseDefault, content, on_lapse);
  }
  Fence claim(const std::string& key) { return as<Claimed>(lock(key)).fence; }
  Fence claim_unknown(const std::string& key) {
    const Fence fence = claim(key);
    as<Done>(claims().mark_unknown(key, fence, "time-out"));
    return fence;
  }
  JobStatus status(const std::string& key) { return *claims().get_status(key); }
  std::int64_t audited(const std::string& where) {
    return app_->number("SELECT count(*) FROM " + table("claim_audit") + " WHERE " + where);
  }
  // What must hold does so for another process, too.
  void always(const std::function<void()>& holds) {
    holds();
    app_ = start();
    claims_.emplace(database(), "pay");
    holds();
  }

  std::optional<JobClaims> claims_;
};
INSTANTIATE_TEST_SUITE_P(All, ClaimsTest, testing::ValuesIn(all_kinds()), name_of);

TEST_P(ClaimsTest, the_first_one_wins_and_the_next_is_told_who_works_on_it) {
  const auto won = as<Claimed>(lock("k"));
  EXPECT_GT(won.fence, Fence{0});
  EXPECT_EQ(won.attempt, 1U);
  always([&] {
    EXPECT_EQ(as<InProgress>(lock("k", "two")), (InProgress{"one", won.lease_until, 1}));
    EXPECT_EQ(as<InProgress>(lock("k", "one")).owner, "one");
    EXPECT_EQ(status("k"), JobStatus::kProcessing);
  });
}

TEST_P(ClaimsTest, fences_grow_and_scopes_do_not_meet) {
  Fence before;
  for (const char* key : {"a", "b", "c"}) {
    const Fence fence = claim(key);
    EXPECT_GT(fence, before);
    before = fence;
  }
  as<Claimed>(JobClaims(database(), "payk").check_and_lock("a", "one"));
  as<InProgress>(lock("a", "two"));
}

TEST_P(ClaimsTest, what_was_not_filled_in_is_refused) {
  JobClaims nameless(database(), "");
  for (const auto& refused : {lock(""), nameless.check_and_lock("k", "one"),
                              claims().check_and_lock("k", "one", Duration{-1}),
                              claims().check_and_lock("k", "one", Duration{0}),
                              claims().renew("k", Fence{1}, Duration{-1})}) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::kLimitExceeded) << refused.error().text();
  }
  EXPECT_EQ(count(table("claims")), 0);
  if (GetParam().name == "sqlite") {
    const Status told = app_->run(
        "INSERT OR IGNORE INTO hapax_claims (scope, key, state, owner, fence, attempts, "
        "lease_until, first_seen) VALUES ('s', '', 'processing', 'o', 1, 1, 1, 1)");
    EXPECT_EQ(told.error().code, Errc::kLimitExceeded);
    return;
  }
  for (const std::string call :
       {"check_and_lock('s', '', 'o', '1 s')", "check_and_lock('', 'k', 'o', '1 s')",
        "check_and_lock('s', 'k', 'o', '-1 s')", "check_and_lock('s', 'k', 'o', '0')",
        "check_and_lock('s', 'k', 'o', '1 s', on_lapse => 'maybe')", "renew('s', 'k', 1, '-1 s')",
        "mark_complete('s', 'k', 1, 'x', '-1 s')", "mark_complete('s', '', 1)"}) {
    const Status told = app_->run("SELECT hapax." + call);
    ASSERT_FALSE(told) << call;
    EXPECT_EQ(told.error().code, Errc::kLimitExceeded) << told.error().text();
  }
}

TEST_P(ClaimsTest, other_content_conflicts_before_anything_else_is_told) {
  claim("processing");
  as<Done>(claims().mark_complete("completed", claim("completed")));
  claim_unknown("unknown");
  always([&] {
    for (const char* key : {"processing", "completed", "unknown"}) {
      SCOPED_TRACE(key);
      const auto told = as<Conflict>(lock(key, "two", "11 EUR"));
      EXPECT_NE(told.stored, told.received);
    }
  });
}

TEST_P(ClaimsTest, when_the_lease_is_over_the_next_one_takes_over_and_the_late_one_is_fenced) {
  const auto first = as<Claimed>(lock("k", "one"));
  lapse();
  const auto second = as<Claimed>(lock("k", "two"));
  EXPECT_GT(second.fence, first.fence);
  EXPECT_EQ(second.attempt, 2U);
  always([&] {
    const Fenced told{second.fence.value, first.fence.value};
    EXPECT_EQ(as<Fenced>(claims().mark_complete("k", first.fence)), told);
    EXPECT_EQ(as<Fenced>(claims().mark_failed("k", first.fence, "no")), told);
    EXPECT_EQ(as<Fenced>(claims().mark_unknown("k", first.fence, "?")), told);
    EXPECT_EQ(as<Fenced>(claims().release("k", first.fence)), told);
    EXPECT_EQ(as<Fenced>(claims().renew("k", first.fence)), told);
    EXPECT_EQ(as<InProgress>(lock("k", "three")).owner, "two");
  });
  as<Done>(claims().mark_complete("k", second.fence));
  EXPECT_EQ(as<Fenced>(claims().mark_complete("k", first.fence)).current, second.fence.value);
}

TEST_P(ClaimsTest, a_claim_tells_what_became_of_earlier_owners) {
  const auto first = as<Claimed>(lock("k"));
  EXPECT_EQ(first.former, Former::kNone);
  as<Done>(claims().mark_failed("k", first.fence, "no"));
  EXPECT_EQ(as<Claimed>(lock("k")).former, Former::kFailed);
  lapse();
  const auto third = as<Claimed>(lock("k"));
  EXPECT_EQ(third.former, Former::kLapsed);
  as<Done>(claims().mark_failed("k", third.fence, "no"));
  EXPECT_EQ(as<Claimed>(lock("k")).former, Former::kLapsed);  // That one may have done it.
}

TEST_P(ClaimsTest, a_late_holder_whom_nobody_replaced_may_still_settle) {
  const Fence fence = claim("k");
  lapse();
  as<Done>(claims().mark_complete("k", fence));
  as<DuplicateClaim>(lock("k"));
}

TEST_P(ClaimsTest, renewing_prolongs_the_lease) {
  const auto won = as<Claimed>(lock("k"));
  const Time until = as<Renewed>(claims().renew("k", won.fence, std::chrono::hours{1})).lease_until;
  EXPECT_GT(until, won.lease_until);
  EXPECT_EQ(as<InProgress>(lock("k", "two")).lease_until, until);
  as<Done>(claims().mark_failed("k", won.fence, "no"));
  EXPECT_EQ(claims().renew("k", won.fence).error().code, Errc::kPreconditionFailed);
  EXPECT_EQ(as<Fenced>(claims().renew("never", Fence{1})).current, 0U);
}

TEST_P(ClaimsTest, duplicates_get_the_result_byte_for_byte_and_the_first_one_stays) {
  const std::string nuls("a\0b\xff", 4);
  const Fence fence = claim("k");
  as<Done>(claims().mark_complete("k", fence, nuls));
  always([&] {
    as<Done>(claims().mark_complete("k", fence, nuls));
    as<Done>(claims().mark_complete("k", fence, "another"));
    const auto told = as<DuplicateClaim>(lock("k", "two"));
    EXPECT_EQ(told.result->body, nuls);
    EXPECT_EQ(told.fence, fence);
    EXPECT_EQ(told.expires_at, Time::max());
    as<Fenced>(claims().mark_failed("k", fence, "no"));
    as<Fenced>(claims().mark_unknown("k", fence, "?"));
  });
}

TEST_P(ClaimsTest, a_failed_one_may_be_claimed_again_even_for_other_content) {
  const Fence fence = claim("k");
  as<Done>(claims().mark_failed("k", fence, "card declined"));
  always([&] {
    as<Done>(claims().mark_failed("k", fence, "again"));
    EXPECT_EQ(status("k"), JobStatus::kFailed);
    EXPECT_EQ(
        app_->number("SELECT count(*) FROM " + table("claims") + " WHERE reason = 'card declined'"),
        1);
  });
  const auto next = as<Claimed>(lock("k", "two", "9 EUR"));
  EXPECT_GT(next.fence, fence);
  EXPECT_EQ(next.attempt, 2U);
  as<Fenced>(claims().mark_complete("k", fence));
  as<Conflict>(lock("k", "three", "10 EUR"));
}

TEST_P(ClaimsTest, an_unknown_outcome_is_held_until_somebody_decides) {
  const Fence fence = claim_unknown("k");
  lapse();  // No lease ends it.
  always([&] {
    const auto told = as<UnknownOutcome>(lock("k", "two"));
    EXPECT_EQ(told.owner, "one");
    EXPECT_EQ(told.reason, "time-out");
    EXPECT_EQ(status("k"), JobStatus::kUnknown);
    as<Done>(claims().mark_unknown("k", fence, "again"));
    EXPECT_EQ(claims().release("k", fence).error().code, Errc::kPreconditionFailed);
    EXPECT_EQ(*Inbox(database()).forget_expired(), 0U);
  });
  as<Done>(claims().mark_complete("k", fence, "found it"));
  EXPECT_EQ(as<DuplicateClaim>(lock("k")).result->body, "found it");
}

// The lease of a worker that may have done its work: nobody does it again by chance.
TEST_P(ClaimsTest, a_lapse_is_an_unknown_outcome_if_either_of_the_two_says_so) {
  for (const auto& [first, second] : {std::pair{OnLapse::kUnknown, OnLapse::kTakeOver},
                                      {OnLapse::kTakeOver, OnLapse::kUnknown}}) {
    const std::string key = first == OnLapse::kUnknown ? "opener" : "next";
    const Fence fence = as<Claimed>(lock(key, "one", "10 EUR", first)).fence;
    EXPECT_EQ(as<InProgress>(lock(key, "two", "10 EUR", second)).owner, "one");
    lapse();
    EXPECT_EQ(status(key),
              first == OnLapse::kUnknown ? JobStatus::kUnknown : JobStatus::kProcessing);
    as<Conflict>(lock(key, "two", "11 EUR", second));
    const auto told = as<UnknownOutcome>(lock(key, "two", "10 EUR", second));
    EXPECT_EQ(told.owner, "one");
    EXPECT_EQ(told.reason, "the lease of one ran out at 2020-01-01T00:00:00.000Z");
    always([&] {
      as<UnknownOutcome>(lock(key, "three"));
      EXPECT_EQ(status(key), JobStatus::kUnknown);
    });
    as<Done>(claims().mark_complete(key, fence));  // The late owner knows best.
    as<DuplicateClaim>(lock(key));
  }
}

TEST_P(ClaimsTest, resolving_is_audited_with_actor_and_reason) {
  for (const char* key : {"a", "b", "c"}) claim_unknown(key);
  as<Claimed>(lock("lapsed", "one", "", OnLapse::kUnknown));
  lapse();
  const JobClaims::Act act{"ann", "asked the bank"};
  EXPECT_TRUE(claims().resolve("a", Resolution::kCompleted, act, "paid"));
  EXPECT_TRUE(claims().resolve("b", Resolution::kNotApplied, act));
  EXPECT_TRUE(claims().resolve("c", Resolution::kRelease, act));
  // Nobody claimed it since, and its status is unknown all the same.
  EXPECT_TRUE(claims().resolve("lapsed", Resolution::kNotApplied, act));
  always([&] {
    EXPECT_EQ(as<DuplicateClaim>(lock("a")).result->body, "paid");
    EXPECT_EQ(status("b"), JobStatus::kFailed);
    EXPECT_EQ(status("c"), JobStatus::kNotSeen);
    EXPECT_EQ(audited("actor = 'ann' AND reason = 'asked the bank' AND scope = 'pay'"), 4);
    EXPECT_EQ(audited("act = 'resolve-completed' AND key = 'a'"), 1);
    EXPECT_EQ(audited("act = 'resolve-not-applied' AND key = 'b'"), 1);
    EXPECT_EQ(audited("act = 'release' AND key = 'c'"), 1);
    for (const char* key : {"a", "nothing"}) {
      const Status refused = claims().resolve(key, Resolution::kRelease, act);
      EXPECT_EQ(refused.error().code, Errc::kPreconditionFailed) << refused.error().text();
      EXPECT_THAT(refused.error().detail, HasSubstr("only an unknown outcome can be resolved"));
    }
    EXPECT_EQ(audited("true"), 4);
  });
  EXPECT_EQ(as<Claimed>(lock("b")).attempt, 2U);
  EXPECT_EQ(as<Claimed>(lock("c")).attempt, 1U);
}

TEST_P(ClaimsTest, nobody_resolves_or_forgets_without_a_name) {
  claim_unknown("k");
  for (const JobClaims::Act& act : {JobClaims::Act{"", "why"}, {"ann", ""}}) {
    EXPECT_EQ(claims().resolve("k", Resolution::kRelease, act).error().code,
              Errc::kInvalidArgument);
    EXPECT_EQ(claims().forget("k", act).error().code, Errc::kInvalidArgument);
  }
  as<UnknownOutcome>(lock("k"));
}

TEST_P(ClaimsTest, a_released_one_is_as_if_never_claimed) {
  const Fence fence = claim("k");
  as<Done>(claims().release("k", fence));
  always([&] {
    EXPECT_EQ(status("k"), JobStatus::kNotSeen);
    EXPECT_EQ(as<Fenced>(claims().mark_complete("k", fence)).current, 0U);
  });
  const auto next = as<Claimed>(lock("k"));
  EXPECT_EQ(next.attempt, 1U);
  EXPECT_GT(next.fence, fence);
}

TEST_P(ClaimsTest, forgetting_removes_a_key_in_any_state_and_fences_its_holder) {
  const Fence processing = claim("processing");
  as<Done>(claims().mark_complete("completed", claim("completed")));
  claim_unknown("unknown");
  const JobClaims::Act act{"ann", "test data"};
  for (const char* key : {"processing", "completed", "unknown"}) {
    EXPECT_TRUE(claims().forget(key, act));
    EXPECT_EQ(status(key), JobStatus::kNotSeen);
  }
  as<Fenced>(claims().mark_complete("processing", processing));
  EXPECT_EQ(claims().forget("processing", act).error().code, Errc::kNotFound);
  EXPECT_EQ(audited("act = 'forget'"), 3);
}

TEST_P(ClaimsTest, after_the_retention_the_key_is_free_and_it_can_be_given_later) {
  const Window none{std::chrono::seconds{0}};
  const Fence fence = claim("k");
  as<Done>(claims().mark_complete("k", fence, "x", none));
  EXPECT_EQ(status("k"), JobStatus::kNotSeen);
  EXPECT_EQ(as<Claimed>(lock("k", "two", "other content")).attempt, 1U);
  as<Done>(claims().mark_complete("forever", claim("forever")));
  claim_unknown("unknown");
  const auto last = claims().retain(none);
  ASSERT_TRUE(last) << last.error().text();
  EXPECT_EQ(*last, "unknown");
  EXPECT_EQ(*claims().retain(none, **last), std::nullopt);
  EXPECT_EQ(status("forever"), JobStatus::kNotSeen);
  EXPECT_EQ(status("unknown"), JobStatus::kUnknown);
}

}  // namespace
}  // namespace hapax::application
