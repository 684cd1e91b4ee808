#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hapax/event_signature.h>

namespace hapax {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::Optional;

constexpr std::string_view kKey = "whsec_MDEyMzQ1Njc4OWFiY2RlZmdoaWprbG1u";
constexpr std::string_view kOther = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
constexpr SignedEvent kEvent{"order-17", "OrderCreated", "customer-1", R"({"total":1.10})"};
constexpr std::string_view kSignature = "v1,yQiqMjYwUQXpASzTrVR9hhdqlPx1yl5WyD+Rh8mJGAQ=";

EventVerifier verifier(std::vector<std::string> keys = {std::string(kKey)}) {
  return EventVerifier::make(keys).value();
}

// These were computed by Python's hmac, from docs/reference/event-signatures.md.
TEST(EventSignature, IsTheDocumentedOne) {
  EXPECT_EQ(sign_event(kEvent, kKey).value(), kSignature);
  EXPECT_EQ(sign_event({"e"}, kKey).value(), "v1,cG1WU0auSfQx88BNS9eH/zN7UR38+8Z0BwRAtMRW6iA=");
}

TEST(EventSignature, FitsTheEventAsItWasSigned) {
  EXPECT_EQ(verifier().fault_of(kEvent, kSignature), std::nullopt);
  EXPECT_THAT(verifier().fault_of(kEvent, ""), Optional(HasSubstr("signature is missing")));
  for (const SignedEvent& changed :
       std::vector<SignedEvent>{{"order-18", kEvent.type, kEvent.key, kEvent.payload},
                                {kEvent.id, "OrderPaid", kEvent.key, kEvent.payload},
                                {kEvent.id, kEvent.type, "", kEvent.payload},
                                {kEvent.id, kEvent.type, kEvent.key, R"({"total":9.10})"},
                                {kEvent.id, kEvent.type, kEvent.key, R"({"total":1.1})"},
                                {"", kEvent.type, kEvent.key, kEvent.payload},
                                {"order-17OrderCreated", "", kEvent.key, kEvent.payload}}) {
    EXPECT_THAT(verifier().fault_of(changed, kSignature), Optional(HasSubstr("does not match")));
  }
  for (const std::string& other : std::vector<std::string>{
           "x", "v1,", "v2" + std::string(kSignature.substr(2)), std::string(kSignature) + "x"}) {
    EXPECT_THAT(verifier().fault_of(kEvent, other), Optional(HasSubstr("does not match"))) << other;
  }
}

TEST(EventSignature, OneOfSeveralKeysIsEnough) {
  const std::string by_other = sign_event(kEvent, kOther).value();
  EXPECT_NE(verifier().fault_of(kEvent, by_other), std::nullopt);
  EXPECT_EQ(verifier({std::string(kOther), std::string(kKey)}).fault_of(kEvent, kSignature),
            std::nullopt);
  EXPECT_EQ(verifier().fault_of(kEvent, by_other + " " + std::string(kSignature)), std::nullopt);
  std::string many;
  for (int i = 0; i < 10; ++i) many += by_other + " ";
  EXPECT_NE(verifier().fault_of(kEvent, many + std::string(kSignature)), std::nullopt)
      << "there is an end to what is looked at";
}

TEST(EventSignature, WantsAKeyAndAnId) {
  EXPECT_THAT(sign_event({""}, kKey).error().detail, HasSubstr("without an id"));
  for (const char* one : {"", "hunter2", "whsec_aHVudGVyMg==", "whsk_hunter2"}) {
    EXPECT_EQ(sign_event(kEvent, one).error().code, Errc::kInvalidArgument) << one;
    EXPECT_THAT(sign_event(kEvent, one).error().detail, Not(HasSubstr("hunter2")));
    const std::vector<std::string> keys{std::string(kKey), one};
    EXPECT_THAT(EventVerifier::make(keys).error().detail, HasSubstr("key 2"));
  }
  EXPECT_FALSE(EventVerifier::make({}).ok());
}

}  // namespace
}  // namespace hapax
