#include "serve/tenant_settings.h"

#include <fstream>

#include <gtest/gtest.h>

#include "access/credential_authenticator.h"
#include "auth/tokens.h"
#include "host/entropy.h"
#include "host/temporary_folder_test.h"
#include "host/whole_file.h"
#include "serve/log.h"

namespace hapax::serve {
namespace {

class HeldClock final : public ports::Clock {
 public:
  std::int64_t wall_ms() override { return now; }
  std::int64_t steady_ms() override { return now; }
  std::int64_t now = 1'700'000'000'000;
};

class AuthenticatorTest : public testing::Test {
 protected:
  AuthenticatorTest() { auth_.tokens_file = folder_.text() + "/tokens"; }

  // The tokens of the file are these and no others.
  void put(std::initializer_list<auth::ApiToken> tokens) {
    std::ofstream file(auth_.tokens_file);
    for (const auth::ApiToken& token : tokens) file << line_of(token) << "\n";
  }
  auth::MadeToken make(std::optional<Time> expires = std::nullopt) {
    host::HostEntropy entropy;
    const Time now = time_from_ms(clock_.now);
    return *auth::make_token({"acme", {access::Right::kProduce}, "", now, expires, ""}, entropy);
  }

  Result<std::unique_ptr<access::CredentialAuthenticator>> open(const config::Auth& auth) {
    return access::CredentialAuthenticator::open(verifier_settings(auth), host::read_file,
                                                 accounts_, clock_,
                                                 [](std::string_view, const std::string&) {});
  }

  const host::TemporaryFolder folder_;
  config::Auth auth_;
  access::Accounts accounts_{limits_of({})};
  HeldClock clock_;
  Log log_{{.level = LogLevel::kError}, clock_};
};

TEST(Shares, AreFairAmongThoseWhoSignIn) {
  config::Tenants tenants;
  tenants.others.storage_max = 10;
  tenants.others.streams_max = 7;
  tenants.named["acme"].memory_max = 0;
  const TenantShare alone = shares_of(tenants, {})("");
  EXPECT_EQ(alone, (TenantShare{.storage_max = 10, .streams_max = 7}));
  config::Auth auth;
  auth.tokens_file = "tokens";
  constexpr std::uint64_t kFree = TenantShare::kWhatIsFree;
  const ShareOf share_of = shares_of(tenants, auth);
  EXPECT_EQ(
      share_of("other"),
      (TenantShare{
          .storage_max = 10, .memory_max = kFree, .streams_max = 7, .transactions_max = kFree}));
  EXPECT_EQ(share_of("acme"),
            (TenantShare{.storage_max = 10, .streams_max = 7, .transactions_max = kFree}));
}

TEST_F(AuthenticatorTest, WithoutKeysEverybodyIsAnybody) {
  const auto opened = open({});
  ASSERT_TRUE(opened);
  ASSERT_TRUE((*opened)->anybody());
  EXPECT_EQ((*opened)->anybody()->tenant, "");
  EXPECT_FALSE((*opened)->authenticate("x", "peer"));
}

// A5: it ends with its credential, and with the keys and tokens that it was checked against.
TEST_F(AuthenticatorTest, AnAdmissionEnds) {
  const auto made = make(time_from_ms(clock_.now + 5'000));
  put({made.token});
  const auto opened = open(auth_);
  ASSERT_TRUE(opened);
  access::CredentialAuthenticator& authenticator = **opened;
  EXPECT_FALSE(authenticator.anybody());
  const auto admitted = authenticator.authenticate(made.text, "peer");
  ASSERT_TRUE(admitted);
  EXPECT_EQ(admitted->caller.tenant, "acme");
  EXPECT_TRUE(authenticator.holds(*admitted));
  ASSERT_TRUE(authenticator.reload(verifier_settings(auth_)));
  EXPECT_FALSE(authenticator.holds(*admitted));
  const auto again = authenticator.authenticate(made.text, "peer");
  ASSERT_TRUE(again);
  EXPECT_TRUE(authenticator.holds(*again));
  clock_.now += 5'000;
  EXPECT_FALSE(authenticator.holds(*again));
  EXPECT_FALSE(authenticator.authenticate(made.text, "peer"));
}

TEST_F(AuthenticatorTest, NeverOpensTheDoorsWithAReload) {
  put({make().token});
  const auto opened = open(auth_);
  ASSERT_TRUE(opened);
  EXPECT_FALSE((*opened)->reload(std::nullopt));
  EXPECT_FALSE((*opened)->anybody());
}

// Whatever a client sends, a line stays one line, and a value one value.
TEST_F(AuthenticatorTest, LinesOfTheLogCannotBeForged) {
  Log text({}, clock_);
  const std::string line =
      text.line(LogLevel::kInfo, "a\nb", {{"peer", "x y=\"1\"\n2026 error"}, {"n", "7"}});
  EXPECT_EQ(line, "2023-11-14T22:13:20.000Z info a b peer=\"x y=\\\"1\\\"\\n2026 error\" n=7\n");
  Log json({.format = config::LogFormat::kJson}, clock_);
  EXPECT_EQ(json.line(LogLevel::kError, "a\nb", {{"n", "7"}}),
            "{\"time\":\"2023-11-14T22:13:20.000Z\",\"level\":\"error\",\"event\":\"a\\nb\","
            "\"n\":\"7\"}\n");
}

}  // namespace
}  // namespace hapax::serve
