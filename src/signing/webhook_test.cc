#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <hapax/webhook.h>

#include "base/words.h"
#include "signing/vectors_test.h"

namespace hapax::signing {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kThen = 1'700'000'000;
constexpr std::string_view kBody = R"({"a":1})";
constexpr std::string_view kGood = "v1,587olfBH5oJsczC9whgbnbTgpisUf6NJxDTxeITJZe4=";
constexpr std::string_view kWrong = "v1,AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

WebhookVerifier verifier_of(std::vector<std::string_view> keys) {
  return WebhookVerifier::make(keys).value();
}

std::vector<Header> header_of(std::string_view id, std::string_view timestamp,
                              std::string_view signature) {
  return {{"Content-Type", "application/json"},
          {"Webhook-Id", id},
          {"WEBHOOK-TIMESTAMP", timestamp},
          {"webhook-signature", signature}};
}

std::vector<Header> signed_with(std::string_view signature) {
  return header_of("msg_hapax_0001", "1700000000", signature);
}

Time at(std::int64_t seconds) { return time_from_ms(seconds * 1'000); }

// "good", or the word of the fault.
std::string judge(const WebhookVerifier& verifier, const std::vector<Header>& header,
                  std::string_view body = kBody, Time now = at(kThen)) {
  const WebhookVerdict verdict = verifier.verify(header, body, now);
  const auto* refusal = std::get_if<WebhookRefusal>(&verdict);
  return refusal == nullptr ? "good" : std::string(word_of(refusal->fault));
}

TEST(WebhookVerifier, AcceptsWhatOthersSigned) {
  for (const SignatureVector& vector : signature_vectors()) {
    const auto verifier = verifier_of({vector.verifying});
    const std::string timestamp = std::to_string(vector.seconds);
    const auto verdict = verifier.verify(header_of(vector.id, timestamp, vector.signature),
                                         vector.body, at(vector.seconds));
    const auto* sent = std::get_if<VerifiedWebhook>(&verdict);
    ASSERT_NE(sent, nullptr) << std::get<WebhookRefusal>(verdict).detail;
    EXPECT_EQ(sent->id, vector.id);
    EXPECT_EQ(sent->sent, at(vector.seconds));
  }
}

TEST(WebhookVerifier, RefusesWhatWasChanged) {
  const auto verifier = verifier_of({kSecret});
  EXPECT_EQ(judge(verifier, signed_with(kGood)), "good");
  EXPECT_EQ(judge(verifier, signed_with(kGood), R"({"a":2})"), "no_match");
  EXPECT_EQ(judge(verifier, signed_with(kGood), ""), "no_match");
  EXPECT_EQ(judge(verifier, header_of("msg_hapax_0002", "1700000000", kGood)), "no_match");
  EXPECT_EQ(judge(verifier, header_of("msg_hapax_0001", "1700000001", kGood)), "no_match");
  EXPECT_EQ(judge(verifier_of({kSecondSecret}), signed_with(kGood)), "no_match");
  for (std::size_t i = 3; i < kGood.size() - 1; ++i) {
    std::string changed(kGood);
    changed[i] = changed[i] == 'A' ? 'B' : 'A';
    EXPECT_EQ(judge(verifier, signed_with(changed)), "no_match") << i;
  }
}

TEST(WebhookVerifier, ToleratesFiveMinutesBothWays) {
  const auto verifier = verifier_of({kSecret});
  const auto header = signed_with(kGood);
  EXPECT_EQ(judge(verifier, header, kBody, at(kThen + 300)), "good");
  EXPECT_EQ(judge(verifier, header, kBody, at(kThen + 300) + 1ms), "too_old");
  EXPECT_EQ(judge(verifier, header, kBody, at(kThen - 300)), "good");
  EXPECT_EQ(judge(verifier, header, kBody, at(kThen - 300) - 1ms), "too_new");
  EXPECT_EQ(judge(verifier, header, kBody, Time::max()), "too_old");
  EXPECT_EQ(judge(verifier, header, kBody, Time::min()), "too_new");
  const std::vector<std::string_view> keys{kSecret};
  const auto exact = WebhookVerifier::make(keys, 0ms).value();
  EXPECT_EQ(judge(exact, header), "good");
  EXPECT_EQ(judge(exact, header, kBody, at(kThen) + 1ms), "too_old");
}

// One match of any key is enough; signatures of other versions, and of senders' other keys, do not
// matter.
TEST(WebhookVerifier, LooksAtEverySignatureWithEveryKey) {
  const std::string ed25519(signature_vectors().back().signature);
  const auto both = verifier_of({kSecondSecret, kSecret, kPublicKey});
  const std::string good(kGood);
  const std::string wrong(kWrong);
  EXPECT_EQ(judge(both, signed_with(wrong + " " + good)), "good");
  EXPECT_EQ(judge(both, signed_with("v2,xyz v1 ,v1 v1, " + good)), "good");
  EXPECT_EQ(judge(both, signed_with("  " + good + "  ")), "good");
  EXPECT_EQ(judge(both, signed_with(wrong + " " + ed25519)), "good");
  EXPECT_EQ(judge(verifier_of({kPublicKey}), signed_with(good + " " + ed25519)), "good");
  EXPECT_EQ(judge(verifier_of({kPublicKey}), signed_with(good)), "no_match");
  // The bytes of one version are not a signature of the other.
  EXPECT_EQ(judge(both, signed_with("v1a," + good.substr(3))), "no_match");
  EXPECT_EQ(judge(both, signed_with("v1," + ed25519.substr(4))), "no_match");
  EXPECT_EQ(judge(both, signed_with("v2," + good.substr(3))), "no_match");
  EXPECT_EQ(judge(both, signed_with("V1," + good.substr(3))), "no_match");
}

TEST(WebhookVerifier, SaysWhichFieldIsMissing) {
  const auto verifier = verifier_of({kSecret});
  const std::vector<Header> whole = signed_with(kGood);
  for (std::size_t i = 1; i < whole.size(); ++i) {
    std::vector<Header> header = whole;
    header.erase(header.begin() + static_cast<std::ptrdiff_t>(i));
    const auto verdict = verifier.verify(header, kBody, at(kThen));
    const auto* refusal = std::get_if<WebhookRefusal>(&verdict);
    ASSERT_NE(refusal, nullptr);
    EXPECT_EQ(refusal->fault, WebhookFault::kMissingHeader);
    EXPECT_TRUE(base::same_word(refusal->detail, "no " + std::string(whole[i].name)))
        << refusal->detail;
    // V5: of two fields a program behind the verifier might believe the other one.
    header = whole;
    header.push_back(whole[i]);
    EXPECT_EQ(judge(verifier, header), "malformed");
  }
  EXPECT_EQ(judge(verifier, {}), "missing_header");
}

TEST(WebhookVerifier, RefusesFieldsThatAreNotWhatTheyMustBe) {
  const auto verifier = verifier_of({kSecret});
  for (const std::string_view timestamp :
       {"", " 1700000000", "1700000000 ", "+1700000000", "01700000000", "1700000000.0", "1.7e9",
        "-1", "0x65", "253402300800", "99999999999999999999", "now"}) {
    EXPECT_EQ(judge(verifier, header_of("msg_hapax_0001", timestamp, kGood)), "malformed")
        << timestamp;
  }
  // V1: with a full stop in the id the pieces could be cut elsewhere.
  for (const std::string& id : {std::string(), std::string("a.b"), std::string("a b"),
                                std::string("a\nb"), std::string(256, 'a')}) {
    EXPECT_EQ(judge(verifier, header_of(id, "1700000000", kGood)), "malformed") << id;
  }
  for (const std::string_view signature : {"", " ", "v1", "587olfBH5oJsczC9whgbnbTg", ",", "v1,"}) {
    EXPECT_EQ(judge(verifier, signed_with(signature)), "malformed") << signature;
  }
}

// V1: a request whose id ends early and whose body begins late has the same signed text.
TEST(WebhookVerifier, IsNotFooledByAFullStopInTheId) {
  const auto verifier = verifier_of({kSecret});
  // Signed: msg_hapax_0001.1700000000.{"a":1}
  EXPECT_EQ(judge(verifier, header_of("msg_hapax_0001.1700000000", "1", kGood)), "malformed");
}

TEST(WebhookVerifier, LooksAtABoundedNumberOfSignatures) {
  const auto verifier = verifier_of({kSecret});
  std::string list;
  for (int i = 0; i < 15; ++i) list += std::string(kWrong) + " ";
  EXPECT_EQ(judge(verifier, signed_with(list + std::string(kGood))), "good");
  EXPECT_EQ(judge(verifier, signed_with(list + std::string(kWrong) + " " + std::string(kGood))),
            "malformed");
}

// V4: neither keys nor what a request says are in what is told.
TEST(WebhookVerifier, TellsNoSecret) {
  for (const std::string_view key : {"whsec_c3VwZXItc2VjcmV0", "c3VwZXItc2VjcmV0", "whpk_c3Vw"}) {
    const std::vector<std::string_view> keys{kSecret, key};
    const auto verifier = WebhookVerifier::make(keys);
    ASSERT_FALSE(verifier.ok());
    EXPECT_EQ(verifier.error().text().find("c3Vw"), std::string::npos);
    EXPECT_NE(verifier.error().text().find("key 2"), std::string::npos);
  }
  const auto verifier = verifier_of({kSecret});
  const auto verdict = verifier.verify(signed_with(kWrong), kBody, at(kThen));
  EXPECT_EQ(std::get<WebhookRefusal>(verdict).detail,
            "none of 1 signatures is of one of our 1 keys");
}

TEST(WebhookVerifier, NeedsKeysThatVerify) {
  const std::vector<std::string_view> none;
  EXPECT_FALSE(WebhookVerifier::make(none).ok());
  const std::vector<std::string_view> senders{kPrivateKey};
  const auto refused = WebhookVerifier::make(senders);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().text().find("whpk_"), std::string::npos);
  const std::vector<std::string_view> keys{kSecret};
  EXPECT_FALSE(WebhookVerifier::make(keys, -1ms).ok());
}

}  // namespace
}  // namespace hapax::signing
