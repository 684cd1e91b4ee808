#include "signing/key_ring.h"

#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "digest/base64.h"
#include "signing/vectors_test.h"
#include "signing/webhook_key.h"

namespace hapax::signing {
namespace {

Result<KeyRing> ring_of(std::vector<KeyTerm> terms) { return KeyRing::make(terms); }

Result<std::string> sign_at(const KeyRing& ring, std::int64_t ms) {
  const std::array<std::string_view, 1> body{R"({"a":1})"};
  return ring.sign({"msg_hapax_0001", time_from_ms(ms), body});
}

TEST(KeyRing, SignsAsOthersDo) {
  for (const SignatureVector& vector : signature_vectors()) {
    const auto ring = ring_of({{.key = vector.key}});
    ASSERT_TRUE(ring.ok()) << ring.error().text();
    const std::array<std::string_view, 1> body{vector.body};
    // The rest of a second is no part of the timestamp.
    const Time at = time_from_ms(vector.seconds * 1'000 + 999);
    EXPECT_EQ(ring->sign({vector.id, at, body}).value(), vector.signature);
  }
}

TEST(KeyRing, SignsABodyInPieces) {
  const auto ring = ring_of({{.key = kSecret}, {.key = kPrivateKey}}).value();
  const std::array<std::string_view, 3> pieces{"{\"a\"", "", ":1}"};
  EXPECT_EQ(ring.sign({"msg_hapax_0001", time_from_ms(1'700'000'000'000), pieces}).value(),
            sign_at(ring, 1'700'000'000'000).value());
}

// The old key signs until the receiver has the new one: both signatures meanwhile.
TEST(KeyRing, ChangesKeysWithAnOverlap) {
  const auto ring = ring_of({{.key = kSecret, .until = time_from_ms(2'000'000)},
                             {.key = kSecondSecret, .from = time_from_ms(1'000'000)}})
                        .value();
  const auto only = [](std::string_view key, std::int64_t ms) {
    return sign_at(ring_of({{.key = key}}).value(), ms).value();
  };
  EXPECT_EQ(sign_at(ring, 999'999).value(), only(kSecret, 999'999));
  for (const std::int64_t ms : {1'000'000, 1'999'999}) {
    EXPECT_EQ(sign_at(ring, ms).value(), only(kSecret, ms) + " " + only(kSecondSecret, ms));
  }
  EXPECT_EQ(sign_at(ring, 2'000'000).value(), only(kSecondSecret, 2'000'000));
}

// V3: what was to be signed never leaves without a signature.
TEST(KeyRing, RefusesToSignOutsideOfEveryTerm) {
  const auto ring =
      ring_of({{.key = kSecret, .from = time_from_ms(10), .until = time_from_ms(20)}}).value();
  for (const std::int64_t ms : {9, 20}) {
    const auto signature = sign_at(ring, ms);
    ASSERT_FALSE(signature.ok());
    EXPECT_EQ(signature.error().code, Errc::kPreconditionFailed);
  }
  EXPECT_TRUE(sign_at(ring, 10).ok());
  EXPECT_TRUE(sign_at(ring, 19).ok());
}

// V1: an id with a full stop would make the signed text ambiguous.
TEST(KeyRing, RefusesIdsThatCannotBeSigned) {
  const auto ring = ring_of({{.key = kSecret}}).value();
  for (const std::string& id :
       {std::string(), std::string("a.b"), std::string("a b"), std::string("a\r\nb"),
        std::string("\xc3\xa9"), std::string(256, 'a'), std::string("a\0b", 3)}) {
    const auto signature = ring.sign({id, time_from_ms(0), {}});
    ASSERT_FALSE(signature.ok()) << id;
    EXPECT_EQ(signature.error().code, Errc::kInvalidArgument);
  }
  EXPECT_TRUE(ring.sign({std::string(255, 'a'), time_from_ms(0), {}}).ok());
}

std::string key_of(std::string_view prefix, std::size_t bytes) {
  return std::string(prefix) + digest::encode_base64(std::string(bytes, 'Q'));
}

TEST(WebhookKeys, HaveTheLengthsOfTheStandard) {
  for (const auto& [prefix, good, bad] :
       {std::tuple{"whsec_", std::vector<std::size_t>{24, 32, 64},
                   std::vector<std::size_t>{0, 23, 65}},
        std::tuple{"whsk_", std::vector<std::size_t>{32}, std::vector<std::size_t>{0, 31, 33, 65}},
        std::tuple{"whpk_", std::vector<std::size_t>{32}, std::vector<std::size_t>{0, 31, 64}}}) {
    for (const std::size_t bytes : good) {
      EXPECT_TRUE(parse_webhook_key(key_of(prefix, bytes)).ok()) << prefix << bytes;
    }
    for (const std::size_t bytes : bad) {
      EXPECT_FALSE(parse_webhook_key(key_of(prefix, bytes)).ok()) << prefix << bytes;
    }
  }
}

TEST(WebhookKeys, WithTheirPublicHalfAreTheSameKey) {
  const auto seed = parse_webhook_key(kPrivateKey).value().bytes;
  const auto public_key = parse_webhook_key(kPublicKey).value().bytes;
  const std::string whole = "whsk_" + digest::encode_base64(seed + public_key);
  EXPECT_EQ(parse_webhook_key(whole).value().bytes, seed);
  const std::string mixed = "whsk_" + digest::encode_base64(public_key + seed);
  EXPECT_FALSE(parse_webhook_key(mixed).ok());
}

// V4: whatever is wrong with a key, its bytes are not told.
TEST(WebhookKeys, AreNotInErrors) {
  const std::string body = "c3VwZXItc2VjcmV0";  // too short, and not to be seen
  for (const std::string& key :
       {body, "whsec_" + body, "whsk_" + body, "whpk_" + body, "WHSEC_" + body,
        "whsec_" + body + "!", " " + std::string(kSecret), "sk_live_" + body}) {
    const auto ring = ring_of({{.key = kSecret}, {.key = key}});
    ASSERT_FALSE(ring.ok()) << key;
    const std::string text = ring.error().text();
    EXPECT_EQ(text.find("c3Vw"), std::string::npos) << text;
    EXPECT_EQ(text.find("secret-"), std::string::npos) << text;
    EXPECT_NE(text.find("signing key 2"), std::string::npos) << text;
  }
}

TEST(KeyRing, NeedsAKeyThatSigns) {
  EXPECT_FALSE(ring_of({}).ok());
  EXPECT_FALSE(ring_of({{.key = kPublicKey}}).ok());
  EXPECT_FALSE(ring_of({{.key = kSecret, .from = time_from_ms(5), .until = time_from_ms(5)}}).ok());
}

TEST(WebhookTimestamp, IsWholeSecondsRoundedDown) {
  EXPECT_EQ(webhook_timestamp(time_from_ms(1'700'000'000'999)), "1700000000");
  EXPECT_EQ(webhook_timestamp(time_from_ms(0)), "0");
}

}  // namespace
}  // namespace hapax::signing
