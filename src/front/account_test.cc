#include "front/account.h"

#include <gtest/gtest.h>

#include "front/desk.h"

namespace hapax::front {
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
    const Status status = account.check(op, kStart);
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
  EXPECT_TRUE(account.check_window("id_window", good));
  EXPECT_FALSE(account.check_window("id_window", longer));
}

// A7: nothing is added beyond the storage.
TEST(Account, RefusesWhatIsBeyondTheStorage) {
  Account account({.storage_max = 100, .ttl_max = seconds{7'200}});
  EXPECT_TRUE(account.check(Append{.payload = std::string(60, 'x')}, kStart));
  const Status full = account.check(Append{.payload = std::string(60, 'x')}, kStart);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, Errc::kQuotaExceeded);
  account.count_records(0);  // They were trimmed.
  EXPECT_TRUE(account.check(Settle{.result = {200, "", std::string(90, 'x')}}, kStart));
  EXPECT_FALSE(account.check(Append{.payload = std::string(60, 'x')}, kStart));
  EXPECT_TRUE(account.check(Append{}, kStart));
  EXPECT_TRUE(account.check(Append{.payload = std::string(60, 'x')}, kStart + seconds{10'800}));
}

TEST(Account, CountsConnections) {
  const auto account = std::make_shared<Account>(TenantLimits{.connections_max = 1});
  std::shared_ptr<Seat> first;
  std::shared_ptr<Seat> second;
  EXPECT_TRUE(keep_seat(first, account));
  EXPECT_TRUE(keep_seat(first, account));
  EXPECT_FALSE(keep_seat(second, account));
  EXPECT_EQ(account->connections(), 1U);
  first.reset();
  EXPECT_TRUE(keep_seat(second, account));
}

TEST(Accounts, TakeNewLimitsAndRememberWhatWasCounted) {
  Accounts accounts([](const std::string&) { return TenantLimits{.storage_max = 10}; });
  accounts.count_records({{"acme", 10}});
  const Caller acme{"acme", "", Rights::all(), accounts.of("acme")};
  EXPECT_TRUE(accounts.any_storage_max());
  EXPECT_FALSE(check(acme, Append{.stream = "s", .payload = "x"}));
  accounts.set([](const std::string& name) {
    return name == "acme" ? TenantLimits{} : TenantLimits{.rate = 1};
  });
  EXPECT_TRUE(check(acme, Append{.stream = "s", .payload = "x"}));
  EXPECT_FALSE(accounts.any_storage_max());
}

}  // namespace
}  // namespace hapax::front
