#include "access/caller.h"

#include <deque>

#include <gtest/gtest.h>

#include "access/admission.h"

namespace hapax::access {
namespace {

const Caller kAcme{"acme", "billing", {Right::kProduce}};
const Caller kOther{"other", "x", Rights::all()};

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
  EXPECT_EQ(actor(Caller{"", std::string(kAnybody), Rights::all()}, ""), "");
}

// A6: every name of every operation becomes the tenant's own, and no name reaches into another.
TEST(TenantNames, KeepTenantsApart) {
  std::deque<std::string> kept;
  const auto keep = [&](const std::string& text) -> std::string_view {
    return kept.emplace_back(text);
  };
  const TenantNames acme(kAcme);
  const TenantNames other(kOther);
  Op op = CreateConsumer{"s", "c", {.dead_letters = "d"}};
  scope(op, acme, keep);
  const auto& consumer = std::get<CreateConsumer>(op);
  EXPECT_TRUE(acme.is_ours(consumer.stream));
  EXPECT_FALSE(other.is_ours(consumer.stream));
  EXPECT_FALSE(TenantNames(Caller{}).is_ours(consumer.stream));
  EXPECT_EQ(acme.outside(consumer.stream), "s");
  EXPECT_EQ(acme.outside(consumer.settings.dead_letters), "d");
  EXPECT_EQ(consumer.consumer, "c");
  EXPECT_FALSE(check(kAcme, Append{.stream = consumer.stream}));
  EXPECT_FALSE(check(kAcme, Claim{.scope = "\x01other\x01payments"}));
  EXPECT_TRUE(check(kAcme, Claim{.scope = "payments"}));
}

// A6: messages have the caller's own names, results only with the right.
TEST(TenantNames, CleanWhatIsTold) {
  const TenantNames acme(kAcme);
  Verdict refused = Refused{{Errc::kNotFound, "no stream '" + acme.inside("orders") + "'"}};
  acme.clean(refused);
  EXPECT_EQ(std::get<Refused>(refused).error.detail, "no stream 'orders'");
  Verdict settled = DuplicateClaim{.result = StoredResult{200, "", "secret"}};
  TenantNames(kOther).clean(settled);
  EXPECT_TRUE(std::get<DuplicateClaim>(settled).result);
  for (int times = 0; times < 2; ++times) {
    acme.clean(settled);
    EXPECT_EQ(std::get<DuplicateClaim>(settled), DuplicateClaim{.hidden = true});
  }
  Verdict large = DuplicateClaim{.left_out = true};
  acme.clean(large);
  EXPECT_EQ(std::get<DuplicateClaim>(large), DuplicateClaim{.hidden = true});
  Verdict gone = DuplicateClaim{};
  acme.clean(gone);
  EXPECT_EQ(std::get<DuplicateClaim>(gone), DuplicateClaim{});
}

}  // namespace
}  // namespace hapax::access
