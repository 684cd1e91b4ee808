// Tokens of issuers, and the attacks of RFC 8725.
#include "auth/jwt.h"

#include <gtest/gtest.h>

#include "auth/key_files.h"
#include "auth/signer_test.h"
#include "auth/vectors_test.h"

namespace hapax::auth {
namespace {

constexpr std::int64_t kNowSeconds = 1'700'000'100;
const std::string kSecret = "a secret of more than thirty-two bytes";
const std::string kHeader = R"({"alg":"HS256","typ":"JWT"})";

Time at(std::int64_t seconds) { return time_from_ms(seconds * 1000); }

Key key_of(KeyKind kind, std::string_view bytes, std::string id = "") {
  auto keys = read_keys({"file", kind, std::nullopt, std::move(id)}, bytes);
  EXPECT_TRUE(keys) << keys.error().text();
  return (*keys)[0];
}

const SigningKey& rsa() {
  static const SigningKey kKey = SigningKey::rsa(2048);
  return kKey;
}
const SigningKey& p256() {
  static const SigningKey kKey = SigningKey::ec("P-256");
  return kKey;
}
const SigningKey& ed25519() {
  static const SigningKey kKey = SigningKey::ed25519();
  return kKey;
}

std::vector<Key> all_keys() {
  return {key_of(KeyKind::kPem, rsa().public_pem(), "rsa"),
          key_of(KeyKind::kPem, p256().public_pem(), "ec"),
          key_of(KeyKind::kPem, ed25519().public_pem(), "ed"),
          key_of(KeyKind::kSecret, kSecret, "mac")};
}

std::string claims_with(const std::string& more) {
  return R"({"tenant":"acme","sub":"billing","roles":["produce"])" + more + "}";
}
const std::string kClaims = claims_with(R"(,"exp":1700003600)");

struct Tried {
  std::optional<CredentialFault> fault;
  std::string reason;
  Verified verified;
};

Tried verify(const std::string& token, const std::vector<Key>& keys,
             const VerifierSettings& rules = {}, Time now = at(kNowSeconds)) {
  const auto either = verify_jwt(token, keys, rules, now);
  if (const auto* refusal = std::get_if<Refusal>(&either)) {
    return {refusal->fault, refusal->reason, {}};
  }
  return {std::nullopt, "", std::get<Verified>(either)};
}

// A good signature over these claims.
Tried claim(const std::string& claims, const VerifierSettings& rules = {},
            Time now = at(kNowSeconds)) {
  return verify(hmac_token(kSecret, kHeader, claims), all_keys(), rules, now);
}

std::optional<CredentialFault> header(const std::string& header) {
  return verify(hmac_token(kSecret, header, kClaims), all_keys()).fault;
}

// --- good ones

TEST(Jwt, OfAnotherProgramGivesItsCaller) {
  VerifierSettings rules;
  rules.issuer = "https://id.example";
  rules.audience = "hapax";
  rules.type = "JWT";
  const auto check = [&](KeyKind kind, std::string_view key, std::string_view token) {
    const std::vector<Key> keys = {key_of(kind, key)};
    const Tried got = verify(std::string(token), keys, rules, at(kOpensslIssued));
    ASSERT_FALSE(got.fault) << got.reason;
    EXPECT_EQ(got.verified.identity.tenant, "acme");
    EXPECT_EQ(got.verified.identity.subject, "billing");
    EXPECT_TRUE(got.verified.identity.rights.has(Right::kProduce));
    EXPECT_TRUE(got.verified.identity.rights.has(Right::kConsume));
    EXPECT_FALSE(got.verified.identity.rights.has(Right::kAdmin));
    EXPECT_FALSE(got.verified.identity.rights.has(Right::kReadBodies));
    EXPECT_EQ(got.verified.until, at(kOpensslExpires + 30));
    EXPECT_EQ(verify(std::string(token), keys, rules, at(kOpensslExpires + 30)).fault,
              CredentialFault::kExpired);
  };
  check(KeyKind::kPem, kOpensslRs256Key, kOpensslRs256Token);
  check(KeyKind::kPem, kOpensslEs256Key, kOpensslEs256Token);
  check(KeyKind::kPem, kOpensslEdDsaKey, kOpensslEdDsaToken);
  rules.type = "";  // this one has none
  check(KeyKind::kSecret, kOpensslHs256Key, kOpensslHs256Token);
}

TEST(Jwt, IsCheckedWithTheKeyThatItNames) {
  EXPECT_FALSE(verify(rsa().token(R"({"alg":"RS256","kid":"rsa"})", kClaims), all_keys()).fault);
  EXPECT_FALSE(verify(p256().token(R"({"alg":"ES256","kid":"ec"})", kClaims), all_keys()).fault);
  EXPECT_FALSE(verify(ed25519().token(R"({"alg":"EdDSA","kid":"ed"})", kClaims), all_keys()).fault);
  EXPECT_FALSE(header(R"({"alg":"HS256","kid":"mac"})"));
}

TEST(Jwt, WithoutKeyIdIsTriedWithAllKeysOfItsAlgorithm) {
  std::vector<Key> keys = {key_of(KeyKind::kSecret, std::string(32, 'o'), "old"),
                           key_of(KeyKind::kSecret, kSecret, "new")};
  EXPECT_FALSE(verify(hmac_token(kSecret, kHeader, kClaims), keys).fault);
  EXPECT_EQ(verify(hmac_token(kSecret, R"({"alg":"HS256","kid":"old"})", kClaims), keys).fault,
            CredentialFault::kInvalid);
  keys = {key_of(KeyKind::kSecret, kSecret)};  // without an id
  EXPECT_FALSE(verify(hmac_token(kSecret, R"({"alg":"HS256","kid":"any"})", kClaims), keys).fault);
}

// --- attacks on the signature

// A2: RFC 8725 §2.1, §3.1
TEST(JwtAttack, NoSignature) {
  EXPECT_EQ(verify(std::string(kRfc7519NoneToken), all_keys()).fault, CredentialFault::kForm);
  for (const char* none : {"none", "None", "NONE", "noNE"}) {
    const std::string head = R"({"alg":")" + std::string(none) + "\"}";
    EXPECT_EQ(verify(unsigned_token(head, kClaims) + ".", all_keys()).fault,
              CredentialFault::kForm);
    EXPECT_EQ(verify(unsigned_token(head, kClaims), all_keys()).fault, CredentialFault::kForm);
    EXPECT_EQ(verify(unsigned_token(head, kClaims) + ".AA", all_keys()).fault,
              CredentialFault::kInvalid);
    EXPECT_EQ(header(head), CredentialFault::kInvalid);
  }
  EXPECT_EQ(verify(unsigned_token(kHeader, kClaims) + ".", all_keys()).fault,
            CredentialFault::kForm);
}

// A2: the public key as a secret, RFC 8725 §2.1
TEST(JwtAttack, AlgorithmConfusion) {
  const std::string pem = rsa().public_pem();
  const std::vector<Key> keys = {key_of(KeyKind::kPem, pem, "rsa")};
  for (const char* head : {R"({"alg":"HS256"})", R"({"alg":"HS256","kid":"rsa"})"}) {
    EXPECT_EQ(verify(hmac_token(pem, head, kClaims), keys).fault, CredentialFault::kInvalid);
    EXPECT_EQ(verify(hmac_token(pem, head, kClaims), all_keys()).fault, CredentialFault::kInvalid);
  }
  // A key of one kind under the name of another.
  EXPECT_EQ(verify(rsa().token(R"({"alg":"ES256"})", kClaims), all_keys()).fault,
            CredentialFault::kInvalid);
  EXPECT_EQ(verify(rsa().token(R"({"alg":"RS256","kid":"ec"})", kClaims), all_keys()).fault,
            CredentialFault::kInvalid);
  EXPECT_EQ(verify(p256().token(R"({"alg":"RS256"})", kClaims), all_keys()).fault,
            CredentialFault::kInvalid);
  for (const char* other : {"HS384", "HS512", "RS384", "RS512", "PS256", "ES384", "ES256K", "Ed448",
                            "hs256", "HS256 ", "RSA1_5", "dir"}) {
    EXPECT_EQ(header(R"({"alg":")" + std::string(other) + "\"}"), CredentialFault::kInvalid)
        << other;
  }
  EXPECT_EQ(header(R"({"typ":"JWT"})"), CredentialFault::kForm);
  EXPECT_EQ(header(R"({"alg":["HS256"]})"), CredentialFault::kForm);
  EXPECT_EQ(header(R"({"alg":null})"), CredentialFault::kForm);
}

// A2: RFC 8725 §3.5, §3.10: a key that comes with the token is nobody's.
TEST(JwtAttack, EmbeddedKeys) {
  const SigningKey own = SigningKey::ed25519();
  const std::string jwk = R"({"kty":"OKP","crv":"Ed25519","x":"AQAB"})";
  for (const std::string& more :
       {R"("jwk":)" + jwk, std::string(R"("jku":"https://evil.example/keys")"),
        std::string(R"("x5u":"https://evil.example/cert")"), std::string(R"("x5c":["AQAB"])")}) {
    EXPECT_EQ(verify(own.token(R"({"alg":"EdDSA",)" + more + "}", kClaims), all_keys()).fault,
              CredentialFault::kInvalid);
    // Beside a good signature it is not looked at.
    EXPECT_FALSE(
        verify(ed25519().token(R"({"alg":"EdDSA",)" + more + "}", kClaims), all_keys()).fault);
  }
}

// A2: RFC 8725 §3.10: `kid` is compared, nothing else.
TEST(JwtAttack, KeyIdTricks) {
  for (const char* kid : {"../../../../dev/null", "/etc/passwd", "mac' OR '1'='1", "mac\\u0000", "",
                          "MAC", "rsa", "http://evil.example/key"}) {
    const std::string head = R"({"alg":"HS256","kid":")" + std::string(kid) + "\"}";
    EXPECT_EQ(header(head), CredentialFault::kInvalid) << kid;
    EXPECT_EQ(verify(hmac_token("", head, kClaims), all_keys()).fault, CredentialFault::kInvalid)
        << kid;
  }
  EXPECT_EQ(header(R"({"alg":"HS256","kid":7})"), CredentialFault::kForm);
  EXPECT_EQ(header(R"({"alg":"HS256","kid":")" + std::string(257, 'k') + "\"}"),
            CredentialFault::kForm);
}

TEST(JwtAttack, CriticalAndCompressedHeaders) {
  EXPECT_EQ(header(R"({"alg":"HS256","crit":["exp"]})"), CredentialFault::kForm);
  EXPECT_EQ(header(R"({"alg":"HS256","crit":[]})"), CredentialFault::kForm);
  EXPECT_EQ(header(R"({"alg":"HS256","crit":["b64"],"b64":false})"), CredentialFault::kForm);
  EXPECT_EQ(header(R"({"alg":"HS256","zip":"DEF"})"), CredentialFault::kForm);
}

TEST(JwtAttack, SignaturesOfTheWrongShape) {
  const std::string text = unsigned_token(R"({"alg":"ES256"})", kClaims);
  const std::string good = p256().signature(text);
  const auto with = [&](std::string_view signature) {
    return verify(text + "." + url64(signature), all_keys()).fault;
  };
  EXPECT_FALSE(with(good));
  EXPECT_EQ(with(good.substr(0, 63)), CredentialFault::kInvalid);
  EXPECT_EQ(with(good + '\0'), CredentialFault::kInvalid);
  EXPECT_EQ(with('\0' + good), CredentialFault::kInvalid);
  EXPECT_EQ(with(p256().sign(text)), CredentialFault::kInvalid);      // DER
  EXPECT_EQ(with(std::string(64, '\0')), CredentialFault::kInvalid);  // CVE-2022-21449
  EXPECT_EQ(with(std::string(64, '\xff')), CredentialFault::kInvalid);
  EXPECT_EQ(with(good.substr(32) + good.substr(0, 32)), CredentialFault::kInvalid);
  std::string flipped = good;
  flipped[10] = static_cast<char>(flipped[10] ^ 1);
  EXPECT_EQ(with(flipped), CredentialFault::kInvalid);
}

TEST(JwtAttack, TruncatedSignaturesOfEveryAlgorithm) {
  const auto check = [&](const std::string& text, const std::string& signature) {
    for (std::size_t size = 1; size < signature.size(); ++size) {
      EXPECT_EQ(verify(text + "." + url64(signature.substr(0, size)), all_keys()).fault,
                CredentialFault::kInvalid);
    }
    EXPECT_EQ(verify(text + "." + url64(signature + "x"), all_keys()).fault,
              CredentialFault::kInvalid);
  };
  std::string text = unsigned_token(kHeader, kClaims);
  check(text, sign_hmac(kSecret, text));
  text = unsigned_token(R"({"alg":"EdDSA"})", kClaims);
  check(text, ed25519().signature(text));
  text = unsigned_token(R"({"alg":"RS256"})", kClaims);
  check(text, rsa().signature(text));
}

// RFC 8725 §2.2, §3.5: nobody else's key of the right kind.
TEST(JwtAttack, SignedByAnotherKey) {
  EXPECT_EQ(verify(SigningKey::ed25519().token(R"({"alg":"EdDSA"})", kClaims), all_keys()).fault,
            CredentialFault::kInvalid);
  EXPECT_EQ(verify(SigningKey::ec("P-256").token(R"({"alg":"ES256"})", kClaims), all_keys()).fault,
            CredentialFault::kInvalid);
  EXPECT_EQ(
      verify(SigningKey::ec("secp256k1").token(R"({"alg":"ES256"})", kClaims), all_keys()).fault,
      CredentialFault::kInvalid);
  EXPECT_EQ(verify(hmac_token("", kHeader, kClaims), all_keys()).fault, CredentialFault::kInvalid);
  EXPECT_EQ(verify(hmac_token(kSecret, kHeader, kClaims), {}).fault, CredentialFault::kInvalid);
}

TEST(JwtAttack, EveryFlippedCharacterIsNoticed) {
  const std::string good = hmac_token(kSecret, kHeader, kClaims);
  const std::vector<Key> keys = all_keys();
  ASSERT_FALSE(verify(good, keys).fault);
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = bad[i] == 'A' ? 'B' : 'A';
    EXPECT_TRUE(verify(bad, keys).fault) << i;
  }
}

// --- attacks on the form

TEST(JwtAttack, OtherTextForTheSameBytes) {
  const std::string good = hmac_token(kSecret, kHeader, kClaims);  // ends with 2 unused bits
  EXPECT_EQ(verify(good + "=", all_keys()).fault, CredentialFault::kForm);
  EXPECT_EQ(verify(good + "==", all_keys()).fault, CredentialFault::kForm);
  EXPECT_EQ(verify(good + "\n", all_keys()).fault, CredentialFault::kForm);
  EXPECT_EQ(verify(" " + good, all_keys()).fault, CredentialFault::kForm);
  const std::size_t dot = good.find('.');
  EXPECT_EQ(verify(good.substr(0, dot) + "=" + good.substr(dot), all_keys()).fault,
            CredentialFault::kForm);
  std::string bits = good;  // the same bytes with a bit beyond the last one
  ++bits.back();
  EXPECT_EQ(verify(bits, all_keys()).fault, CredentialFault::kForm);
  std::string standard = good;
  standard[dot + 3] = '/';
  EXPECT_EQ(verify(standard, all_keys()).fault, CredentialFault::kForm);
}

// RFC 8725 §2.4, §2.6: neither encrypted, nor in the JSON form.
TEST(JwtAttack, OtherSerializations) {
  for (const std::string& text :
       {std::string(""), std::string("."), std::string(".."), std::string("..."),
        std::string("a.b"), std::string("a.b.c.d"), std::string("a.b.c.d.e"),
        std::string("a.b.c.d.e.f"), std::string(R"({"payload":"e30","signatures":[]})"),
        std::string("Bearer x"), std::string("\0\0.\0.\0", 6)}) {
    EXPECT_EQ(verify(text, all_keys()).fault, CredentialFault::kForm) << text;
  }
}

TEST(JwtAttack, HugeAndDeepTokens) {
  const std::string claims = claims_with(R"(,"exp":1700003600,"x":")" + std::string(8000, 'x'));
  EXPECT_EQ(verify(hmac_token(kSecret, kHeader, claims), all_keys()).fault, CredentialFault::kForm);
  EXPECT_EQ(verify(std::string(100'000'000, '.'), all_keys()).fault, CredentialFault::kForm);
  EXPECT_EQ(
      header(R"({"alg":"HS256","x":)" + std::string(1000, '[') + std::string(1000, ']') + "}"),
      CredentialFault::kForm);
}

TEST(JwtAttack, MembersThatAreThereTwice) {
  EXPECT_EQ(header(R"({"alg":"none","alg":"HS256"})"), CredentialFault::kForm);
  EXPECT_EQ(header(R"({"alg":"HS256","\u0061lg":"HS256"})"), CredentialFault::kForm);
  EXPECT_EQ(claim(claims_with(R"(,"exp":1700003600,"tenant":"other")")).fault,
            CredentialFault::kClaims);
  EXPECT_EQ(claim(claims_with(R"(,"exp":1,"exp":1700003600)")).fault, CredentialFault::kClaims);
}

// RFC 8725 §3.7
TEST(JwtAttack, WhatIsNotUtf8OrNoObject) {
  EXPECT_EQ(header("{\"alg\":\"HS256\",\"x\":\"\xff\"}"), CredentialFault::kForm);
  EXPECT_EQ(header("\xef\xbb\xbf{\"alg\":\"HS256\"}"), CredentialFault::kForm);
  EXPECT_EQ(header("[]"), CredentialFault::kForm);
  EXPECT_EQ(claim("[]").fault, CredentialFault::kClaims);
  EXPECT_EQ(claim("").fault, CredentialFault::kClaims);
  EXPECT_EQ(claim("\"text\"").fault, CredentialFault::kClaims);
}

// --- claims

TEST(JwtClaims, ExpiryIsRequiredAndSane) {
  for (const char* exp :
       {"", R"(,"exp":null)", R"(,"exp":"1700003600")", R"(,"exp":-1)", R"(,"exp":1e300)",
        R"(,"exp":253402300800)", R"(,"exp":true)", R"(,"exp":9223372036854775807)",
        R"(,"exp":18446744073709551615)", R"(,"exp":99999999999999999999999)",
        R"(,"exp":[1700003600])", R"(,"EXP":1700003600)", R"(,"exp":-1e300)"}) {
    EXPECT_EQ(claim(claims_with(exp)).fault, CredentialFault::kClaims) << exp;
  }
  EXPECT_EQ(claim(claims_with(R"(,"exp":0)")).fault, CredentialFault::kExpired);
  EXPECT_FALSE(claim(claims_with(R"(,"exp":253402300799)")).fault);
  EXPECT_FALSE(claim(claims_with(R"(,"exp":1700003600.9)")).fault);
  EXPECT_FALSE(claim(claims_with(R"(,"exp":1.7000036e9)")).fault);
}

TEST(JwtClaims, TimesAreJudgedWithTheLeeway) {
  const auto fault = [&](const std::string& more, std::int64_t seconds, std::int64_t leeway = 30) {
    VerifierSettings rules;
    rules.leeway = std::chrono::seconds{leeway};
    return claim(claims_with(more), rules, at(seconds)).fault;
  };
  const std::string exp = R"(,"exp":1700000000)";
  EXPECT_FALSE(fault(exp, 1'700'000'029));
  EXPECT_EQ(fault(exp, 1'700'000'030), CredentialFault::kExpired);
  EXPECT_FALSE(fault(exp, 1'699'999'999, 0));
  EXPECT_EQ(fault(exp, 1'700'000'000, 0), CredentialFault::kExpired);
  const std::string nbf = R"(,"exp":1700003600,"nbf":1700000000)";
  EXPECT_FALSE(fault(nbf, 1'699'999'970));
  EXPECT_EQ(fault(nbf, 1'699'999'969), CredentialFault::kEarly);
  const std::string iat = R"(,"exp":1700003600,"iat":1700000000)";
  EXPECT_FALSE(fault(iat, 1'700'000'000, 0));
  EXPECT_EQ(fault(iat, 1'699'999'999, 0), CredentialFault::kEarly);
  EXPECT_EQ(fault(R"(,"exp":1700003600,"nbf":"now")", kNowSeconds), CredentialFault::kClaims);
  EXPECT_EQ(fault(R"(,"exp":1700003600,"iat":-5)", kNowSeconds), CredentialFault::kClaims);
}

TEST(JwtClaims, IssuerAudienceAndTypeMustBeOurs) {
  VerifierSettings rules;
  rules.issuer = "https://id.example";
  rules.audience = "hapax";
  const auto fault = [&](const std::string& more) {
    return claim(claims_with(R"(,"exp":1700003600)" + more), rules).fault;
  };
  const std::string iss = R"(,"iss":"https://id.example")";
  EXPECT_FALSE(fault(iss + R"(,"aud":"hapax")"));
  EXPECT_FALSE(fault(iss + R"(,"aud":["x","hapax"])"));
  for (const char* aud : {"", R"(,"aud":"Hapax")", R"(,"aud":[])", R"(,"aud":["x",7])",
                          R"(,"aud":[["hapax"]])", R"(,"aud":{"hapax":1})"}) {
    EXPECT_EQ(fault(iss + aud), CredentialFault::kElsewhere) << aud;
  }
  EXPECT_EQ(fault(R"(,"aud":"hapax")"), CredentialFault::kElsewhere);
  EXPECT_EQ(fault(R"(,"aud":"hapax","iss":"https://id.example/")"), CredentialFault::kElsewhere);
  EXPECT_EQ(fault(R"(,"aud":"hapax","iss":["https://id.example"])"), CredentialFault::kElsewhere);
  VerifierSettings typed;
  typed.type = "at+jwt";
  EXPECT_EQ(claim(kClaims, typed).fault, CredentialFault::kElsewhere);
  for (const char* type : {"at+jwt", "AT+JWT", "application/at+jwt"}) {
    const std::string head = R"({"alg":"HS256","typ":")" + std::string(type) + "\"}";
    EXPECT_FALSE(verify(hmac_token(kSecret, head, kClaims), all_keys(), typed).fault) << type;
  }
}

TEST(JwtClaims, TheTenantComesFromItsClaimOnly) {
  const auto fault = [](const std::string& tenant, const VerifierSettings& rules = {}) {
    return claim(R"({"exp":1700003600,"scope":"produce")" + tenant + "}", rules).fault;
  };
  EXPECT_FALSE(fault(R"(,"tenant":"a-1.b_c")"));
  for (const char* tenant :
       {"", R"(,"tenant":"")", R"(,"tenant":7)", R"(,"tenant":["acme"])", R"(,"tenant":"a/b")",
        R"(,"tenant":"-a")", R"(,"tenant":"a b")", R"(,"tenant":"\u0001a")", R"(,"Tenant":"a")",
        R"(,"tenant":"a\u0001other")", R"(,"tenant":"\u00e4")"}) {
    EXPECT_EQ(fault(tenant), CredentialFault::kNoTenant) << tenant;
  }
  EXPECT_EQ(fault(R"(,"tenant":")" + std::string(65, 'a') + "\""), CredentialFault::kNoTenant);
  VerifierSettings rules;
  rules.tenant_claim = "https://example.com/org";
  EXPECT_FALSE(fault(R"(,"https://example.com/org":"acme")", rules));
  EXPECT_EQ(fault(R"(,"tenant":"acme")", rules), CredentialFault::kNoTenant);
}

TEST(JwtClaims, RolesOrScopeGiveRights) {
  const auto words = [](const std::string& more) {
    const Tried got = claim(R"({"exp":1700003600,"tenant":"acme")" + more + "}");
    std::string out;
    for (const auto right : {Right::kProduce, Right::kConsume, Right::kAdmin, Right::kReadBodies}) {
      if (got.verified.identity.rights.has(right)) out += std::string(word_of(right)) + " ";
    }
    return got.fault == CredentialFault::kNoRole   ? "no role"
           : got.fault == CredentialFault::kClaims ? "claims"
                                                   : out;
  };
  EXPECT_EQ(words(R"(,"roles":["admin","read-bodies"])"), "admin read-bodies ");
  EXPECT_EQ(words(R"(,"scope":"openid  consume produce")"), "produce consume ");
  EXPECT_EQ(words(R"(,"roles":["consume"],"scope":"admin")"), "consume ");
  EXPECT_EQ(words(R"(,"roles":[],"scope":"admin")"), "no role");
  EXPECT_EQ(words(R"(,"roles":["Admin","administrator"])"), "no role");
  EXPECT_EQ(words(""), "no role");
  EXPECT_EQ(words(R"(,"roles":"admin")"), "claims");
  EXPECT_EQ(words(R"(,"roles":["admin",7])"), "claims");
  EXPECT_EQ(words(R"(,"scope":["admin"])"), "claims");
}

TEST(JwtClaims, TheSubjectIsPrintable) {
  const auto got = [](const std::string& more) {
    return claim(R"({"exp":1700003600,"tenant":"acme","scope":"produce")" + more + "}");
  };
  EXPECT_EQ(got("").verified.identity.subject, "acme");
  EXPECT_EQ(got(R"(,"sub":"m\u00fcller")").verified.identity.subject, "m\xc3\xbcller");
  for (const char* sub : {R"(,"sub":"")", R"(,"sub":7)", R"(,"sub":"a\nb")", R"(,"sub":"\u009b1m")",
                          R"(,"sub":"\u0000")"}) {
    EXPECT_EQ(got(sub).fault, CredentialFault::kClaims) << sub;
  }
}

}  // namespace
}  // namespace hapax::auth
