#include "access/tenant_names.h"

#include <deque>

#include <gtest/gtest.h>

#include "access/admission.h"

namespace hapax::access {
namespace {

const Caller kAtAcme{{"acme", "billing", {Right::kProduce}}};
const Caller kElsewhere{{"other", "x", Rights::all()}};

// A6: every name of every operation becomes the tenant's own, and no name reaches into another.
TEST(TenantNames, KeepTenantsApart) {
  std::deque<std::string> kept;
  const auto keep = [&](const std::string& text) -> std::string_view {
    return kept.emplace_back(text);
  };
  const TenantNames acme(kAtAcme);
  const TenantNames other(kElsewhere);
  Op op = CreateConsumer{"s", "c", {.dead_letters = "d"}};
  scope(op, acme, keep);
  const auto& consumer = std::get<CreateConsumer>(op);
  EXPECT_TRUE(acme.is_ours(consumer.stream));
  EXPECT_FALSE(other.is_ours(consumer.stream));
  EXPECT_FALSE(TenantNames(Caller{}).is_ours(consumer.stream));
  EXPECT_EQ(acme.outside(consumer.stream), "s");
  EXPECT_EQ(acme.outside(consumer.settings.dead_letters), "d");
  EXPECT_EQ(consumer.consumer, "c");
  EXPECT_FALSE(check(kAtAcme, Append{.stream = consumer.stream}));
  EXPECT_FALSE(check(kAtAcme, Claim{.scope = "\x01other\x01payments"}));
  EXPECT_TRUE(check(kAtAcme, Claim{.scope = "payments"}));
}

// A6: messages have the caller's own names, results only with the right.
TEST(TenantNames, CleanWhatIsTold) {
  const TenantNames acme(kAtAcme);
  Verdict refused = Refused{{Errc::kNotFound, "no stream '" + acme.inside("orders") + "'"}};
  acme.clean(refused);
  EXPECT_EQ(std::get<Refused>(refused).error.detail, "no stream 'orders'");
  Verdict settled = DuplicateClaim{.result = StoredResult{200, "", "secret"}};
  TenantNames(kElsewhere).clean(settled);
  EXPECT_TRUE(std::get<DuplicateClaim>(settled).result);
  acme.clean_names(settled);
  EXPECT_TRUE(std::get<DuplicateClaim>(settled).result) << "a question of rights, not of names";
  acme.clean(settled);
  EXPECT_EQ(std::get<DuplicateClaim>(settled), DuplicateClaim{.hidden = true});
}

}  // namespace
}  // namespace hapax::access
