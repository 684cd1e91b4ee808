#include "core/claims.h"

#include <map>
#include <string>

#include <gtest/gtest.h>

#include "core/claims_desk.h"

namespace hapax::core::desk {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Errc code_of(const Verdict& verdict) { return std::get<Refused>(verdict).error.code; }

// --- one rule at a time ----------------------------------------------------------------------

TEST(Claims, AFreeKeyIsGivenToTheFirstWhoAsks) {
  Desk desk;
  EXPECT_EQ(desk.claim("a"), Verdict(Claimed{Fence{1}, 1, desk.now + seconds{30}}));
  EXPECT_EQ(desk.claim("b"), Verdict(Claimed{Fence{2}, 1, desk.now + seconds{30}}));
}

// K1: two threads of one owner are two workers.
TEST(Claims, AHeldKeyIsInProgressForEverybodyAndForItsOwner) {
  Desk desk;
  desk.must_claim("a");
  const InProgress held{"w1", desk.now + seconds{30}, 1};
  desk.now += milliseconds{29'999};
  EXPECT_EQ(desk.claim("a", 1, {.owner = "w2"}), Verdict(held));
  EXPECT_EQ(desk.claim("a", 1, {.owner = "w1"}), Verdict(held));
}

// K4: also while it is in progress, after its lease, while unknown and when completed.
TEST(Claims, OtherContentIsAConflictWhateverTheStateIsUnlessItFailed) {
  Desk desk;
  const Conflict conflict{print_of(1), print_of(2), desk.now};
  const Fence fence = desk.must_claim("a");
  EXPECT_EQ(desk.claim("a", 2), Verdict(conflict));
  desk.now += seconds{31};
  EXPECT_EQ(desk.claim("a", 2), Verdict(conflict));
  desk.settle("a", fence, Outcome::kUnknown);
  EXPECT_TRUE(std::holds_alternative<Conflict>(desk.claim("a", 2)));
  const Desk::Mark mark = desk.mark();
  desk.settle("a", fence, Outcome::kCompleted);
  EXPECT_EQ(desk.claim("a", 2), Verdict(Conflict{print_of(1), print_of(2), desk.now}));
  desk.roll_back(mark);
  desk.settle("a", fence, Outcome::kFailed);
  EXPECT_EQ(std::get<Claimed>(desk.claim("a", 2)).attempt, 2U);
}

// K1, K2: the lease ends on the millisecond; whoever comes next gets a higher fence.
TEST(Claims, ALeaseThatIsOverIsTakenOverAndTheLateWorkerIsFenced) {
  Desk desk;
  const Fence late = desk.must_claim("a");
  desk.now += seconds{30};
  EXPECT_EQ(desk.claim("a", 1, {.owner = "w2"}),
            Verdict(Claimed{Fence{2}, 2, desk.now + seconds{30}, Former::kLapsed}));
  EXPECT_EQ(desk.renew("a", late), Verdict(Fenced{2, 1}));
  EXPECT_EQ(desk.settle("a", late, Outcome::kCompleted), Verdict(Fenced{2, 1}));
  EXPECT_EQ(desk.state.counters.fenced, 2U);
  EXPECT_EQ(desk.settle("a", Fence{2}, Outcome::kCompleted), Verdict(Done{}));
  EXPECT_EQ(desk.renew("a", late), Verdict(Fenced{2, 1}));
}

TEST(Claims, ALateWorkerGoesOnAsLongAsNobodyTookOver) {
  Desk desk;
  const Fence fence = desk.must_claim("a");
  desk.now += seconds{35};
  EXPECT_EQ(desk.renew("a", fence, seconds{5}), Verdict(Renewed{desk.now + seconds{5}}));
  EXPECT_TRUE(std::holds_alternative<InProgress>(desk.claim("a")));
  desk.now += seconds{6};
  EXPECT_EQ(desk.settle("a", fence, Outcome::kCompleted), Verdict(Done{}));
}

TEST(Claims, AClaimNobodyCameBackForIsForgottenAfterItsRetention) {
  Desk desk;
  const Fence fence = desk.must_claim("a");
  desk.now += seconds{40};
  EXPECT_EQ(desk.settle("a", fence, Outcome::kCompleted), Verdict(Fenced{0, 1}));
  EXPECT_EQ(std::get<Claimed>(desk.claim("a", 2)).attempt, 1U);
}

// K3: the answer of the first settle was lost; the second one changes nothing.
TEST(Claims, ARepeatedSettleIsDoneAndTheFirstResultStays) {
  Desk desk;
  const Fence fence = desk.must_claim("a");
  EXPECT_EQ(desk.settle("a", fence, Outcome::kCompleted, "first"), Verdict(Done{}));
  const std::size_t facts = desk.journal.size();
  EXPECT_EQ(desk.settle("a", fence, Outcome::kCompleted, "second"), Verdict(Done{}));
  EXPECT_EQ(desk.journal.size(), facts);
  EXPECT_EQ(desk.body_of("a"), "first");
  EXPECT_EQ(desk.settle("a", fence, Outcome::kFailed), Verdict(Fenced{1, 1}));
  EXPECT_EQ(desk.renew("a", fence), Verdict(Fenced{1, 1}));
}

TEST(Claims, NothingIsKnownOfAKeyNobodyClaimed) {
  Desk desk;
  EXPECT_EQ(desk.renew("a", Fence{7}), Verdict(Fenced{0, 7}));
  EXPECT_EQ(desk.settle("a", Fence{7}, Outcome::kFailed), Verdict(Fenced{0, 7}));
  EXPECT_EQ(desk.status("a"), std::nullopt);
}

TEST(Claims, ACompletedClaimIsADuplicateUntilItsTombstoneEnds) {
  Desk desk;
  const Terms terms{.retention = Window{seconds{10}}, .tombstone = Window{seconds{60}}};
  const Fence fence = desk.must_claim("a", 1, terms);
  desk.settle("a", fence, Outcome::kCompleted, "paid");
  const DuplicateClaim duplicate{{}, fence, desk.now, desk.now + seconds{60}};
  EXPECT_EQ(desk.claim("a"), Verdict(duplicate));
  EXPECT_EQ(desk.body_of("a"), "paid");
  desk.now += seconds{10};
  EXPECT_EQ(desk.body_of("a"), "gone");
  desk.now += milliseconds{49'999};
  EXPECT_EQ(desk.claim("a"), Verdict(duplicate));
  desk.now += milliseconds{1};
  EXPECT_EQ(desk.claim("a", 2), Verdict(Claimed{Fence{2}, 1, desk.now + seconds{30}}));
}

TEST(Claims, ATombstoneLastsAtLeastAsLongAsTheResult) {
  Desk desk;
  const Fence fence =
      desk.must_claim("a", 1, {.retention = Window::forever(), .tombstone = Window{seconds{1}}});
  desk.settle("a", fence, Outcome::kCompleted, "paid");
  desk.now += std::chrono::hours{24 * 365 * 50};
  EXPECT_TRUE(std::holds_alternative<DuplicateClaim>(desk.claim("a")));
  EXPECT_EQ(desk.body_of("a"), "paid");
}

TEST(Claims, AReleasedKeyIsAsIfNeverClaimed) {
  Desk desk;
  const Fence fence = desk.must_claim("a");
  EXPECT_EQ(desk.settle("a", fence, Outcome::kReleased), Verdict(Done{}));
  EXPECT_EQ(desk.status("a"), std::nullopt);
  EXPECT_EQ(desk.claim("a", 2), Verdict(Claimed{Fence{2}, 1, desk.now + seconds{30}}));
}

TEST(Claims, AFailedClaimMayBeCorrectedByItsHolderUntilTheNextClaim) {
  Desk desk;
  const Fence fence = desk.must_claim("a");
  EXPECT_EQ(desk.settle("a", fence, Outcome::kFailed, "no route"), Verdict(Done{}));
  EXPECT_EQ(desk.settle("a", fence, Outcome::kFailed, "again"), Verdict(Done{}));
  EXPECT_EQ(desk.status("a")->reason, "no route");
  EXPECT_EQ(code_of(desk.renew("a", fence)), Errc::kPreconditionFailed);
  const Desk::Mark mark = desk.mark();
  EXPECT_EQ(desk.settle("a", fence, Outcome::kCompleted, "it did"), Verdict(Done{}));
  desk.roll_back(mark);
  EXPECT_EQ(std::get<Claimed>(desk.claim("a")).attempt, 2U);
  EXPECT_EQ(desk.settle("a", fence, Outcome::kCompleted), Verdict(Fenced{2, 1}));
}

// K5: neither time nor the next caller decides it.
TEST(Claims, AnUnknownOutcomeIsHeldUntilSomebodyWhoKnowsDecides) {
  Desk desk;
  const Fence fence = desk.must_claim("a");
  desk.settle("a", fence, Outcome::kUnknown, "timed out");
  const UnknownOutcome held{"w1", "timed out", desk.now};
  desk.now += std::chrono::hours{24 * 365};
  collect_claims(desk.state, desk.now, 100);
  EXPECT_EQ(desk.claim("a"), Verdict(held));
  EXPECT_EQ(desk.state.claims_unknown, 1U);
  EXPECT_EQ(code_of(desk.renew("a", fence)), Errc::kPreconditionFailed);
  EXPECT_EQ(code_of(desk.settle("a", fence, Outcome::kReleased)), Errc::kPreconditionFailed);
  EXPECT_EQ(desk.settle("a", fence, Outcome::kUnknown, "still"), Verdict(Done{}));
  const Desk::Mark mark = desk.mark();
  EXPECT_EQ(desk.settle("a", fence, Outcome::kCompleted), Verdict(Done{}));
  EXPECT_EQ(desk.state.claims_unknown, 0U);
  desk.roll_back(mark);
  EXPECT_EQ(desk.state.claims_unknown, 1U);
  EXPECT_EQ(desk.settle("a", fence, Outcome::kFailed), Verdict(Done{}));
  EXPECT_EQ(desk.state.claims_unknown, 0U);
}

// K6: the owner may have done the work; neither time nor the next caller decides it.
TEST(Claims, ALapseOfAGuardedClaimIsAnUnknownOutcome) {
  Desk desk;
  const Fence fence = desk.must_claim("a", 1, {.on_lapse = OnLapse::kUnknown});
  const Time lapse = desk.now + seconds{30};
  desk.now = lapse - Duration{1};
  EXPECT_EQ(desk.claim("a"), Verdict(InProgress{"w1", lapse, 1}));
  EXPECT_EQ(claims_unknown(desk.state, desk.now), 0U);
  desk.now = lapse;
  const std::string reason =
      "the lease of owner 'w1' ran out at 1700000030000 ms (log time) before"
      " the owner settled; it may have done the work";
  // Readers are told so before a claim finds it out.
  EXPECT_EQ(desk.status("a")->state, ClaimState::kUnknown);
  EXPECT_EQ(desk.status("a")->reason, reason);
  EXPECT_EQ(desk.status("a")->since, lapse);
  EXPECT_EQ(claims_unknown(desk.state, desk.now), 1U);
  EXPECT_EQ(code_of(desk.renew("a", fence)), Errc::kPreconditionFailed);
  EXPECT_EQ(code_of(desk.settle("a", fence, Outcome::kReleased)), Errc::kPreconditionFailed);
  desk.now += std::chrono::hours{24 * 365};
  collect_claims(desk.state, desk.now, 100);
  EXPECT_EQ(desk.claim("a", 2), Verdict(Conflict{print_of(1), print_of(2), lapse}));
  const std::size_t facts = desk.journal.size();
  EXPECT_EQ(desk.claim("a"), Verdict(UnknownOutcome{"w1", reason, lapse}));
  EXPECT_EQ(desk.journal.size(), facts + 1) << "a fact says so from now on";
  EXPECT_EQ(desk.claim("a"), Verdict(UnknownOutcome{"w1", reason, lapse}));
  EXPECT_EQ(desk.journal.size(), facts + 1);
  EXPECT_EQ(desk.status("a")->reason, reason);
  EXPECT_EQ(claims_unknown(desk.state, desk.now), 1U);
  const Desk::Mark mark = desk.mark();
  EXPECT_EQ(desk.settle("a", fence, Outcome::kCompleted, "it did"), Verdict(Done{}));
  desk.roll_back(mark);
  EXPECT_EQ(desk.resolve("a", Resolution::kNotApplied), Verdict(Done{}));
  EXPECT_EQ(std::get<Claimed>(desk.claim("a")).former, Former::kFailed);
}

TEST(Claims, ALapseThatNoClaimFoundYetCanBeResolved) {
  Desk desk;
  desk.must_claim("a", 1, {.on_lapse = OnLapse::kUnknown});
  EXPECT_EQ(code_of(desk.resolve("a", Resolution::kCompleted)), Errc::kPreconditionFailed);
  desk.now += seconds{30};
  EXPECT_EQ(desk.resolve("a", Resolution::kCompleted, "paid"), Verdict(Done{}));
  EXPECT_EQ(desk.body_of("a"), "paid");
  EXPECT_EQ(claims_unknown(desk.state, desk.now), 0U);
}

// K6: the safer of the two words counts.
TEST(Claims, TheNextClaimMayRefuseToTakeOver) {
  Desk desk;
  desk.must_claim("a");
  desk.now += seconds{30};
  EXPECT_EQ(desk.status("a")->state, ClaimState::kProcessing);
  const Verdict careful = desk.claim("a", 1, {.owner = "w2", .on_lapse = OnLapse::kUnknown});
  EXPECT_TRUE(std::holds_alternative<UnknownOutcome>(careful));
  EXPECT_EQ(desk.status("a")->state, ClaimState::kUnknown);
  EXPECT_TRUE(std::holds_alternative<UnknownOutcome>(desk.claim("a"))) << "for everybody";
}

TEST(Claims, TheNextOwnerIsToldWhetherTheOneBeforeLapsedOrFailed) {
  Desk desk;
  const auto former = [&] { return std::get<Claimed>(desk.claim("a")).former; };
  const Fence first = desk.must_claim("a");
  desk.settle("a", first, Outcome::kFailed, "no route");
  EXPECT_EQ(former(), Former::kFailed);
  desk.now += seconds{30};
  const auto lapsed = std::get<Claimed>(desk.claim("a"));
  EXPECT_EQ(lapsed.former, Former::kLapsed);
  // That this one failed says nothing about the one before it.
  desk.settle("a", lapsed.fence, Outcome::kFailed, "no route");
  EXPECT_EQ(former(), Former::kLapsed);
  desk.forget("a");
  EXPECT_EQ(former(), Former::kNone);
}

TEST(Claims, APersonResolvesAnUnknownOutcomeAndIsAudited) {
  Desk desk;
  const Fence fence = desk.must_claim("a");
  desk.settle("a", fence, Outcome::kUnknown);
  const Desk::Mark mark = desk.mark();
  EXPECT_EQ(desk.resolve("a", Resolution::kCompleted, "by hand"), Verdict(Done{}));
  EXPECT_EQ(desk.body_of("a"), "by hand");
  EXPECT_EQ(std::get<DuplicateClaim>(desk.claim("a")).fence, fence);
  for (const char* word : {"resolve-completed", "pay/a", "ann", "checked"}) {
    EXPECT_TRUE(desk.audited(word)) << word;
  }
  desk.roll_back(mark);
  EXPECT_EQ(desk.resolve("a", Resolution::kNotApplied), Verdict(Done{}));
  EXPECT_EQ(desk.status("a")->reason, "checked");
  EXPECT_TRUE(desk.audited("resolve-not-applied"));
  EXPECT_EQ(std::get<Claimed>(desk.claim("a")).attempt, 2U);
  desk.roll_back(mark);
  EXPECT_EQ(desk.resolve("a", Resolution::kRelease), Verdict(Done{}));
  EXPECT_TRUE(desk.audited("release"));
  EXPECT_EQ(std::get<Claimed>(desk.claim("a", 2)).attempt, 1U);
}

TEST(Claims, OnlyASignedResolveOfAnUnknownOutcomeIsAccepted) {
  Desk desk;
  const Verdict nothing = desk.resolve("a\n", Resolution::kRelease);
  EXPECT_EQ(std::get<Refused>(nothing).error.text(),
            "HX1012 precondition_failed: claim 'pay/a\\x0a' is not known; only an unknown outcome"
            " can be resolved");
  const Fence fence = desk.must_claim("a");
  EXPECT_EQ(code_of(desk.resolve("a", Resolution::kRelease)), Errc::kPreconditionFailed);
  desk.settle("a", fence, Outcome::kUnknown);
  EXPECT_EQ(code_of(desk.resolve("a", Resolution::kRelease, "", "")), Errc::kInvalidArgument);
  EXPECT_EQ(code_of(desk.resolve("a", Resolution::kRelease, "", "ann", "")),
            Errc::kInvalidArgument);
  EXPECT_EQ(desk.status("a")->state, ClaimState::kUnknown);
}

// K1, K2: whoever held it is fenced, and the next claim is not confused with the removed one.
TEST(Claims, AForgottenKeyIsFreeAndItsWorkerIsFenced) {
  Desk desk;
  EXPECT_EQ(code_of(desk.forget("a")), Errc::kNotFound);
  const Fence open = desk.must_claim("a");
  EXPECT_EQ(code_of(desk.forget("a", "ann", "")), Errc::kInvalidArgument);
  EXPECT_EQ(desk.forget("a"), Verdict(Done{}));
  EXPECT_TRUE(desk.audited("forget"));
  EXPECT_EQ(desk.settle("a", open, Outcome::kCompleted), Verdict(Fenced{0, 1}));
  EXPECT_EQ(code_of(desk.forget("a")), Errc::kNotFound);

  const Fence done = desk.must_claim("a", 2);
  desk.settle("a", done, Outcome::kCompleted, "paid");
  EXPECT_EQ(desk.forget("a"), Verdict(Done{}));
  EXPECT_TRUE(desk.state.results_end.empty());
  EXPECT_EQ(desk.settle("a", done, Outcome::kCompleted), Verdict(Fenced{4, 3}));
  EXPECT_EQ(code_of(desk.forget("a")), Errc::kNotFound);
  EXPECT_EQ(desk.claim("a", 3), Verdict(Claimed{Fence{5}, 1, desk.now + seconds{30}}));
}

TEST(Claims, NewKeysAreRefusedWhenMemoryIsFullButOpenOnesAreFinished) {
  Desk desk;
  const Fence fence = desk.must_claim("a");
  desk.state.memory_max = desk.state.memory_bytes() - 1;
  EXPECT_EQ(code_of(desk.claim("b")), Errc::kMemoryBudget);
  desk.now += seconds{30};
  EXPECT_EQ(desk.must_claim("a"), fence.next());
  EXPECT_EQ(desk.settle("a", fence.next(), Outcome::kCompleted), Verdict(Done{}));
}

TEST(Claims, AReaderSeesTheStateOfAClaim) {
  Desk desk;
  const Time start = desk.now;
  const Fence fence = desk.must_claim("a");
  EXPECT_EQ(desk.status("a")->state, ClaimState::kProcessing);
  EXPECT_EQ(desk.status("a")->owner, "w1");
  EXPECT_EQ(desk.status("a")->until, start + seconds{30});
  desk.now += seconds{1};
  desk.settle("a", fence, Outcome::kFailed, "no route");
  EXPECT_EQ(desk.status("a")->state, ClaimState::kFailed);
  EXPECT_EQ(desk.status("a")->owner, "");
  EXPECT_EQ(desk.status("a")->reason, "no route");
  EXPECT_EQ(desk.status("a")->until, desk.now + seconds{10});
  desk.settle("a", desk.must_claim("a"), Outcome::kCompleted);
  EXPECT_EQ(desk.status("a")->state, ClaimState::kCompleted);
  EXPECT_EQ(desk.status("a")->attempts, 2U);
  EXPECT_EQ(desk.status("a")->fingerprint, print_of(1));
  EXPECT_EQ(desk.status("a")->since, desk.now);
}

// --- bytes and ends --------------------------------------------------------------------------

TEST(Claims, TheAnswerOfACommitIsRememberedForItsWindow) {
  Desk desk;
  const base::Hash128 id = hash_of("commit");
  const base::Where at =
      desk.emit(CommitAnswered{id, print_of(9), Fence{7}, Window{seconds{20}}, "answer"});
  EXPECT_EQ(find_settled(desk.state, id, desk.now)->where, at);
  EXPECT_EQ(find_settled(desk.state, id, desk.now)->result_until(), desk.now + seconds{20});
  EXPECT_EQ(desk.state.live_bytes.at(1), at.length);
  EXPECT_EQ(desk.must_claim("a"), Fence{8});
  EXPECT_EQ(find_settled(desk.state, id, desk.now + seconds{20}), std::nullopt);
}

TEST(Claims, AMovedResultIsReadFromItsNewPlaceAndFreesTheOldOne) {
  Desk desk;
  desk.settle("a", desk.must_claim("a"), Outcome::kCompleted, "paid");
  const base::Where old = find_settled(desk.state, hash_of("a"), desk.now)->where;
  EXPECT_TRUE(is_live_result(desk.state, hash_of("a"), old, desk.now));
  ASSERT_TRUE(desk.move_result("a"));
  EXPECT_FALSE(is_live_result(desk.state, hash_of("a"), old, desk.now));
  EXPECT_EQ(desk.body_of("a"), "paid");
  EXPECT_EQ(desk.state.live_bytes, (std::map<std::uint32_t, std::uint64_t>{{2, old.length}}));
}

// The engine copies only live results; a fact that comes too late must still be harmless.
TEST(Claims, AResultThatIsOverIsNotMovedAlthoughItsTombstoneRemains) {
  Desk desk;
  const Fence fence = desk.must_claim("a", 1, {.tombstone = Window{seconds{60}}});
  desk.settle("a", fence, Outcome::kCompleted, "paid");
  desk.now += seconds{11};
  desk.undo.forget();
  collect_claims(desk.state, desk.now, 100);
  EXPECT_FALSE(desk.move_result("a"));
  desk.segments.emplace_back();
  desk.emit(ResultMoved{hash_of("a"), "the old frame"});
  EXPECT_EQ(find_settled(desk.state, hash_of("a"), desk.now)->where.segment, 1U);
  EXPECT_TRUE(desk.state.live_bytes.empty());
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
  Desk desk;
  for (const char* key : {"a", "b", "c"}) {
    desk.settle(key, desk.must_claim(key), Outcome::kCompleted, "paid");
    desk.segments.emplace_back();
  }
  for (const char* key : {"d", "e", "f"}) desk.must_claim(key);
  desk.undo.forget();
  collect_claims(desk.state, desk.now + seconds{9}, 100);
  EXPECT_EQ(desk.state.open_claims.size() + desk.state.live_bytes.size(), 6U);
  collect_claims(desk.state, desk.now + seconds{40}, 4);
  EXPECT_EQ(desk.state.open_claims.size() + desk.state.live_bytes.size(), 2U);
  collect_claims(desk.state, desk.now + seconds{40}, 100);
  EXPECT_TRUE(desk.state.open_claims_end.empty());
  EXPECT_TRUE(desk.state.live_bytes.empty());
  EXPECT_TRUE(desk.state.results_end.empty());
  EXPECT_EQ(desk.state.text_bytes, 0U);
}

}  // namespace
}  // namespace hapax::core::desk
