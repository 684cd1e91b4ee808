#include "access/account.h"

#include <gtest/gtest.h>

#include "access/admission.h"
#include "access/entry.h"

namespace hapax::access {
namespace {

using std::chrono::seconds;

const Account::Steady kStart{std::chrono::hours{1}};

TEST(Account, LetsARateInAndABurst) {
  Account account({.rate = 10, .burst = 3});
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(account.charge(kStart));
  EXPECT_EQ(account.charge(kStart), Duration{100});
  EXPECT_FALSE(account.charge(kStart + Duration{100}));
  EXPECT_TRUE(account.charge(kStart + Duration{100}));
  EXPECT_EQ(account.refused(), 2U);
}

// A batch larger than the burst is possible; it is paid for afterwards.
TEST(Account, LetsABatchIntoDebt) {
  Account account({.rate = 10});
  EXPECT_FALSE(account.charge(kStart));
  account.charge_more(99);
  EXPECT_EQ(account.charge(kStart), Duration{9'100});
  EXPECT_TRUE(account.charge(kStart + seconds{9}));
  EXPECT_FALSE(account.charge(kStart + Duration{9'100}));
}

// A7: nothing is kept longer than the tenant may.
TEST(Account, RefusesWhatWouldBeKeptTooLong) {
  Account account({.ttl_max = seconds{60}});
  const Window good{seconds{60}};
  const Window longer{seconds{61}};
  const auto checked = [&](const Op& op) {
    const Status status = account.check(op);
    EXPECT_TRUE(status || status.error().code == Errc::kLimitExceeded);
    return status.ok();
  };
  EXPECT_TRUE(checked(CreateStream{"s", {.window = good}}));
  EXPECT_FALSE(checked(CreateStream{"s", {.window = longer}}));
  EXPECT_FALSE(checked(ConfigureStream{"s", {.window = Window::forever()}}));
  EXPECT_FALSE(checked(CreateStream{"s", {.window = good, .retention = {.age = seconds{61}}}}));
  EXPECT_TRUE(checked(Claim{.retention = good, .tombstone = good}));
  EXPECT_FALSE(checked(Claim{.retention = good, .tombstone = longer}));
  EXPECT_FALSE(checked(Claim{.lease = seconds{61}, .retention = good, .tombstone = good}));
  EXPECT_FALSE(checked(Renew{.lease = seconds{61}}));
  EXPECT_FALSE(checked(Receive{.lease = seconds{61}}));
  EXPECT_FALSE(checked(Extend{.lease = seconds{61}}));
  EXPECT_FALSE(checked(Nack{.delay = seconds{61}}));
  EXPECT_FALSE(checked(Begin{.timeout = seconds{61}}));
}

// A header cannot say how long its key is to be remembered.
TEST(Account, RemembersACommitIdForNoLongerThanItMay) {
  const Account account({.ttl_max = seconds{60}});
  EXPECT_EQ(*account.id_window(std::nullopt), Window{seconds{60}});
  EXPECT_EQ(*account.id_window(Window{seconds{30}}), Window{seconds{30}});
  const auto longer = account.id_window(Window{seconds{61}});
  ASSERT_FALSE(longer);
  EXPECT_EQ(longer.error().code, Errc::kLimitExceeded);
  EXPECT_FALSE(account.id_window(Window::forever()));
  const Account generous({.ttl_max = std::chrono::hours{48}});
  EXPECT_EQ(*generous.id_window(std::nullopt), limits::kWindowDefault);
  EXPECT_EQ(*Account({}).id_window(Window::forever()), Window::forever());
}

// Where nobody says how long, it is the tenant's default, and never more than the tenant may.
TEST(Account, FillsInWhatIsNotSaid) {
  const auto window = [](TenantLimits limits) { return Account(limits).usual().window; };
  EXPECT_EQ(window({}), limits::kWindowDefault);
  EXPECT_EQ(window({.ttl_default = seconds{60}}), Window{seconds{60}});
  EXPECT_EQ(window({.ttl_max = std::chrono::hours{12}}), Window{std::chrono::hours{12}});
  EXPECT_EQ(window({.ttl_max = seconds{30}, .ttl_default = seconds{60}}), Window{seconds{30}});
  EXPECT_EQ(*Account({.ttl_default = seconds{60}}).id_window(std::nullopt), Window{seconds{60}});

  const wire::Usual usual = Account({.ttl_max = seconds{10}}).usual();
  Claim claim;
  usual.put(claim);
  EXPECT_EQ(claim.retention, Window{seconds{10}});
  EXPECT_EQ(claim.tombstone, Window{seconds{10}});
  EXPECT_EQ(claim.lease, seconds{10});
  EXPECT_TRUE(Account({.ttl_max = seconds{10}}).check(claim));
  Begin begin;
  usual.put(begin);
  EXPECT_EQ(begin.timeout, seconds{10});
}

TEST(Account, FillsInTheSettingsOfTheOutbox) {
  const Retention week{.age = std::chrono::days{7}, .acked_by_all = true};
  const wire::Usual usual =
      Account({.outbox = "events", .outbox_retention = week, .outbox_attempts_max = 4}).usual();
  const auto filled = [&]<class AnyOp>(AnyOp op) {
    AnyOp made{};
    usual.put(made);
    made.stream = op.stream;
    if constexpr (requires { op.settings.retention; }) {
      made.settings.retention = op.settings.retention;
    } else if (op.settings.attempts_max != ConsumerSettings{}.attempts_max) {
      made.settings.attempts_max = op.settings.attempts_max;
    }
    usual.finish(made);
    return made.settings;
  };
  EXPECT_EQ(filled(CreateStream{"events", {}}).retention, week);
  EXPECT_EQ(filled(CreateStream{"events", {.retention = {.count = 5}}}).retention.count, 5U);
  EXPECT_EQ(filled(CreateStream{"other", {}}).retention, Retention{});
  EXPECT_EQ(filled(CreateConsumer{"events", "c", {}}).attempts_max, 4U);
  EXPECT_EQ(filled(CreateConsumer{"events", "c", {.attempts_max = 7}}).attempts_max, 7U);
  EXPECT_EQ(filled(CreateConsumer{"other", "c", {}}).attempts_max, 10U);
}

TEST(Account, CountsConnections) {
  const auto account = std::make_shared<Account>(TenantLimits{.connections_max = 1});
  std::shared_ptr<ConnectionPermit> first;
  std::shared_ptr<ConnectionPermit> second;
  EXPECT_TRUE(hold_permit(first, account));
  EXPECT_TRUE(hold_permit(first, account));
  EXPECT_FALSE(hold_permit(second, account));
  EXPECT_EQ(account->connections(), 1U);
  first.reset();
  EXPECT_TRUE(hold_permit(second, account));
}

TEST(Accounts, TakeNewLimits) {
  Accounts accounts([](const std::string&) { return TenantLimits{.ttl_max = seconds{60}}; });
  const Caller acme{{"acme", "", Rights::all()}, accounts.of("acme")};
  EXPECT_FALSE(check(acme, CreateStream{.stream = "s"}));
  accounts.set([](const std::string& name) {
    return name == "acme" ? TenantLimits{} : TenantLimits{.rate = 1};
  });
  EXPECT_TRUE(check(acme, CreateStream{.stream = "s"}));
  EXPECT_TRUE(accounts.of("other")->limited());
}

}  // namespace
}  // namespace hapax::access
