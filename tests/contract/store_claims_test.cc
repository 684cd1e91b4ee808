// Claims: one winner, one result.
#include "store_contract.h"

namespace hapax::contract {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::SizeIs;

class Claims : public StoreContract {
 protected:
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
  std::optional<ClaimStatus> find(std::string_view key) {
    return store().find_claim("pay", key).value();
  }
};

TEST_P(Claims, TheFirstOneWinsAndTheNextIsToldWhoWorksOnIt) {
  const Answer answer = commit({claim_of("k")});
  const auto won = as<Claimed>(answer.verdicts[0]);
  EXPECT_GT(won.fence, Fence{0});
  EXPECT_EQ(won.attempt, 1U);
  EXPECT_EQ(won.lease_until, answer.time + limits::kLeaseDefault);
  always([&] {
    EXPECT_EQ(run<InProgress>(claim_of("k", "two")), (InProgress{"one", won.lease_until, 1}));
    EXPECT_EQ(run<InProgress>(claim_of("k", "one")).owner, "one");
    const auto status = find("k");
    ASSERT_TRUE(status);
    EXPECT_EQ(status->state, ClaimState::kProcessing);
    EXPECT_EQ(status->fence, won.fence);
    EXPECT_EQ(status->owner, "one");
    EXPECT_EQ(status->since, answer.time);
    EXPECT_EQ(status->until, won.lease_until);
    EXPECT_EQ(store().statistics().value().claims_open, 1U);
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
  const std::string nul(1, '\0');
  const std::string long_key(255, '\xff');
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
    const std::uint64_t before = fenced();
    const Fenced told{second.fence.value, first.fence.value};
    for (const Outcome outcome :
         {Outcome::kCompleted, Outcome::kFailed, Outcome::kUnknown, Outcome::kReleased}) {
      EXPECT_EQ(run<Fenced>(settle_of("k", first.fence, outcome)), told);
    }
    EXPECT_EQ(run<Fenced>(Renew{"pay", "k", first.fence}), told);
    EXPECT_EQ(fenced(), before + 5);
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
  EXPECT_EQ(as<Claimed>(commit({claim_of("lapses")}, Mode::kAtomic, "id").verdicts[0]).former,
            Former::kLapsed);
  EXPECT_EQ(run<Claimed>(claim_of("fails")).former, Former::kFailed);
  always([&] {
    const Answer again = commit({claim_of("lapses")}, Mode::kAtomic, "id");
    EXPECT_TRUE(again.repeated);
    EXPECT_EQ(as<Claimed>(again.verdicts[0]).former, Former::kLapsed);
  });
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
  EXPECT_EQ(store().statistics().value().claims_unknown, 1U);
  Claim careful = claim_of("plain", "two");
  careful.on_lapse = OnLapse::kUnknown;
  run<UnknownOutcome>(careful);
  always([&] {
    for (const char* key : {"guarded", "plain"}) {
      const auto told = run<UnknownOutcome>(claim_of(key, "three"));
      EXPECT_EQ(told.owner, "one");
      EXPECT_THAT(told.reason, HasSubstr("the lease of owner 'one' ran out at"));
      EXPECT_EQ(find(key)->state, ClaimState::kUnknown);
      EXPECT_EQ(find(key)->reason, told.reason);
      EXPECT_EQ(find(key)->since, told.since);
    }
    EXPECT_EQ(find("plain")->since, plain.lease_until);
    EXPECT_EQ(store().statistics().value().claims_unknown, 2U);
  });
  run<Done>(Resolve{"pay", "guarded", Resolution::kCompleted, {}, "ann", "asked the bank"});
  run<Done>(Resolve{"pay", "plain", Resolution::kNotApplied, {}, "ann", "asked the bank"});
  run<DuplicateClaim>(claim_of("guarded"));
  EXPECT_EQ(run<Claimed>(claim_of("plain")).former, Former::kFailed);
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
  const Answer answer = commit({Renew{"pay", "k", won.fence, std::chrono::hours{1}}});
  const Time until = answer.time + std::chrono::hours{1};
  EXPECT_EQ(as<Renewed>(answer.verdicts[0]).lease_until, until);
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
    const Settle op{.scope = "pay", .key = key, .fence = fence, .result = result};
    return std::pair{fence, commit({op}).time};
  };
  const auto small = complete("small", {201, nuls, nuls});
  complete("large", {200, "", megabyte});
  complete("empty", {});
  always([&] {
    const auto told = run<DuplicateClaim>(claim_of("small", "two"));
    EXPECT_EQ(told.result, (StoredResult{201, nuls, nuls}));
    EXPECT_EQ(told.fence, small.first);
    EXPECT_EQ(told.settled_at, small.second);
    EXPECT_EQ(told.expires_at, small.second + std::chrono::hours{24});
    EXPECT_TRUE(run<DuplicateClaim>(claim_of("large")).result->body == megabyte);
    EXPECT_EQ(run<DuplicateClaim>(claim_of("empty")).result, StoredResult{});
    EXPECT_TRUE(find("large")->result->body == megabyte);
    EXPECT_EQ(find("small")->state, ClaimState::kCompleted);
    EXPECT_EQ(find("small")->result, (StoredResult{201, nuls, nuls}));
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
}

TEST_P(Claims, AnUnknownOutcomeIsHeldUntilSomebodyDecides) {
  const Fence fence = claim_unknown("k");
  always([&] {
    const auto told = run<UnknownOutcome>(claim_of("k", "two"));
    EXPECT_EQ(told.owner, "one");
    EXPECT_EQ(told.reason, "time-out");
    EXPECT_EQ(find("k")->state, ClaimState::kUnknown);
    EXPECT_EQ(store().statistics().value().claims_unknown, 1U);
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
    EXPECT_EQ(run<DuplicateClaim>(claim_of("a")).result, (StoredResult{200, "h", "b"}));
    EXPECT_EQ(find("b")->state, ClaimState::kFailed);
    EXPECT_EQ(find("c"), std::nullopt);
    const std::vector<std::string> audit = payloads(records("$audit"));
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
    EXPECT_EQ(store().statistics().value().claims_open, 0U);
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
    EXPECT_THAT(records("$audit"), SizeIs(3));
    EXPECT_THAT(payloads(records("$audit")), Each(HasSubstr(R"("act":"forget")")));
  });
  for (const char* key : {"processing", "completed", "unknown"}) {
    EXPECT_EQ(run<Claimed>(claim_of(key)).attempt, 1U);
  }
}

TEST_P(Claims, ATombstoneKeepsThatItHappenedWhenTheResultIsGone) {
  const Claim op{.scope = "pay",
                 .key = "k",
                 .owner = "one",
                 .retention = Window{std::chrono::seconds{1}},
                 .tombstone = Window{std::chrono::hours{1}}};
  const Fence fence = run<Claimed>(op).fence;
  const Settle settle{.scope = "pay", .key = "k", .fence = fence, .result = {200, "", "body"}};
  const Time settled = commit({settle}).time;
  const Answer again = commit({op});
  if (again.time < settled + std::chrono::seconds{1}) {
    EXPECT_EQ(as<DuplicateClaim>(again.verdicts[0]).result->body, "body");
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
  const Time settled = commit({settle_of("k", fence, Outcome::kCompleted)}).time;
  wait_until(settled + std::chrono::seconds{2});
  always([&] {
    EXPECT_EQ(find("k"), std::nullopt);
    EXPECT_EQ(find("left"), std::nullopt);
  });
  const auto again = run<Claimed>(op);
  EXPECT_EQ(again.attempt, 1U);
  EXPECT_GT(again.fence, fence);
}

TEST_P(Claims, AClaimAndItsEffectsAreOneCommit) {
  make_stream("s");
  const Fence fence = claim("k");
  const Settle settle{.scope = "pay", .key = "k", .fence = fence, .result = {200, "", "ok"}};
  EXPECT_TRUE(commit({settle, Append{.stream = "s", .payload = "paid"}}).committed);
  // The same once more, by a worker that lost its claim: neither half happens.
  const Settle late{.scope = "pay", .key = "k", .fence = Fence{fence.value + 1'000}};
  EXPECT_FALSE(commit({Append{.stream = "s", .payload = "paid"}, late}).committed);
  always([&] { EXPECT_EQ(last("s"), Sequence{1}); });
}

INSTANTIATE_TEST_SUITE_P(, Claims, testing::ValuesIn(all_stores()), name_of);

}  // namespace
}  // namespace hapax::contract
