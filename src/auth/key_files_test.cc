#include "auth/key_files.h"

#include <gtest/gtest.h>

#include "auth/jwt.h"
#include "auth/signer_test.h"
#include "auth/vectors_test.h"

namespace hapax::auth {
namespace {

KeySource source(KeyKind kind) { return {"file", kind, std::nullopt, ""}; }

std::vector<Key> keys_of(KeyKind kind, std::string_view bytes) {
  auto keys = read_keys(source(kind), bytes);
  EXPECT_TRUE(keys) << keys.error().text();
  return keys ? *std::move(keys) : std::vector<Key>{};
}

std::string refused(KeyKind kind, std::string_view bytes) {
  const auto keys = read_keys(source(kind), bytes);
  EXPECT_FALSE(keys);
  return keys ? "" : keys.error().detail;
}

// The signature of a token under the only key of a set.
void expect_signed(std::string_view set, std::string_view token, Algorithm algorithm) {
  const std::vector<Key> keys = keys_of(KeyKind::kJwks, set);
  ASSERT_EQ(keys.size(), 1U);
  EXPECT_EQ(keys[0].algorithm(), algorithm);
  const auto parsed = parse_jwt(token);
  ASSERT_EQ(parsed.index(), 0U) << std::get<Refusal>(parsed).reason;
  const Jwt& jwt = std::get<Jwt>(parsed);
  EXPECT_EQ(jwt.algorithm, word_of(algorithm));
  EXPECT_TRUE(keys[0].verify(jwt.signed_bytes, jwt.signature));
  EXPECT_FALSE(keys[0].verify(jwt.signed_bytes.substr(1), jwt.signature));
}

TEST(Keys, CheckTheExamplesOfTheStandards) {
  expect_signed(kRfc7515Hs256Keys, kRfc7515Hs256Token, Algorithm::kHs256);
  expect_signed(kRfc7515Rs256Keys, kRfc7515Rs256Token, Algorithm::kRs256);
  expect_signed(kRfc7515Es256Keys, kRfc7515Es256Token, Algorithm::kEs256);
  expect_signed(kRfc8037EdDsaKeys, kRfc8037EdDsaToken, Algorithm::kEdDsa);
}

TEST(Keys, TakeTheirAlgorithmFromPem) {
  EXPECT_EQ(keys_of(KeyKind::kPem, kOpensslRs256Key)[0].algorithm(), Algorithm::kRs256);
  EXPECT_EQ(keys_of(KeyKind::kPem, kOpensslEs256Key)[0].algorithm(), Algorithm::kEs256);
  EXPECT_EQ(keys_of(KeyKind::kPem, kOpensslEdDsaKey)[0].algorithm(), Algorithm::kEdDsa);
  KeySource wants = source(KeyKind::kPem);
  wants.algorithm = Algorithm::kEs256;
  const auto keys = read_keys(wants, kOpensslRs256Key);
  ASSERT_FALSE(keys);
  EXPECT_EQ(keys.error().detail, "it is a key for RS256, not for ES256");
}

TEST(Keys, RefuseWeakAndForeignOnes) {
  EXPECT_EQ(refused(KeyKind::kPem, SigningKey::rsa(1024).public_pem()),
            "an RSA key of 1024 bits; 2048 to 8192 are accepted");
  EXPECT_EQ(refused(KeyKind::kPem, SigningKey::ec("P-384").public_pem()),
            "an elliptic curve that is not P-256 but secp384r1");
  EXPECT_EQ(refused(KeyKind::kPem, SigningKey::ec("secp256k1").public_pem()),
            "an elliptic curve that is not P-256 but secp256k1");
  EXPECT_NE(refused(KeyKind::kPem, SigningKey::ed25519().private_pem()).find("a private key"),
            std::string::npos);
  EXPECT_NE(refused(KeyKind::kPem, "-----BEGIN CERTIFICATE-----").find("x509"), std::string::npos);
  EXPECT_NE(refused(KeyKind::kPem, "nonsense").find("no public key"), std::string::npos);
  const std::string two = std::string(kOpensslRs256Key) + std::string(kOpensslEs256Key);
  EXPECT_NE(refused(KeyKind::kPem, two).find("two public keys"), std::string::npos);
}

// A2: a public key cannot become a secret, not even by a mistake in the settings.
TEST(Keys, RefuseShortSecretsAndPublicKeysAsSecrets) {
  EXPECT_NE(refused(KeyKind::kSecret, std::string(31, 'x')).find("31 bytes"), std::string::npos);
  EXPECT_NE(refused(KeyKind::kSecret, std::string(31, 'x') + "\n").find("31 bytes"),
            std::string::npos);
  EXPECT_NE(refused(KeyKind::kSecret, kOpensslRs256Key).find("PEM"), std::string::npos);
  const std::string jwk = url64(kOpensslRs256Key);
  EXPECT_NE(refused(KeyKind::kJwks, R"({"keys":[{"kty":"oct","k":")" + jwk + R"("}]})").find("PEM"),
            std::string::npos);
}

TEST(Keys, OfASecretInATextFileTheNewlineIsNoPart) {
  const std::string text(40, 's');
  const std::string mac = sign_hmac(text, "bytes");
  for (const char* end : {"", "\n", "\r\n"}) {
    EXPECT_TRUE(keys_of(KeyKind::kSecret, text + end)[0].verify("bytes", mac));
  }
  const std::string binary = std::string(40, '\x80') + "\n";
  EXPECT_TRUE(keys_of(KeyKind::kSecret, binary)[0].verify("bytes", sign_hmac(binary, "bytes")));
}

// RFC 7517 §5: keys for other purposes stand beside ours.
TEST(KeySet, LeavesOutWhatIsForAnotherPurpose) {
  const std::string ours = R"({"kty":"OKP","crv":"Ed25519","kid":"ours","use":"sig",
      "x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"})";
  const std::vector<Key> keys = keys_of(KeyKind::kJwks, R"({"keys":[
      {"kty":"RSA","use":"enc","n":"AQAB","e":"AQAB"},
      {"kty":"RSA","alg":"RS512","n":"AQAB","e":"AQAB"},
      {"kty":"EC","crv":"P-384","x":"AA","y":"AA"},
      {"kty":"oct","alg":"A128KW","k":"AA"},
      {"kty":"oct","alg":"none","k":"AA"},
      {"kty":"OKP","crv":"Ed25519","key_ops":["sign"],"x":"AA"},
      {"kty":"new"}, 7, )" + ours + "]}");
  ASSERT_EQ(keys.size(), 1U);
  EXPECT_EQ(keys[0].id(), "ours");
  KeySource wants = source(KeyKind::kJwks);
  wants.algorithm = Algorithm::kRs256;
  EXPECT_FALSE(read_keys(wants, "{\"keys\":[" + ours + "]}"));
}

TEST(KeySet, RefusesWhatIsMalformed) {
  const auto set = [](const std::string& key) { return "{\"keys\":[" + key + "]}"; };
  const std::string x = "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU";
  const std::string y = "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0";
  const std::string ec = R"({"kty":"EC","crv":"P-256","x":")";
  const std::string good = ec + x + R"(","y":")" + y + "\"}";
  EXPECT_EQ(keys_of(KeyKind::kJwks, set(good)).size(), 1U);
  for (const std::string& key : {
           ec + x + R"(","y":")" + x + "\"}",                            // not on the curve
           ec + x + "=" + R"(","y":")" + y + "\"}",                      // padded
           ec + x.substr(0, 40) + R"(","y":")" + y + "\"}",              // too short
           ec + x + "\"}",                                               // half a point
           ec + x + R"(","y":")" + y + R"(","d":"AQAB"})",               // private
           std::string(R"({"kty":"RSA","n":"AQAB","e":"AQAB"})"),        // 17 bits
           std::string(R"({"kty":"RSA","n":"AQAB"})"),                   // half a key
           std::string(R"({"kty":"oct","k":"AQAB"})"),                   // a short secret
           std::string(R"({"kty":"OKP","crv":"Ed25519","x":"AQAB"})"),   // a short key
           std::string(R"({"kty":"OKP","kty":"OKP","crv":"Ed25519"})"),  // twice
           good + "," + good,                                            // which one is meant?
           std::string(""),                                              // none
       }) {
    EXPECT_NE(refused(KeyKind::kJwks, set(key)), "") << key;
  }
  for (const char* text : {"", "[]", "{}", R"({"keys":{}})", "{\"keys\":[]}"}) {
    EXPECT_NE(refused(KeyKind::kJwks, text), "") << text;
  }
}

TEST(KeySet, RefusesAnRsaKeyWithAnExponentOfOne) {
  const std::string n(256, '\xff');
  EXPECT_NE(
      refused(KeyKind::kJwks, R"({"keys":[{"kty":"RSA","n":")" + url64(n) + R"(","e":"AQ"}]})")
          .find("exponent"),
      std::string::npos);
}

}  // namespace
}  // namespace hapax::auth
