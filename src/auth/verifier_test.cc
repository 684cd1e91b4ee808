#include "auth/verifier.h"

#include <map>

#include <gtest/gtest.h>

#include "auth/signer_test.h"
#include "auth/vectors_test.h"
#include "host/entropy.h"

namespace hapax::auth {
namespace {

const Time kNow = time_from_ms(kOpensslIssued * 1000);

class GuardTest : public testing::Test {
 protected:
  GuardTest() {
    host::HostEntropy entropy;
    made_ = *make_token({"acme", {Right::kAdmin}, "ops", kNow, std::nullopt, ""}, entropy);
    files_["rsa.pem"] = kOpensslRs256Key;
    files_["tokens"] = line_of(made_.token) + "\n";
    settings_.keys = {{"rsa.pem", KeyKind::kPem, Algorithm::kRs256, ""}};
    settings_.tokens_file = "tokens";
  }

  Result<std::shared_ptr<const Verifier>> build() const {
    return Verifier::build(settings_, read_);
  }
  std::string build_error() const {
    const auto verifier = build();
    return verifier ? "" : verifier.error().text();
  }

  std::map<std::string, std::string> files_;
  ReadFile read_ = [this](const std::string& path) -> Result<std::string> {
    const auto found = files_.find(path);
    if (found == files_.end()) return Error{Errc::kNotFound, "open " + path};
    return found->second;
  };
  VerifierSettings settings_;
  MadeToken made_;
};

TEST_F(GuardTest, KnowsTokensAndJwtsByTheirForm) {
  const auto verifier = build();
  ASSERT_TRUE(verifier) << verifier.error().text();
  EXPECT_EQ((*verifier)->keys(), 1U);
  EXPECT_EQ((*verifier)->tokens(), 1U);
  const Authentication token = (*verifier)->authenticate(made_.text, kNow);
  ASSERT_TRUE(token.identity) << token.reason;
  EXPECT_EQ(token.identity->subject, "ops");
  EXPECT_EQ(token.until, Time::max());
  const Authentication jwt = (*verifier)->authenticate(kOpensslRs256Token, kNow);
  ASSERT_TRUE(jwt.identity) << jwt.reason;
  EXPECT_EQ(jwt.identity->subject, "billing");
  EXPECT_EQ(jwt.until, time_from_ms((kOpensslExpires + 30) * 1000));
}

TEST_F(GuardTest, WithoutKeysAndTokensRefusesEverybody) {
  settings_ = {};
  EXPECT_TRUE(settings_.empty());
  const auto verifier = build();
  ASSERT_TRUE(verifier);
  for (const std::string& text : {made_.text, std::string(kOpensslRs256Token), std::string("")}) {
    EXPECT_FALSE((*verifier)->authenticate(text, kNow).identity);
  }
}

// A1: what fails before the secret or signature was proven is told in two ways only, and no answer
// repeats what was sent.
TEST_F(GuardTest, TellsTheClientNothingThatHelpsToGuess) {
  const auto verifier = *build();
  const auto told = [&](const std::string& text) {
    const Authentication outcome = verifier->authenticate(text, kNow);
    EXPECT_FALSE(outcome.identity);
    EXPECT_EQ(outcome.identity.error().code, Errc::kUnauthenticated);
    EXPECT_FALSE(outcome.reason.empty());
    return outcome.identity.error().detail;
  };
  host::HostEntropy entropy;
  const auto other = *make_token({"acme", {Right::kAdmin}, "", kNow, std::nullopt, ""}, entropy);
  const std::string secret(40, 's');
  const std::string unknown_token = told(other.text);
  const std::string unknown_algorithm = told(hmac_token(secret, R"({"alg":"none"})", "{}"));
  const std::string unknown_key = told(hmac_token(secret, R"({"alg":"HS256","kid":"q"})", "{}"));
  const std::string wrong_signature = told(hmac_token(secret, R"({"alg":"RS256"})", "{}"));
  EXPECT_EQ(unknown_token, unknown_algorithm);
  EXPECT_EQ(unknown_token, unknown_key);
  EXPECT_EQ(unknown_token, wrong_signature);
  const std::string typo = told(other.text + "x");
  EXPECT_NE(typo, unknown_token);
  EXPECT_EQ(typo, told("nonsense"));
}

TEST_F(GuardTest, TheReasonForTheLogHasNoSecretInIt) {
  const auto verifier = *build();
  host::HostEntropy entropy;
  const auto other = *make_token({"acme", {Right::kAdmin}, "", kNow, std::nullopt, ""}, entropy);
  const Authentication outcome = verifier->authenticate(other.text, kNow);
  EXPECT_EQ(outcome.reason, "the API token " + other.token.id + " is unknown");
  const Authentication strange = verifier->authenticate(
      hmac_token("", "{\"alg\":\"\\u001b[31m\\n\",\"kid\":\"\\n\"}", "{}"), kNow);
  EXPECT_EQ(strange.reason, "the algorithm (unprintable or too long) is not accepted");
}

TEST_F(GuardTest, OneWhoIsKnownButHasNoRoleIsForbidden) {
  const std::string secret(40, 's');
  files_["secret"] = secret;
  settings_.keys = {{"secret", KeyKind::kSecret, std::nullopt, ""}};
  const auto verifier = *build();
  const auto code = [&](const std::string& claims) {
    const std::string token = hmac_token(secret, R"({"alg":"HS256"})", claims);
    return verifier->authenticate(token, kNow).identity.error().code;
  };
  EXPECT_EQ(code(R"({"exp":1700003600,"tenant":"acme","roles":["reader"]})"), Errc::kForbidden);
  EXPECT_EQ(code(R"({"exp":1700003600,"roles":["admin"]})"), Errc::kForbidden);
  EXPECT_EQ(code(R"({"exp":1700003600,"tenant":"acme","roles":7})"), Errc::kUnauthenticated);
}

TEST_F(GuardTest, ErrorsOfTheSettingsNameTheFile) {
  files_["rsa.pem"] = "nonsense";
  EXPECT_EQ(
      build_error(),
      "HX1001 invalid_argument: rsa.pem: no public key in PEM ('-----BEGIN PUBLIC KEY-----')");
  files_["rsa.pem"] = kOpensslRs256Key;
  files_["tokens"] = "{}\n";
  EXPECT_EQ(build_error(), "HX1001 invalid_argument: tokens: line 1: 'id' is missing or no text");
  settings_.tokens_file = "elsewhere";
  EXPECT_EQ(build_error(), "HX1003 not_found: open elsewhere");
  settings_.leeway = std::chrono::seconds{301};
  EXPECT_EQ(build_error(), "HX1001 invalid_argument: the leeway is 301 s; 0 to 300 s are possible");
}

TEST_F(GuardTest, RefusesTwoKeysOfOneId) {
  files_["ed.pem"] = kOpensslEdDsaKey;
  settings_.keys = {{"rsa.pem", KeyKind::kPem, std::nullopt, "one"},
                    {"ed.pem", KeyKind::kPem, std::nullopt, "one"}};
  EXPECT_EQ(build_error(), "HX1001 invalid_argument: ed.pem: the key id 'one' is there twice");
}

// A4
TEST_F(GuardTest, AReloadThatFailsLeavesTheOldGuard) {
  CurrentVerifier post(*build());
  const auto before = post.verifier();
  const std::string good = files_["tokens"];
  files_["tokens"] = "nonsense\n";
  const Status failed = post.reload(settings_, read_);
  ASSERT_FALSE(failed);
  EXPECT_EQ(post.verifier(), before);
  EXPECT_TRUE(post.verifier()->authenticate(made_.text, kNow).identity);
  files_["tokens"] = *with_revoked(good, made_.token.id, kNow);
  ASSERT_TRUE(post.reload(settings_, read_));
  EXPECT_NE(post.verifier(), before);
  EXPECT_FALSE(post.verifier()->authenticate(made_.text, kNow).identity);
  EXPECT_TRUE(before->authenticate(made_.text, kNow).identity);  // Whoever holds it may go on.
}

}  // namespace
}  // namespace hapax::auth
