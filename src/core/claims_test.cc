#include "core/claims.h"

#include <map>
#include <string>

#include <gtest/gtest.h>

#include "core/claims_harness.h"

namespace hapax::core::claims_harness {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Errc code_of(const Verdict& verdict) { return std::get<Refused>(verdict).error.code; }

// --- one rule at a time ----------------------------------------------------------------------

TEST(Claims, AFreeKeyIsGivenToTheFirstWhoAsks) {
  ClaimsHarness store;
  EXPECT_EQ(store.claim("a"), Verdict(Claimed{Fence{1}, 1, store.now + seconds{30}}));
  EXPECT_EQ(store.claim("b"), Verdict(Claimed{Fence{2}, 1, store.now + seconds{30}}));
}

// K1: two threads of one owner are two workers.
TEST(Claims, AHeldKeyIsInProgressForEverybodyAndForItsOwner) {
  ClaimsHarness store;
  store.must_claim("a");
  const InProgress held{"w1", store.now + seconds{30}, 1};
  store.now += milliseconds{29'999};
  EXPECT_EQ(store.claim("a", 1, {.owner = "w2"}), Verdict(held));
  EXPECT_EQ(store.claim("a", 1, {.owner = "w1"}), Verdict(held));
}

// K4: also while it is in progress, after its lease, while unknown and when completed.
TEST(Claims, OtherContentIsAConflictWhateverTheStateIsUnlessItFailed) {
  ClaimsHarness store;
  const Conflict conflict{print_of(1), print_of(2), store.now};
  const Fence fence = store.must_claim("a");
  EXPECT_EQ(store.claim("a", 2), Verdict(conflict));
  store.now += seconds{31};
  EXPECT_EQ(store.claim("a", 2), Verdict(conflict));
  store.settle("a", fence, Outcome::kUnknown);
  EXPECT_TRUE(std::holds_alternative<Conflict>(store.claim("a", 2)));
  const ClaimsHarness::Mark mark = store.mark();
  store.settle("a", fence, Outcome::kCompleted);
  EXPECT_EQ(store.claim("a", 2), Verdict(Conflict{print_of(1), print_of(2), store.now}));
  store.roll_back(mark);
  store.settle("a", fence, Outcome::kFailed);
  EXPECT_EQ(std::get<Claimed>(store.claim("a", 2)).attempt, 2U);
}

// K1, K2: the lease ends on the millisecond; whoever comes next gets a higher fence.
TEST(Claims, ALeaseThatIsOverIsTakenOverAndTheLateWorkerIsFenced) {
  ClaimsHarness store;
  const Fence late = store.must_claim("a");
  store.now += seconds{30};
  EXPECT_EQ(store.claim("a", 1, {.owner = "w2"}),
            Verdict(Claimed{Fence{2}, 2, store.now + seconds{30}, Former::kLapsed}));
  EXPECT_EQ(store.renew("a", late), Verdict(Fenced{2, 1}));
  EXPECT_EQ(store.settle("a", late, Outcome::kCompleted), Verdict(Fenced{2, 1}));
  EXPECT_EQ(store.state.counters.fenced, 2U);
  EXPECT_EQ(store.settle("a", Fence{2}, Outcome::kCompleted), Verdict(Done{}));
  EXPECT_EQ(store.renew("a", late), Verdict(Fenced{2, 1}));
}

TEST(Claims, ALateWorkerGoesOnAsLongAsNobodyTookOver) {
  ClaimsHarness store;
  const Fence fence = store.must_claim("a");
  store.now += seconds{35};
  EXPECT_EQ(store.renew("a", fence, seconds{5}), Verdict(Renewed{store.now + seconds{5}}));
  EXPECT_TRUE(std::holds_alternative<InProgress>(store.claim("a")));
  store.now += seconds{6};
  EXPECT_EQ(store.settle("a", fence, Outcome::kCompleted), Verdict(Done{}));
}

TEST(Claims, AClaimNobodyCameBackForIsForgottenAfterItsRetention) {
  ClaimsHarness store;
  const Fence fence = store.must_claim("a");
  store.now += seconds{40};
  EXPECT_EQ(store.settle("a", fence, Outcome::kCompleted), Verdict(Fenced{0, 1}));
  EXPECT_EQ(std::get<Claimed>(store.claim("a", 2)).attempt, 1U);
}

// K3: the answer of the first settle was lost; the second one changes nothing.
TEST(Claims, ARepeatedSettleIsDoneAndTheFirstResultStays) {
  ClaimsHarness store;
  const Fence fence = store.must_claim("a");
  EXPECT_EQ(store.settle("a", fence, Outcome::kCompleted, "first"), Verdict(Done{}));
  const std::size_t facts = store.journal.size();
  EXPECT_EQ(store.settle("a", fence, Outcome::kCompleted, "second"), Verdict(Done{}));
  EXPECT_EQ(store.journal.size(), facts);
  EXPECT_EQ(store.body_of("a"), "first");
  EXPECT_EQ(store.settle("a", fence, Outcome::kFailed), Verdict(Fenced{1, 1}));
  EXPECT_EQ(store.renew("a", fence), Verdict(Fenced{1, 1}));
}

TEST(Claims, NothingIsKnownOfAKeyNobodyClaimed) {
  ClaimsHarness store;
  EXPECT_EQ(store.renew("a", Fence{7}), Verdict(Fenced{0, 7}));
  EXPECT_EQ(store.settle("a", Fence{7}, Outcome::kFailed), Verdict(Fenced{0, 7}));
  EXPECT_EQ(store.status("a"), std::nullopt);
}

TEST(Claims, ACompletedClaimIsADuplicateUntilItsTombstoneEnds) {
  ClaimsHarness store;
  const Terms terms{.retention = Window{seconds{10}}, .tombstone = Window{seconds{60}}};
  const Fence fence = store.must_claim("a", 1, terms);
  store.settle("a", fence, Outcome::kCompleted, "paid");
  const DuplicateClaim duplicate{{}, fence, store.now, store.now + seconds{60}};
  EXPECT_EQ(store.claim("a"), Verdict(duplicate));
  EXPECT_EQ(store.body_of("a"), "paid");
  store.now += seconds{10};
  EXPECT_EQ(store.body_of("a"), "gone");
  store.now += milliseconds{49'999};
  EXPECT_EQ(store.claim("a"), Verdict(duplicate));
  store.now += milliseconds{1};
  EXPECT_EQ(store.claim("a", 2), Verdict(Claimed{Fence{2}, 1, store.now + seconds{30}}));
}

TEST(Claims, ATombstoneLastsAtLeastAsLongAsTheResult) {
  ClaimsHarness store;
  const Fence fence =
      store.must_claim("a", 1, {.retention = Window::forever(), .tombstone = Window{seconds{1}}});
  store.settle("a", fence, Outcome::kCompleted, "paid");
  store.now += std::chrono::hours{24 * 365 * 50};
  EXPECT_TRUE(std::holds_alternative<DuplicateClaim>(store.claim("a")));
  EXPECT_EQ(store.body_of("a"), "paid");
}

TEST(Claims, AReleasedKeyIsAsIfNeverClaimed) {
  ClaimsHarness store;
  const Fence fence = store.must_claim("a");
  EXPECT_EQ(store.settle("a", fence, Outcome::kReleased), Verdict(Done{}));
  EXPECT_EQ(store.status("a"), std::nullopt);
  EXPECT_EQ(store.claim("a", 2), Verdict(Claimed{Fence{2}, 1, store.now + seconds{30}}));
}

TEST(Claims, AFailedClaimMayBeCorrectedByItsHolderUntilTheNextClaim) {
  ClaimsHarness store;
  const Fence fence = store.must_claim("a");
  EXPECT_EQ(store.settle("a", fence, Outcome::kFailed, "no route"), Verdict(Done{}));
  EXPECT_EQ(store.settle("a", fence, Outcome::kFailed, "again"), Verdict(Done{}));
  EXPECT_EQ(store.status("a")->reason, "no route");
  EXPECT_EQ(code_of(store.renew("a", fence)), Errc::kPreconditionFailed);
  const ClaimsHarness::Mark mark = store.mark();
  EXPECT_EQ(store.settle("a", fence, Outcome::kCompleted, "it did"), Verdict(Done{}));
  store.roll_back(mark);
  EXPECT_EQ(std::get<Claimed>(store.claim("a")).attempt, 2U);
  EXPECT_EQ(store.settle("a", fence, Outcome::kCompleted), Verdict(Fenced{2, 1}));
}

// K5: neither time nor the next caller decides it.
TEST(Claims, AnUnknownOutcomeIsHeldUntilSomebodyWhoKnowsDecides) {
  ClaimsHarness store;
  const Fence fence = store.must_claim("a");
  store.settle("a", fence, Outcome::kUnknown, "timed out");
  const UnknownOutcome held{"w1", "timed out", store.now};
  store.now += std::chrono::hours{24 * 365};
  collect_claims(store.state, store.now, 100);
  EXPECT_EQ(store.claim("a"), Verdict(held));
  EXPECT_EQ(store.state.claims_unknown, 1U);
  EXPECT_EQ(code_of(store.renew("a", fence)), Errc::kPreconditionFailed);
  EXPECT_EQ(code_of(store.settle("a", fence, Outcome::kReleased)), Errc::kPreconditionFailed);
  EXPECT_EQ(store.settle("a", fence, Outcome::kUnknown, "still"), Verdict(Done{}));
  const ClaimsHarness::Mark mark = store.mark();
  EXPECT_EQ(store.settle("a", fence, Outcome::kCompleted), Verdict(Done{}));
  EXPECT_EQ(store.state.claims_unknown, 0U);
  store.roll_back(mark);
  EXPECT_EQ(store.state.claims_unknown, 1U);
  EXPECT_EQ(store.settle("a", fence, Outcome::kFailed), Verdict(Done{}));
  EXPECT_EQ(store.state.claims_unknown, 0U);
}

// K6: the owner may have done the work; neither time nor the next caller decides it.
TEST(Claims, ALapseOfAGuardedClaimIsAnUnknownOutcome) {
  ClaimsHarness store;
  const Fence fence = store.must_claim("a", 1, {.on_lapse = OnLapse::kUnknown});
  const Time lapse = store.now + seconds{30};
  store.now = lapse - Duration{1};
  EXPECT_EQ(store.claim("a"), Verdict(InProgress{"w1", lapse, 1}));
  EXPECT_EQ(claims_unknown(store.state, store.now), 0U);
  store.now = lapse;
  const std::string reason =
      "the lease of owner 'w1' ran out at 1700000030000 ms (log time) before"
      " the owner settled; it may have done the work";
  // Readers are told so before a claim finds it out.
  EXPECT_EQ(store.status("a")->state, ClaimState::kUnknown);
  EXPECT_EQ(store.status("a")->reason, reason);
  EXPECT_EQ(store.status("a")->since, lapse);
  EXPECT_EQ(claims_unknown(store.state, store.now), 1U);
  EXPECT_EQ(code_of(store.renew("a", fence)), Errc::kPreconditionFailed);
  EXPECT_EQ(code_of(store.settle("a", fence, Outcome::kReleased)), Errc::kPreconditionFailed);
  store.now += std::chrono::hours{24 * 365};
  collect_claims(store.state, store.now, 100);
  EXPECT_EQ(store.claim("a", 2), Verdict(Conflict{print_of(1), print_of(2), lapse}));
  const std::size_t facts = store.journal.size();
  EXPECT_EQ(store.claim("a"), Verdict(UnknownOutcome{"w1", reason, lapse}));
  EXPECT_EQ(store.journal.size(), facts + 1) << "a fact says so from now on";
  EXPECT_EQ(store.claim("a"), Verdict(UnknownOutcome{"w1", reason, lapse}));
  EXPECT_EQ(store.journal.size(), facts + 1);
  EXPECT_EQ(store.status("a")->reason, reason);
  EXPECT_EQ(claims_unknown(store.state, store.now), 1U);
  const ClaimsHarness::Mark mark = store.mark();
  EXPECT_EQ(store.settle("a", fence, Outcome::kCompleted, "it did"), Verdict(Done{}));
  store.roll_back(mark);
  EXPECT_EQ(store.resolve("a", Resolution::kNotApplied), Verdict(Done{}));
  EXPECT_EQ(std::get<Claimed>(store.claim("a")).former, Former::kFailed);
}

TEST(Claims, ALapseThatNoClaimFoundYetCanBeResolved) {
  ClaimsHarness store;
  store.must_claim("a", 1, {.on_lapse = OnLapse::kUnknown});
  EXPECT_EQ(code_of(store.resolve("a", Resolution::kCompleted)), Errc::kPreconditionFailed);
  store.now += seconds{30};
  EXPECT_EQ(store.resolve("a", Resolution::kCompleted, "paid"), Verdict(Done{}));
  EXPECT_EQ(store.body_of("a"), "paid");
  EXPECT_EQ(claims_unknown(store.state, store.now), 0U);
}

// K6: the safer of the two words counts.
TEST(Claims, TheNextClaimMayRefuseToTakeOver) {
  ClaimsHarness store;
  store.must_claim("a");
  store.now += seconds{30};
  EXPECT_EQ(store.status("a")->state, ClaimState::kProcessing);
  const Verdict careful = store.claim("a", 1, {.owner = "w2", .on_lapse = OnLapse::kUnknown});
  EXPECT_TRUE(std::holds_alternative<UnknownOutcome>(careful));
  EXPECT_EQ(store.status("a")->state, ClaimState::kUnknown);
  EXPECT_TRUE(std::holds_alternative<UnknownOutcome>(store.claim("a"))) << "for everybody";
}

TEST(Claims, TheNextOwnerIsToldWhetherTheOneBeforeLapsedOrFailed) {
  ClaimsHarness store;
  const auto former = [&] { return std::get<Claimed>(store.claim("a")).former; };
  const Fence first = store.must_claim("a");
  store.settle("a", first, Outcome::kFailed, "no route");
  EXPECT_EQ(former(), Former::kFailed);
  store.now += seconds{30};
  const auto lapsed = std::get<Claimed>(store.claim("a"));
  EXPECT_EQ(lapsed.former, Former::kLapsed);
  // That this one failed says nothing about the one before it.
  store.settle("a", lapsed.fence, Outcome::kFailed, "no route");
  EXPECT_EQ(former(), Former::kLapsed);
  store.forget("a");
  EXPECT_EQ(former(), Former::kNone);
}

TEST(Claims, APersonResolvesAnUnknownOutcomeAndIsAudited) {
  ClaimsHarness store;
  const Fence fence = store.must_claim("a");
  store.settle("a", fence, Outcome::kUnknown);
  const ClaimsHarness::Mark mark = store.mark();
  EXPECT_EQ(store.resolve("a", Resolution::kCompleted, "by hand"), Verdict(Done{}));
  EXPECT_EQ(store.body_of("a"), "by hand");
  EXPECT_EQ(std::get<DuplicateClaim>(store.claim("a")).fence, fence);
  for (const char* word : {"resolve-completed", "pay/a", "ann", "checked"}) {
    EXPECT_TRUE(store.audited(word)) << word;
  }
  store.roll_back(mark);
  EXPECT_EQ(store.resolve("a", Resolution::kNotApplied), Verdict(Done{}));
  EXPECT_EQ(store.status("a")->reason, "checked");
  EXPECT_TRUE(store.audited("resolve-not-applied"));
  EXPECT_EQ(std::get<Claimed>(store.claim("a")).attempt, 2U);
  store.roll_back(mark);
  EXPECT_EQ(store.resolve("a", Resolution::kRelease), Verdict(Done{}));
  EXPECT_TRUE(store.audited("release"));
  EXPECT_EQ(std::get<Claimed>(store.claim("a", 2)).attempt, 1U);
}

TEST(Claims, OnlyASignedResolveOfAnUnknownOutcomeIsAccepted) {
  ClaimsHarness store;
  const Verdict nothing = store.resolve("a\n", Resolution::kRelease);
  EXPECT_EQ(std::get<Refused>(nothing).error.text(),
            "HX1012 precondition_failed: claim 'pay/a\\x0a' is not known; only an unknown outcome"
            " can be resolved");
  const Fence fence = store.must_claim("a");
  EXPECT_EQ(code_of(store.resolve("a", Resolution::kRelease)), Errc::kPreconditionFailed);
  store.settle("a", fence, Outcome::kUnknown);
  EXPECT_EQ(code_of(store.resolve("a", Resolution::kRelease, "", "")), Errc::kInvalidArgument);
  EXPECT_EQ(code_of(store.resolve("a", Resolution::kRelease, "", "ann", "")),
            Errc::kInvalidArgument);
  EXPECT_EQ(store.status("a")->state, ClaimState::kUnknown);
}

// K1, K2: whoever held it is fenced, and the next claim is not confused with the removed one.
TEST(Claims, AForgottenKeyIsFreeAndItsWorkerIsFenced) {
  ClaimsHarness store;
  EXPECT_EQ(code_of(store.forget("a")), Errc::kNotFound);
  const Fence open = store.must_claim("a");
  EXPECT_EQ(code_of(store.forget("a", "ann", "")), Errc::kInvalidArgument);
  EXPECT_EQ(store.forget("a"), Verdict(Done{}));
  EXPECT_TRUE(store.audited("forget"));
  EXPECT_EQ(store.settle("a", open, Outcome::kCompleted), Verdict(Fenced{0, 1}));
  EXPECT_EQ(code_of(store.forget("a")), Errc::kNotFound);

  const Fence done = store.must_claim("a", 2);
  store.settle("a", done, Outcome::kCompleted, "paid");
  EXPECT_EQ(store.forget("a"), Verdict(Done{}));
  EXPECT_TRUE(store.state.results_end.empty());
  EXPECT_EQ(store.settle("a", done, Outcome::kCompleted), Verdict(Fenced{4, 3}));
  EXPECT_EQ(code_of(store.forget("a")), Errc::kNotFound);
  EXPECT_EQ(store.claim("a", 3), Verdict(Claimed{Fence{5}, 1, store.now + seconds{30}}));
}

TEST(Claims, NewKeysAreRefusedWhenMemoryIsFullButOpenOnesAreFinished) {
  ClaimsHarness store;
  const Fence fence = store.must_claim("a");
  store.state.memory_max = store.state.memory_bytes() - 1;
  EXPECT_EQ(code_of(store.claim("b")), Errc::kMemoryBudget);
  store.now += seconds{30};
  EXPECT_EQ(store.must_claim("a"), fence.next());
  EXPECT_EQ(store.settle("a", fence.next(), Outcome::kCompleted), Verdict(Done{}));
}

TEST(Claims, AReaderSeesTheStateOfAClaim) {
  ClaimsHarness store;
  const Time start = store.now;
  const Fence fence = store.must_claim("a");
  EXPECT_EQ(store.status("a")->state, ClaimState::kProcessing);
  EXPECT_EQ(store.status("a")->owner, "w1");
  EXPECT_EQ(store.status("a")->until, start + seconds{30});
  store.now += seconds{1};
  store.settle("a", fence, Outcome::kFailed, "no route");
  EXPECT_EQ(store.status("a")->state, ClaimState::kFailed);
  EXPECT_EQ(store.status("a")->owner, "");
  EXPECT_EQ(store.status("a")->reason, "no route");
  EXPECT_EQ(store.status("a")->until, store.now + seconds{10});
  store.settle("a", store.must_claim("a"), Outcome::kCompleted);
  EXPECT_EQ(store.status("a")->state, ClaimState::kCompleted);
  EXPECT_EQ(store.status("a")->attempts, 2U);
  EXPECT_EQ(store.status("a")->fingerprint, print_of(1));
  EXPECT_EQ(store.status("a")->since, store.now);
}

// --- bytes and ends --------------------------------------------------------------------------

TEST(Claims, TheAnswerOfACommitIsRememberedForItsWindow) {
  ClaimsHarness store;
  const base::Hash128 id = hash_of("commit");
  const base::Where at =
      store.emit(CommitAnswered{id, print_of(9), Fence{7}, Window{seconds{20}}, "answer"});
  EXPECT_EQ(find_settled(store.state, id, store.now)->where, at);
  EXPECT_EQ(find_settled(store.state, id, store.now)->result_until(), store.now + seconds{20});
  EXPECT_EQ(store.state.live_bytes.at(1), at.length);
  EXPECT_EQ(store.must_claim("a"), Fence{8});
  EXPECT_EQ(find_settled(store.state, id, store.now + seconds{20}), std::nullopt);
}

TEST(Claims, AMovedResultIsReadFromItsNewPlaceAndFreesTheOldOne) {
  ClaimsHarness store;
  store.settle("a", store.must_claim("a"), Outcome::kCompleted, "paid");
  const base::Where old = find_settled(store.state, hash_of("a"), store.now)->where;
  EXPECT_TRUE(is_live_result(store.state, hash_of("a"), old, store.now));
  ASSERT_TRUE(store.move_result("a"));
  EXPECT_FALSE(is_live_result(store.state, hash_of("a"), old, store.now));
  EXPECT_EQ(store.body_of("a"), "paid");
  EXPECT_EQ(store.state.live_bytes, (std::map<std::uint32_t, std::uint64_t>{{2, old.length}}));
}

// The engine copies only live results; a fact that comes too late must still be harmless.
TEST(Claims, AResultThatIsOverIsNotMovedAlthoughItsTombstoneRemains) {
  ClaimsHarness store;
  const Fence fence = store.must_claim("a", 1, {.tombstone = Window{seconds{60}}});
  store.settle("a", fence, Outcome::kCompleted, "paid");
  store.now += seconds{11};
  store.undo.forget();
  collect_claims(store.state, store.now, 100);
  EXPECT_FALSE(store.move_result("a"));
  store.segments.emplace_back();
  store.emit(ResultMoved{hash_of("a"), "the old frame"});
  EXPECT_EQ(find_settled(store.state, hash_of("a"), store.now)->where.segment, 1U);
  EXPECT_TRUE(store.state.live_bytes.empty());
}

TEST(Claims, ResultsOfManyRetentionsShareFewSlicesAndNoneEndsEarly) {
  const auto slice = [](std::int64_t settled_ms, std::uint32_t retention) {
    return to_ms(
        result_slice_end(SettledEntry{.settled_ms = settled_ms, .retention_seconds = retention}));
  };
  EXPECT_EQ(slice(1'000'001, 1), 1'002'000);  // slices of 1 s
  EXPECT_EQ(slice(1'000'000, 31), 1'031'000);
  EXPECT_EQ(slice(1'000'001, 100), 1'104'000);      // of 4 s
  EXPECT_EQ(slice(1'000'001, 86'400), 90'112'000);  // of 4,096 s
  EXPECT_EQ(slice(1'000'001, Window::forever().raw()), to_ms(Time::max()));
}

TEST(Claims, CollectingRemovesWhatIsPastItsEndInBoundedSteps) {
  ClaimsHarness store;
  for (const char* key : {"a", "b", "c"}) {
    store.settle(key, store.must_claim(key), Outcome::kCompleted, "paid");
    store.segments.emplace_back();
  }
  for (const char* key : {"d", "e", "f"}) store.must_claim(key);
  store.undo.forget();
  collect_claims(store.state, store.now + seconds{9}, 100);
  EXPECT_EQ(store.state.open_claims.size() + store.state.live_bytes.size(), 6U);
  collect_claims(store.state, store.now + seconds{40}, 4);
  EXPECT_EQ(store.state.open_claims.size() + store.state.live_bytes.size(), 2U);
  collect_claims(store.state, store.now + seconds{40}, 100);
  EXPECT_TRUE(store.state.open_claims_end.empty());
  EXPECT_TRUE(store.state.live_bytes.empty());
  EXPECT_TRUE(store.state.results_end.empty());
  EXPECT_EQ(store.state.text_bytes, 0U);
}

}  // namespace
}  // namespace hapax::core::claims_harness
