#include "access/caller.h"

#include <deque>

#include <gtest/gtest.h>

#include "access/admission.h"

namespace hapax::access {
namespace {

const Caller kAcme{{"acme", "billing", {Right::kProduce}}};

TEST(Caller, MayDoWhatItsRolesSayAndNothingElse) {
  EXPECT_TRUE(check_right(kAcme, right_of(Append{})));
  EXPECT_TRUE(check_right(kAcme, right_of(Claim{})));
  for (const Op& op : {Op{Receive{}}, Op{CreateStream{}}, Op{DeleteStream{}}, Op{Trim{}},
                       Op{Resolve{}}, Op{Forget{}}, Op{RetireProducer{}}, Op{Seek{}}}) {
    const Status refused = check_right(kAcme, right_of(op));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::kForbidden);
  }
}

TEST(Caller, SignsAnActWhoseActorIsLeftOut) {
  std::deque<std::string> kept;
  const auto keep = [&](const std::string& text) -> std::string_view {
    return kept.emplace_back(text);
  };
  const auto actor = [&](const Caller& caller, std::string_view given) {
    Op op = Forget{.scope = "s", .key = "k", .actor = given, .reason = "asked to"};
    sign(op, caller, keep);
    return std::get<Forget>(op).actor;
  };
  EXPECT_EQ(actor(kAcme, ""), "billing");
  EXPECT_EQ(actor(kAcme, "ann"), "ann");
  EXPECT_EQ(actor(Caller{{"", std::string(kAnybody), Rights::all()}}, ""), "");
}

// A6
TEST(Caller, IsToldThatThereIsAResultThatItMayNotSee) {
  Verdict settled = DuplicateClaim{.result = StoredResult{200, "", "secret"}};
  for (int times = 0; times < 2; ++times) {
    hide_result(settled);
    EXPECT_EQ(std::get<DuplicateClaim>(settled), DuplicateClaim{.hidden = true});
  }
  Verdict large = DuplicateClaim{.left_out = true};
  hide_result(large);
  EXPECT_EQ(std::get<DuplicateClaim>(large), DuplicateClaim{.hidden = true});
  Verdict gone = DuplicateClaim{};
  hide_result(gone);
  EXPECT_EQ(std::get<DuplicateClaim>(gone), DuplicateClaim{});
}

}  // namespace
}  // namespace hapax::access
