#include "envelope/attempt.h"

#include <array>
#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <hapax/webhook.h>

#include "envelope/field_value.h"
#include "signing/delivery_key.h"

namespace hapax::envelope {
namespace {

constexpr std::string_view kSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
constexpr Time kAt = time_from_ms(1'700'000'000'500);

RequestContent content_in(BodyShape shape) {
  return make_content(shape, {.key = "k1", .type = "t", .payload = R"({"a":1})", .source = "/s"})
      .value();
}

// "name: value" of each, in their order.
std::vector<std::string> lines_of(const std::vector<HeaderField>& fields) {
  std::vector<std::string> lines;
  for (const HeaderField& field : fields) lines.push_back(field.name + ": " + field.value);
  return lines;
}

std::vector<std::string> passed_on(std::vector<Header> headers, BodyShape shape) {
  const RequestContent content = content_in(shape);
  const auto fields =
      attempt_fields(content, {.key = "k1", .at = kAt, .record_headers = headers}).value();
  const auto own = attempt_fields(content, {.key = "k1", .at = kAt}).value();
  std::vector<std::string> lines = lines_of(fields);
  lines.resize(lines.size() - own.size());
  return lines;
}

TEST(AttemptFields, AreThoseOfAWebhook) {
  const std::array terms{signing::KeyTerm{.key = kSecret}};
  const auto keys = signing::KeyRing::make(terms).value();
  const std::array headers{Header{"traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00-01"}};
  const AttemptFacts facts{
      .key = "k1", .at = kAt, .replay = 2, .keys = &keys, .record_headers = headers};
  const auto fields = attempt_fields(content_in(BodyShape::kAsItCame), facts).value();
  const std::array<std::string_view, 1> body{R"({"a":1})"};
  EXPECT_EQ(lines_of(fields),
            (std::vector<std::string>{"traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00-01",
                                      "Content-Type: application/json", "webhook-id: k1",
                                      "Idempotency-Key: k1", "webhook-timestamp: 1700000000",
                                      "webhook-signature: " + keys.sign({"k1", kAt, body}).value(),
                                      "Hapax-Replay: 2"}));
}

// What a sender makes, a receiver verifies; in every shape, and the id is the key.
TEST(AttemptFields, AreVerifiedByTheReceiver) {
  const std::array terms{signing::KeyTerm{.key = kSecret}};
  const auto keys = signing::KeyRing::make(terms).value();
  const std::array<std::string_view, 1> known{kSecret};
  const auto verifier = WebhookVerifier::make(known).value();
  const std::string key =
      signing::DeliveryKey::make(signing::OutboxOrigin{"d", "o", "id with a space."})->text();
  for (const BodyShape shape : {BodyShape::kEnvelope, BodyShape::kAsItCame,
                                BodyShape::kCloudEventBinary, BodyShape::kCloudEventStructured}) {
    const auto content =
        make_content(shape, {.key = key, .type = "t", .payload = "x", .source = "/s"}).value();
    const auto fields = attempt_fields(content, {.key = key, .at = kAt, .keys = &keys}).value();
    std::vector<Header> header;
    for (const HeaderField& field : fields) header.push_back({field.name, field.value});
    const auto verdict = verifier.verify(header, content.body.text(), kAt);
    const auto* sent = std::get_if<VerifiedWebhook>(&verdict);
    ASSERT_NE(sent, nullptr) << std::get<WebhookRefusal>(verdict).detail;
    EXPECT_EQ(sent->id, key);
  }
}

TEST(AttemptFields, OfAnEndpointWithoutKeysHaveNoSignature) {
  EXPECT_EQ(
      lines_of(attempt_fields(content_in(BodyShape::kEnvelope), {.key = "k1", .at = kAt}).value()),
      (std::vector<std::string>{"Content-Type: application/json", "webhook-id: k1",
                                "Idempotency-Key: k1", "webhook-timestamp: 1700000000"}));
}

// V1, V3
TEST(AttemptFields, RefuseAnIdThatIsNoKeyAndATimeWithoutAKey) {
  const RequestContent content = content_in(BodyShape::kEnvelope);
  for (const std::string_view key : {"", "a.b", "a\r\nb: c", "a b"}) {
    EXPECT_FALSE(attempt_fields(content, {.key = key, .at = kAt}).ok()) << key;
  }
  const std::array terms{signing::KeyTerm{.key = kSecret, .until = kAt}};
  const auto keys = signing::KeyRing::make(terms).value();
  EXPECT_EQ(attempt_fields(content, {.key = "k1", .at = kAt, .keys = &keys}).error().code,
            Errc::kPreconditionFailed);
}

// V7: whatever a publisher wrote, it is one value of one field.
TEST(AttemptFields, PassOnWhatTheRecordSays) {
  EXPECT_EQ(passed_on({{"tracestate", "a=1,b=%32"},
                       {"X-Note", "a\r\nwebhook-id: other"},
                       {"x-note", "50% \xc3\xa9"},
                       {"X-End", " a"},
                       {"X-Nul", std::string_view("a\0b", 3)},
                       {"X-Tab", "a\tb"},
                       {"X-Empty", ""}},
                      BodyShape::kEnvelope),
            (std::vector<std::string>{"tracestate: a=1,b=%32", "X-Note: a%0D%0Awebhook-id:%20other",
                                      "x-note: 50%25%20%C3%A9", "X-End: %20a", "X-Nul: a%00b",
                                      "X-Tab: a%09b", "X-Empty: "}));
}

TEST(AttemptFields, WithholdWhatIsNotTheRecordsBusiness) {
  EXPECT_EQ(passed_on({{"webhook-id", "other"},
                       {"Webhook_Id", "other"},
                       {"WEBHOOK-SIGNATURE", "v1,x"},
                       {"Idempotency-Key", "other"},
                       {"idempotency_key", "other"},
                       {"Hapax-Replay", "9"},
                       {"Host", "other"},
                       {"Content-Length", "1"},
                       {"Transfer-Encoding", "chunked"},
                       {"content-type", "text/html"},
                       {"Authorization", "Bearer x"},
                       {"Cookie", "a=b"},
                       {"Proxy-Authorization", "x"},
                       {"X-Forwarded-For", "10.0.0.1"},
                       {"Expect", "100-continue"},
                       {"bad name", "x"},
                       {"", "x"},
                       {"a:b", "x"},
                       {"a\r\nb", "x"},
                       {"ce-id", "other"},
                       {"ce-datacontenttype", "x"},
                       {"kept", "x"}},
                      BodyShape::kEnvelope),
            (std::vector<std::string>{"kept: x"}));
}

// Extension attributes come through beside a CloudEvent, and never in place of its own.
TEST(AttemptFields, KeepTheAttributesOfACloudEvent) {
  const std::vector<Header> headers = {
      {"ce-id", "other"}, {"CE_ID", "other"}, {"ce-partitionkey", "p"}, {"ce-subject", "s"}};
  EXPECT_EQ(passed_on(headers, BodyShape::kCloudEventBinary),
            (std::vector<std::string>{"ce-partitionkey: p", "ce-subject: s"}));
  EXPECT_EQ(passed_on(headers, BodyShape::kCloudEventStructured), std::vector<std::string>{});
  EXPECT_EQ(passed_on(headers, BodyShape::kAsItCame).size(), headers.size());
}

TEST(FieldValue, HasNoByteThatIsNotVisible) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text(1, static_cast<char>(byte));
    EXPECT_TRUE(is_field_value(field_value("a" + text + "b"))) << byte;
    EXPECT_TRUE(is_field_value(field_value(text))) << byte;
  }
}

}  // namespace
}  // namespace hapax::envelope
