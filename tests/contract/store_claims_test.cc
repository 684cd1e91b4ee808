// Claims: one winner, one result. One suite for the claims of a store and for those in an
// application's own database (JobClaims).
#include <map>

#include "job_claim_backend.h"
#include "store_claim_backend.h"

namespace hapax::contract {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::SizeIs;

class Claims : public testing::TestWithParam<ClaimBackendKind> {
 protected:
  using First = ClaimBackend::First;

  Claims() { reopen(); }
  ClaimBackend& backend() { return *backend_; }
  void reopen() {
    backend_.reset();
    backend_ = GetParam().open(folder_.path());
  }
  // What a backend keeps does not depend on whether it was restarted or tidied up.
  void always(const std::function<void()>& check) {
    for (const char* when : {"at once", "after a restart", "after traffic and a restart"}) {
      SCOPED_TRACE(when);
      check();
      if (HasFailure()) return;
      if (std::string_view(when) == "after a restart") backend().churn();
      reopen();
    }
  }
  void wait_until(Time time) {
    while (backend().now() < time) std::this_thread::yield();
  }

  // Why this backend has no such feature; nullptr: it has it.
  static const char* lacks(Feature feature) {
    for (const Lack& lack : GetParam().lacks) {
      if (lack.feature == feature) return lack.reason;
    }
    return nullptr;
  }
  static bool has(Feature feature) { return lacks(feature) == nullptr; }
  // As this backend keeps it.
  static StoredResult kept(StoredResult result) {
    if (has(Feature::kFullResults)) return result;
    return {.body = std::move(result.body)};
  }

  ClaimBackend::Told tell(const Op& op, std::optional<std::string_view> commit_id = {}) {
    return backend().run(op, commit_id);
  }
  template <class Wanted>
  Wanted run(const Op& op) {
    return as<Wanted>(tell(op).verdict);
  }
  Error refusal(const Op& op) { return run<Refused>(op).error; }
  void expect_open(std::uint64_t count) {
    if (has(Feature::kCounts)) {
      EXPECT_EQ(backend().counts().open, count);
    }
  }
  void expect_unknown(std::uint64_t count) {
    if (has(Feature::kCounts)) {
      EXPECT_EQ(backend().counts().unknown, count);
    }
  }

  static Claim claim_of(std::string_view key, std::string_view owner = "one",
                        Duration lease = limits::kLeaseDefault) {
    return Claim{.scope = "pay", .key = key, .content = "10 EUR", .owner = owner, .lease = lease};
  }
  Fence claim(std::string_view key) { return run<Claimed>(claim_of(key)).fence; }
  Settle settle_of(std::string_view key, Fence fence, Outcome outcome,
                   std::string_view reason = {}) {
    return Settle{.scope = "pay", .key = key, .fence = fence, .outcome = outcome, .reason = reason};
  }
  Fence claim_unknown(std::string_view key) {
    const Fence fence = claim(key);
    run<Done>(settle_of(key, fence, Outcome::kUnknown, "time-out"));
    return fence;
  }
  std::optional<ClaimStatus> find(std::string_view key) { return backend().find("pay", key); }

 private:
  const host::TemporaryFolder folder_;
  std::unique_ptr<ClaimBackend> backend_;
};

TEST_P(Claims, TheFirstOneWinsAndTheNextIsToldWhoWorksOnIt) {
  const auto told = tell(claim_of("k"));
  const auto won = as<Claimed>(told.verdict);
  EXPECT_GT(won.fence, Fence{0});
  EXPECT_EQ(won.attempt, 1U);
  EXPECT_TRUE(told.when.after(limits::kLeaseDefault).holds(won.lease_until));
  always([&] {
    EXPECT_EQ(run<InProgress>(claim_of("k", "two")), (InProgress{"one", won.lease_until, 1}));
    EXPECT_EQ(run<InProgress>(claim_of("k", "one")).owner, "one");
    const auto status = find("k");
    ASSERT_TRUE(status);
    EXPECT_EQ(status->state, ClaimState::kProcessing);
    EXPECT_EQ(status->fence, won.fence);
    EXPECT_EQ(status->owner, "one");
    EXPECT_TRUE(told.when.holds(status->since));
    EXPECT_EQ(status->until, won.lease_until);
    expect_open(1);
  });
}

TEST_P(Claims, FencesGrowOverTheLifeOfTheStore) {
  Fence before;
  for (const char* key : {"a", "b", "c"}) {
    const Fence fence = claim(key);
    EXPECT_GT(fence, before);
    before = fence;
    reopen();
  }
}

TEST_P(Claims, KeysAndScopesAreAnyBytesAndDoNotMeet) {
  const bool any = has(Feature::kAnyBytes);
  const std::string nul(1, any ? '\0' : '\1');
  const std::string long_key(255, any ? '\xff' : '~');
  for (const std::string& key : {std::string("k"), nul, "k" + nul, long_key}) claim(key);
  run<Claimed>(Claim{.scope = "pay" + nul, .key = "k"});
  run<Claimed>(Claim{.scope = "payk", .key = "k"});
  run<Claimed>(Claim{.scope = "pa", .key = "yk"});
  always([&] { run<InProgress>(claim_of(long_key)); });
}

TEST_P(Claims, OtherContentConflictsBeforeAnythingElseIsTold) {
  claim("processing");
  run<Done>(settle_of("completed", claim("completed"), Outcome::kCompleted));
  claim_unknown("unknown");
  always([&] {
    for (const char* key : {"processing", "completed", "unknown"}) {
      SCOPED_TRACE(key);
      const auto told = run<Conflict>(Claim{.scope = "pay", .key = key, .content = "11 EUR"});
      EXPECT_NE(told.stored, told.received);
      EXPECT_EQ(told.stored, find(key)->fingerprint);
    }
  });
}

TEST_P(Claims, WhenTheLeaseIsOverTheNextOneTakesOverAndTheLateOneIsFenced) {
  const auto first = run<Claimed>(claim_of("k", "one", Duration{1}));
  wait_until(first.lease_until);
  reopen();
  const auto second = run<Claimed>(claim_of("k", "two"));
  EXPECT_GT(second.fence, first.fence);
  EXPECT_EQ(second.attempt, 2U);
  always([&] {
    const std::uint64_t before = backend().counts().fenced;
    const Fenced told{second.fence.value, first.fence.value};
    for (const Outcome outcome :
         {Outcome::kCompleted, Outcome::kFailed, Outcome::kUnknown, Outcome::kReleased}) {
      EXPECT_EQ(run<Fenced>(settle_of("k", first.fence, outcome)), told);
    }
    EXPECT_EQ(run<Fenced>(Renew{"pay", "k", first.fence}), told);
    if (has(Feature::kCounts)) {
      EXPECT_EQ(backend().counts().fenced, before + 5);
    }
    EXPECT_EQ(find("k")->owner, "two");
    EXPECT_EQ(find("k")->attempts, 2U);
  });
  run<Done>(settle_of("k", second.fence, Outcome::kCompleted));
  EXPECT_EQ(run<Fenced>(settle_of("k", first.fence, Outcome::kCompleted)).current,
            second.fence.value);
}

TEST_P(Claims, TheNextOwnerIsToldWhetherTheOneBeforeLapsedOrFailed) {
  const auto first = run<Claimed>(claim_of("lapses", "one", Duration{1}));
  EXPECT_EQ(first.former, Former::kNone);
  run<Done>(settle_of("fails", claim("fails"), Outcome::kFailed, "no route"));
  wait_until(first.lease_until);
  reopen();
  const auto taken_over = as<Claimed>(tell(claim_of("lapses"), "id").verdict);
  EXPECT_EQ(taken_over.former, Former::kLapsed);
  EXPECT_EQ(run<Claimed>(claim_of("fails")).former, Former::kFailed);
  if (has(Feature::kCommitIds)) {
    always([&] {
      const auto again = tell(claim_of("lapses"), "id");
      EXPECT_TRUE(again.repeated);
      EXPECT_EQ(as<Claimed>(again.verdict).former, Former::kLapsed);
    });
  }
  // That a later owner failed says nothing about the one who may have done it.
  run<Done>(settle_of("lapses", taken_over.fence, Outcome::kFailed));
  EXPECT_EQ(run<Claimed>(claim_of("lapses")).former, Former::kLapsed);
}

// K6: and that the commit of the claim that finds it out is refused takes nothing of it back.
TEST_P(Claims, ALapseMayBeAnUnknownOutcome) {
  Claim guarded = claim_of("guarded", "one", Duration{1});
  guarded.on_lapse = OnLapse::kUnknown;
  run<Claimed>(guarded);
  const auto plain = run<Claimed>(claim_of("plain", "one", Duration{1}));
  wait_until(plain.lease_until);
  EXPECT_EQ(find("guarded")->state, ClaimState::kUnknown);
  EXPECT_EQ(find("plain")->state, ClaimState::kProcessing);
  expect_unknown(1);
  Claim careful = claim_of("plain", "two");
  careful.on_lapse = OnLapse::kUnknown;
  run<UnknownOutcome>(careful);
  always([&] {
    for (const char* key : {"guarded", "plain"}) {
      const auto told = run<UnknownOutcome>(claim_of(key, "three"));
      EXPECT_EQ(told.owner, "one");
      EXPECT_THAT(told.reason, HasSubstr("the lease of owner 'one' ran out at"));
      EXPECT_THAT(told.reason, HasSubstr("before the owner settled; it may have done the work"));
      EXPECT_EQ(find(key)->state, ClaimState::kUnknown);
      EXPECT_EQ(find(key)->reason, told.reason);
      EXPECT_EQ(find(key)->since, told.since);
    }
    EXPECT_EQ(find("plain")->since, plain.lease_until);
    expect_unknown(2);
  });
  run<Done>(Resolve{"pay", "guarded", Resolution::kCompleted, {}, "ann", "asked the bank"});
  run<Done>(Resolve{"pay", "plain", Resolution::kNotApplied, {}, "ann", "asked the bank"});
  run<DuplicateClaim>(claim_of("guarded"));
  EXPECT_EQ(run<Claimed>(claim_of("plain")).former, Former::kFailed);
}

TEST_P(Claims, ALapseOfUnknownOutcomeIsDecidedByItsOwnerOrByAPerson) {
  std::map<std::string_view, Claimed> won;
  for (const char* key : {"settled", "found out", "resolved"}) {
    Claim guarded = claim_of(key, "one", Duration{1});
    guarded.on_lapse = OnLapse::kUnknown;
    won[key] = run<Claimed>(guarded);
  }
  wait_until(won["resolved"].lease_until);
  run<Conflict>(Claim{.scope = "pay", .key = "settled", .content = "11 EUR"});
  run<UnknownOutcome>(claim_of("found out"));
  for (const char* key : {"settled", "found out"}) {
    run<Done>(settle_of(key, won[key].fence, Outcome::kCompleted));
  }
  // Nobody has claimed it since.
  run<Done>(Resolve{"pay", "resolved", Resolution::kNotApplied, {}, "ann", "asked the bank"});
  always([&] {
    for (const char* key : {"settled", "found out"}) run<DuplicateClaim>(claim_of(key));
    EXPECT_EQ(find("resolved")->state, ClaimState::kFailed);
  });
}

TEST_P(Claims, ACompletedClaimTellsWhoCompletedIt) {
  run<Done>(settle_of("k", claim("k"), Outcome::kCompleted));
  claim_unknown("resolved");
  run<Done>(Resolve{"pay", "resolved", Resolution::kCompleted, {}, "ann", "asked the bank"});
  always([&] {
    EXPECT_EQ(find("k")->owner, "one");
    EXPECT_EQ(find("resolved")->owner, "one");
  });
}

TEST_P(Claims, ALateHolderWhomNobodyReplacedMayStillSettle) {
  const auto won = run<Claimed>(claim_of("k", "one", Duration{1}));
  wait_until(won.lease_until);
  run<Done>(settle_of("k", won.fence, Outcome::kCompleted));
  run<DuplicateClaim>(claim_of("k"));
}

TEST_P(Claims, RenewingProlongsTheLease) {
  const auto won = run<Claimed>(claim_of("k", "one", Duration{1}));
  const auto told = tell(Renew{"pay", "k", won.fence, std::chrono::hours{1}});
  const Time until = as<Renewed>(told.verdict).lease_until;
  EXPECT_TRUE(told.when.after(std::chrono::hours{1}).holds(until));
  always([&] { EXPECT_EQ(run<InProgress>(claim_of("k", "two")).lease_until, until); });
  run<Done>(settle_of("k", won.fence, Outcome::kFailed));
  EXPECT_EQ(refusal(Renew{"pay", "k", won.fence}).code, Errc::kPreconditionFailed);
  EXPECT_EQ(run<Fenced>(Renew{"pay", "never", Fence{1}}).current, 0U);
}

TEST_P(Claims, DuplicatesGetTheResultByteForByte) {
  const std::string nuls("a\0b\0", 4);
  std::string megabyte(std::size_t{1} << 20, '\0');
  for (std::size_t i = 0; i < megabyte.size(); ++i) megabyte[i] = static_cast<char>(i * 7 % 251);
  const auto complete = [&](std::string_view key, const ResultView& result) {
    const Fence fence = claim(key);
    const auto told = tell(Settle{.scope = "pay", .key = key, .fence = fence, .result = result});
    as<Done>(told.verdict);
    return std::pair{fence, told.when};
  };
  const auto small = complete("small", {201, nuls, nuls});
  complete("large", {200, "", megabyte});
  complete("empty", {});
  always([&] {
    const auto told = run<DuplicateClaim>(claim_of("small", "two"));
    EXPECT_EQ(told.result, kept({201, nuls, nuls}));
    EXPECT_EQ(told.fence, small.first);
    EXPECT_TRUE(small.second.holds(told.settled_at));
    EXPECT_EQ(told.expires_at, told.settled_at + std::chrono::hours{24});
    EXPECT_TRUE(run<DuplicateClaim>(claim_of("large")).result->body == megabyte);
    EXPECT_EQ(run<DuplicateClaim>(claim_of("empty")).result, StoredResult{});
    EXPECT_TRUE(find("large")->result->body == megabyte);
    EXPECT_EQ(find("small")->state, ClaimState::kCompleted);
    EXPECT_EQ(find("small")->result, kept({201, nuls, nuls}));
  });
}

TEST_P(Claims, RepeatingASettleIsDoneAndTheFirstResultStays) {
  const Fence fence = claim("k");
  const Settle first{.scope = "pay", .key = "k", .fence = fence, .result = {200, "", "first"}};
  const Settle second{.scope = "pay", .key = "k", .fence = fence, .result = {500, "", "second"}};
  run<Done>(first);
  always([&] {
    run<Done>(first);
    run<Done>(second);
    EXPECT_EQ(run<DuplicateClaim>(claim_of("k")).result->body, "first");
    run<Fenced>(settle_of("k", fence, Outcome::kFailed));
  });
}

TEST_P(Claims, AFailedOneMayBeClaimedAgainEvenForOtherContent) {
  const Fence fence = claim("k");
  run<Done>(settle_of("k", fence, Outcome::kFailed, "card declined"));
  always([&] {
    run<Done>(settle_of("k", fence, Outcome::kFailed, "again"));
    EXPECT_EQ(find("k")->state, ClaimState::kFailed);
    EXPECT_EQ(find("k")->reason, "card declined");
  });
  const auto next = run<Claimed>(Claim{.scope = "pay", .key = "k", .content = "9 EUR"});
  EXPECT_GT(next.fence, fence);
  EXPECT_EQ(next.attempt, 2U);
  run<Fenced>(settle_of("k", fence, Outcome::kCompleted));
  run<Conflict>(claim_of("k", "two"));
}

TEST_P(Claims, AnUnknownOutcomeIsHeldUntilSomebodyDecides) {
  const Fence fence = claim_unknown("k");
  always([&] {
    const auto told = run<UnknownOutcome>(claim_of("k", "two"));
    EXPECT_EQ(told.owner, "one");
    EXPECT_EQ(told.reason, "time-out");
    EXPECT_EQ(find("k")->state, ClaimState::kUnknown);
    expect_unknown(1);
    run<Done>(settle_of("k", fence, Outcome::kUnknown));
    EXPECT_EQ(refusal(settle_of("k", fence, Outcome::kReleased)).code, Errc::kPreconditionFailed);
  });
  run<Done>(settle_of("k", fence, Outcome::kCompleted));
  run<DuplicateClaim>(claim_of("k"));
}

TEST_P(Claims, ResolvingIsAuditedWithActorAndReason) {
  for (const char* key : {"a", "b", "c"}) claim_unknown(key);
  const auto resolve = [](std::string_view key, Resolution resolution) {
    return Resolve{"pay", key, resolution, {200, "h", "b"}, "ann", "asked the bank"};
  };
  run<Done>(resolve("a", Resolution::kCompleted));
  run<Done>(resolve("b", Resolution::kNotApplied));
  run<Done>(resolve("c", Resolution::kRelease));
  always([&] {
    EXPECT_EQ(run<DuplicateClaim>(claim_of("a")).result, kept({200, "h", "b"}));
    EXPECT_EQ(find("b")->state, ClaimState::kFailed);
    EXPECT_EQ(find("c"), std::nullopt);
    const std::vector<std::string> audit = backend().audit();
    ASSERT_THAT(audit, SizeIs(3));
    EXPECT_EQ(audit[0], R"({"act":"resolve-completed","subject":"pay/a","actor":"ann",)"
                        R"("reason":"asked the bank"})");
    EXPECT_THAT(audit[1], HasSubstr(R"("act":"resolve-not-applied","subject":"pay/b")"));
    EXPECT_THAT(audit[2], HasSubstr(R"("act":"release","subject":"pay/c")"));
    EXPECT_EQ(refusal(resolve("a", Resolution::kRelease)).code, Errc::kPreconditionFailed);
    EXPECT_EQ(refusal(resolve("nothing", Resolution::kRelease)).code, Errc::kPreconditionFailed);
  });
  EXPECT_EQ(run<Claimed>(claim_of("b")).attempt, 2U);
  EXPECT_EQ(run<Claimed>(claim_of("c")).attempt, 1U);
}

TEST_P(Claims, NobodyResolvesOrForgetsWithoutAName) {
  claim_unknown("k");
  EXPECT_EQ(refusal(Resolve{.scope = "pay", .key = "k", .reason = "why"}).code,
            Errc::kInvalidArgument);
  EXPECT_EQ(refusal(Resolve{.scope = "pay", .key = "k", .actor = "ann"}).code,
            Errc::kInvalidArgument);
  EXPECT_EQ(refusal(Forget{.scope = "pay", .key = "k", .actor = "ann"}).code,
            Errc::kInvalidArgument);
  run<UnknownOutcome>(claim_of("k"));
}

TEST_P(Claims, AReleasedOneIsAsIfNeverClaimed) {
  const Fence fence = claim("k");
  run<Done>(settle_of("k", fence, Outcome::kReleased));
  always([&] {
    EXPECT_EQ(find("k"), std::nullopt);
    run<Fenced>(settle_of("k", fence, Outcome::kCompleted));
    expect_open(0);
  });
  const auto next = run<Claimed>(claim_of("k"));
  EXPECT_EQ(next.attempt, 1U);
  EXPECT_GT(next.fence, fence);
}

TEST_P(Claims, ForgettingRemovesAKeyInAnyStateAndFencesItsHolder) {
  const Fence processing = claim("processing");
  run<Done>(settle_of("completed", claim("completed"), Outcome::kCompleted));
  claim_unknown("unknown");
  for (const char* key : {"processing", "completed", "unknown"}) {
    run<Done>(Forget{"pay", key, "ann", "test data"});
  }
  always([&] {
    for (const char* key : {"processing", "completed", "unknown"})
      EXPECT_EQ(find(key), std::nullopt);
    run<Fenced>(settle_of("processing", processing, Outcome::kCompleted));
    EXPECT_EQ(refusal(Forget{"pay", "processing", "ann", "again"}).code, Errc::kNotFound);
    EXPECT_THAT(backend().audit(), SizeIs(3));
    EXPECT_THAT(backend().audit(), Each(HasSubstr(R"("act":"forget")")));
  });
  for (const char* key : {"processing", "completed", "unknown"}) {
    EXPECT_EQ(run<Claimed>(claim_of(key)).attempt, 1U);
  }
}

TEST_P(Claims, ATombstoneKeepsThatItHappenedWhenTheResultIsGone) {
  if (!has(Feature::kTombstones)) GTEST_SKIP() << lacks(Feature::kTombstones);
  const Claim op{.scope = "pay",
                 .key = "k",
                 .owner = "one",
                 .retention = Window{std::chrono::seconds{1}},
                 .tombstone = Window{std::chrono::hours{1}}};
  const Fence fence = run<Claimed>(op).fence;
  const Settle settle{.scope = "pay", .key = "k", .fence = fence, .result = {200, "", "body"}};
  const Time settled = tell(settle).when.to;
  const auto again = tell(op);
  if (again.when.to < settled + std::chrono::seconds{1}) {
    EXPECT_EQ(as<DuplicateClaim>(again.verdict).result->body, "body");
  }
  wait_until(settled + std::chrono::seconds{1});
  always([&] {
    const auto told = run<DuplicateClaim>(op);
    EXPECT_EQ(told.result, std::nullopt);
    EXPECT_EQ(told.fence, fence);
    EXPECT_EQ(told.expires_at, settled + std::chrono::hours{1});
    EXPECT_EQ(find("k")->result, std::nullopt);
    EXPECT_EQ(find("k")->state, ClaimState::kCompleted);
  });
}

TEST_P(Claims, AfterTheTombstoneTheKeyIsFree) {
  const Window second{std::chrono::seconds{1}};
  const Claim op{.scope = "pay",
                 .key = "k",
                 .owner = "one",
                 .lease = Duration{1},
                 .retention = second,
                 .tombstone = second};
  const Fence fence = run<Claimed>(op).fence;
  run<Claimed>(Claim{.scope = "pay",
                     .key = "left",
                     .owner = "one",
                     .lease = Duration{1},
                     .retention = second,
                     .tombstone = second});
  const Time settled = tell(settle_of("k", fence, Outcome::kCompleted)).when.to;
  wait_until(settled + std::chrono::seconds{2});
  always([&] {
    EXPECT_EQ(find("k"), std::nullopt);
    if (has(Feature::kAbandoned)) {
      EXPECT_EQ(find("left"), std::nullopt);
    }
  });
  const auto again = run<Claimed>(op);
  EXPECT_EQ(again.attempt, 1U);
  EXPECT_GT(again.fence, fence);
}

TEST_P(Claims, AClaimAndItsEffectsAreOneCommit) {
  const Fence fence = claim("k");
  const Settle settle{.scope = "pay", .key = "k", .fence = fence, .result = {200, "", "ok"}};
  EXPECT_TRUE(backend().settle_with_effect(settle, First::kSettle));
  // The same once more, by a worker that lost its claim: neither half happens.
  const Settle late{.scope = "pay", .key = "k", .fence = Fence{fence.value + 1'000}};
  EXPECT_FALSE(backend().settle_with_effect(late, First::kEffect));
  EXPECT_FALSE(backend().settle_with_effect(late, First::kSettle));
  always([&] { EXPECT_EQ(backend().effects(), 1U); });
}

std::vector<ClaimBackendKind> all_backends() {
  std::vector<ClaimBackendKind> kinds = store_claim_backends();
  for (ClaimBackendKind& kind : job_claim_backends()) kinds.push_back(std::move(kind));
  return kinds;
}
std::string name_of_backend(const testing::TestParamInfo<ClaimBackendKind>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(, Claims, testing::ValuesIn(all_backends()), name_of_backend);

}  // namespace
}  // namespace hapax::contract
