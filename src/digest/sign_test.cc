#include "digest/sign.h"

#include <array>
#include <string>

#include <gtest/gtest.h>

#include "base/hex.h"
#include "base/words.h"

namespace hapax::digest {
namespace {

std::string unhex(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes += static_cast<char>(base::hex_digit(text[i]) * 16 + base::hex_digit(text[i + 1]));
  }
  return bytes;
}

std::string hmac(std::string_view secret, std::string_view text) {
  const std::array pieces{text};
  return base::hex(hmac_sha256(secret, pieces));
}

// RFC 4231, test cases 1, 2 and 6.
TEST(Hmac, GivesThePublishedValues) {
  EXPECT_EQ(hmac(std::string(20, '\x0b'), "Hi There"),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hmac("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(
      hmac(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First"),
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(Hmac, DoesNotSeeWherePiecesEnd) {
  const std::array<std::string_view, 4> pieces{"what do ", "", "ya want for ", "nothing?"};
  EXPECT_EQ(base::hex(hmac_sha256("Jefe", pieces)), hmac("Jefe", "what do ya want for nothing?"));
}

TEST(ConstantTime, ComparesAsUsual) {
  EXPECT_FALSE(equal_in_constant_time("", ""));
  EXPECT_TRUE(equal_in_constant_time("ab", "ab"));
  EXPECT_FALSE(equal_in_constant_time("ab", "aB"));
  EXPECT_FALSE(equal_in_constant_time("ab", "abc"));
  EXPECT_FALSE(equal_in_constant_time("", std::string_view("\0", 1)));
}

// RFC 8032, section 7.1, tests 1 and 3.
TEST(Ed25519, GivesThePublishedValues) {
  const auto first = Ed25519Key::from_seed(
      unhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"));
  ASSERT_TRUE(first);
  EXPECT_EQ(base::hex(first->public_key()),
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
  EXPECT_EQ(
      base::hex(first->sign("")),
      "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701c"
      "f9b46bd25bf5f0595bbe24655141438e7a100b");
  const auto third = Ed25519Key::from_seed(
      unhex("c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7"));
  ASSERT_TRUE(third);
  EXPECT_EQ(
      base::hex(third->sign(unhex("af82"))),
      "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f76098"
      "4dc6594a7c15e9716ed28dc027beceea1ec40a");
}

TEST(Ed25519, VerifiesWhatWasSignedAndNothingElse) {
  const auto key = Ed25519Key::from_seed(std::string(32, 's'));
  const auto other = Ed25519Key::from_seed(std::string(32, 'o'));
  ASSERT_TRUE(key && other);
  std::string signature = key->sign("message");
  EXPECT_TRUE(verify_ed25519(key->public_key(), "message", signature));
  EXPECT_FALSE(verify_ed25519(key->public_key(), "massage", signature));
  EXPECT_FALSE(verify_ed25519(other->public_key(), "message", signature));
  for (std::size_t i = 0; i < signature.size(); ++i) {
    std::string changed = signature;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_FALSE(verify_ed25519(key->public_key(), "message", changed)) << i;
  }
}

TEST(Ed25519, RefusesKeysAndSignaturesOfTheWrongLength) {
  for (const std::size_t size : {0U, 31U, 33U, 64U}) {
    EXPECT_FALSE(Ed25519Key::from_seed(std::string(size, 's'))) << size;
  }
  const auto key = Ed25519Key::from_seed(std::string(32, 's'));
  ASSERT_TRUE(key);
  const std::string signature = key->sign("m");
  EXPECT_FALSE(verify_ed25519(key->public_key() + "x", "m", signature));
  EXPECT_FALSE(verify_ed25519("", "m", signature));
  EXPECT_FALSE(verify_ed25519(key->public_key(), "m", signature + "x"));
  EXPECT_FALSE(verify_ed25519(key->public_key(), "m", ""));
}

}  // namespace
}  // namespace hapax::digest
