#include "envelope/content.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "envelope/attributes.h"
#include "wire/json_check.h"
#include "wire/strict_json.h"

namespace hapax::envelope {
namespace {

constexpr Time kTime = time_from_ms(1'763'202'600'123);  // 2025-11-15T10:30:00.123Z

RecordFacts facts_of(std::string_view payload, std::string_view content_type = {}) {
  return {.key = "k1",
          .type = "OrderCreated",
          .time = kTime,
          .payload = payload,
          .content_type = content_type,
          .source = "/retail/orders",
          .subject = {}};
}

std::string body_of(BodyShape shape, const RecordFacts& facts) {
  const auto content = make_content(shape, facts);
  return content.ok() ? content->body.text() : content.error().text();
}

std::string field_of(const RequestContent& content, std::string_view name) {
  for (const HeaderField& field : content.fields) {
    if (field.name == name) return field.value;
  }
  return "(none)";
}

TEST(Envelope, HasTheFourMembers) {
  const auto content = make_content(BodyShape::kEnvelope, facts_of(R"({"orderId":12345})")).value();
  EXPECT_EQ(content.body.text(),
            R"({"idempotencyKey":"k1","eventType":"OrderCreated",)"
            R"("timestamp":"2025-11-15T10:30:00.123Z","data":{"orderId":12345}})");
  EXPECT_EQ(content.fields, (std::vector<HeaderField>{{"Content-Type", "application/json"}}));
  EXPECT_EQ(content.body.size(), content.body.text().size());
}

// V6: not a digit is lost, and not a space.
TEST(Envelope, KeepsJsonByteForByte) {
  for (const std::string_view payload :
       {"{\"n\":12345678901234567890123,\"m\":0.10}", " [ 1e400 , 2 ]\n", "null", "0",
        "\"\\u00e9\"", "\"\xc3\xa9\""}) {
    const std::string body = body_of(BodyShape::kEnvelope, facts_of(payload));
    EXPECT_TRUE(body.ends_with("\"data\":" + std::string(payload) + "}")) << body;
    EXPECT_TRUE(wire::is_strict_json(body)) << body;
  }
}

TEST(Envelope, DoesNotCopyThePayload) {
  const std::string payload = R"({"a":1})";
  for (const BodyShape shape : {BodyShape::kEnvelope, BodyShape::kAsItCame,
                                BodyShape::kCloudEventBinary, BodyShape::kCloudEventStructured}) {
    const auto content = make_content(shape, facts_of(payload)).value();
    EXPECT_EQ(content.body.payload.data(), payload.data());
  }
}

// V6: a payload cannot say more than its own member.
TEST(Envelope, HoldsAnyOtherPayloadAsBase64) {
  using namespace std::string_literals;
  for (const std::string& payload : {""s, "<a/>"s, "\xff"s, "{}}"s, "1,\"idempotencyKey\":\"x\""s,
                                     "{\"a\":1,\"a\":2}"s, "\0"s}) {
    const std::string body = body_of(BodyShape::kEnvelope, facts_of(payload));
    const auto read = wire::read_strict_json(body);
    ASSERT_TRUE(read.ok()) << body;
    EXPECT_EQ(read->find("data"), nullptr);
    ASSERT_NE(read->find("dataBase64"), nullptr);
    EXPECT_EQ(*read->find("idempotencyKey")->get<std::string>(), "k1");
  }
  EXPECT_TRUE(
      body_of(BodyShape::kEnvelope, facts_of("<a/>")).ends_with(R"("dataBase64":"PGEvPg=="})"));
  EXPECT_TRUE(body_of(BodyShape::kEnvelope, facts_of("")).ends_with(R"("dataBase64":""})"));
}

TEST(Envelope, EscapesTheType) {
  RecordFacts facts = facts_of("1");
  facts.type = "a\"b\n";
  EXPECT_NE(body_of(BodyShape::kEnvelope, facts).find(R"("eventType":"a\"b\n")"),
            std::string::npos);
  facts.type = "\xff";
  EXPECT_EQ(make_content(BodyShape::kEnvelope, facts).error().code, Errc::kInvalidArgument);
}

TEST(Content, RefusesWhatCannotBeTold) {
  for (const auto& [shape, change] : std::vector<std::pair<BodyShape, void (*)(RecordFacts&)>>{
           {BodyShape::kEnvelope, [](RecordFacts& facts) { facts.time = Time::max(); }},
           {BodyShape::kEnvelope, [](RecordFacts& facts) { facts.time = Time::min(); }},
           {BodyShape::kAsItCame, [](RecordFacts& facts) { facts.content_type = "a\r\nb: c"; }},
           {BodyShape::kAsItCame, [](RecordFacts& facts) { facts.content_type = "a\xff"; }},
           {BodyShape::kCloudEventBinary, [](RecordFacts& facts) { facts.type = ""; }},
           {BodyShape::kCloudEventStructured, [](RecordFacts& facts) { facts.source = ""; }},
           {BodyShape::kCloudEventBinary, [](RecordFacts& facts) { facts.source = "a b"; }},
           {BodyShape::kCloudEventBinary, [](RecordFacts& facts) { facts.subject = "a\nb"; }},
           {BodyShape::kCloudEventBinary, [](RecordFacts& facts) { facts.subject = "\xc2\x85"; }},
           {BodyShape::kCloudEventBinary,
            [](RecordFacts& facts) { facts.subject = "\xef\xbf\xbf"; }},
           {BodyShape::kCloudEventBinary,
            [](RecordFacts& facts) { facts.subject = "\xef\xb7\x90"; }},
           {BodyShape::kCloudEventBinary, [](RecordFacts& facts) { facts.type = "\xc0\xa0"; }},
       }) {
    RecordFacts facts = facts_of("1");
    change(facts);
    const auto content = make_content(shape, facts);
    ASSERT_FALSE(content.ok());
    EXPECT_EQ(content.error().code, Errc::kInvalidArgument);
  }
}

TEST(AsItCame, IsThePayloadAlone) {
  for (const auto& [payload, told, type] :
       std::vector<std::tuple<std::string_view, std::string_view, std::string_view>>{
           {"{}", "", "application/json"},
           {"<a/>", "", "application/octet-stream"},
           {"<a/>", "application/xml", "application/xml"},
           {"1", "text/plain; charset=utf-8", "text/plain; charset=utf-8"}}) {
    const auto content = make_content(BodyShape::kAsItCame, facts_of(payload, told)).value();
    EXPECT_EQ(content.body.text(), payload);
    EXPECT_EQ(content.fields, (std::vector<HeaderField>{{"Content-Type", std::string(type)}}));
  }
}

TEST(CloudEvent, InBinaryModeHasItsAttributesAsFields) {
  RecordFacts facts = facts_of("<a/>", "application/xml");
  facts.subject = "Euro € 😀";
  const auto content = make_content(BodyShape::kCloudEventBinary, facts).value();
  EXPECT_EQ(content.body.text(), "<a/>");
  EXPECT_EQ(content.fields,
            (std::vector<HeaderField>{{"Content-Type", "application/xml"},
                                      {"ce-specversion", "1.0"},
                                      {"ce-id", "k1"},
                                      {"ce-source", "/retail/orders"},
                                      {"ce-type", "OrderCreated"},
                                      {"ce-time", "2025-11-15T10:30:00.123Z"},
                                      {"ce-subject", "Euro%20%E2%82%AC%20%F0%9F%98%80"}}));
}

TEST(CloudEvent, FieldsEscapeWhatTheBindingSays) {
  EXPECT_EQ(attribute_field_value("a b\"c%d~!"), "a%20b%22c%25d~!");
  EXPECT_EQ(attribute_field_value("\x7f\r\n"), "%7F%0D%0A");
}

TEST(CloudEvent, InStructuredModeIsOneObject) {
  RecordFacts facts = facts_of(R"({"n":12345678901234567890123})");
  facts.subject = "a\"€";
  const auto content = make_content(BodyShape::kCloudEventStructured, facts).value();
  EXPECT_EQ(field_of(content, "Content-Type"), "application/cloudevents+json");
  EXPECT_EQ(content.body.text(),
            R"({"specversion":"1.0","id":"k1","source":"/retail/orders","type":"OrderCreated",)"
            R"("time":"2025-11-15T10:30:00.123Z","subject":"a\"€",)"
            R"("datacontenttype":"application/json","data":{"n":12345678901234567890123}})");
}

// The rules of the JSON format: JSON only where the type says or may say so.
TEST(CloudEvent, InStructuredModeTellsJsonFromBytes) {
  const auto end = [](std::string_view payload, std::string_view type) {
    const std::string body = body_of(BodyShape::kCloudEventStructured, facts_of(payload, type));
    return body.substr(body.find("123Z\"") + 5);
  };
  EXPECT_EQ(end("1", ""), R"(,"datacontenttype":"application/json","data":1})");
  EXPECT_EQ(end("<a/>", ""), R"(,"data_base64":"PGEvPg=="})");
  EXPECT_EQ(end("1", "text/plain"), R"(,"datacontenttype":"text/plain","data_base64":"MQ=="})");
  EXPECT_EQ(end("1", "application/vnd.a+JSON ; v=1"),
            R"(,"datacontenttype":"application/vnd.a+JSON ; v=1","data":1})");
  EXPECT_EQ(end("<", "application/json"),
            R"(,"datacontenttype":"application/json","data_base64":"PA=="})");
  EXPECT_EQ(end("1", "json"), R"(,"datacontenttype":"json","data_base64":"MQ=="})");
}

}  // namespace
}  // namespace hapax::envelope
