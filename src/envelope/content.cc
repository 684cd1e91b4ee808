#include "envelope/content.h"

#include <utility>

#include "base/format.h"
#include "base/time_text.h"
#include "base/utf8.h"
#include "digest/base64.h"
#include "envelope/attributes.h"
#include "envelope/field_value.h"
#include "wire/json_check.h"
#include "wire/json_text.h"

namespace hapax::envelope {

namespace {

constexpr std::string_view kJson = "application/json";
constexpr std::string_view kBytes = "application/octet-stream";
constexpr std::string_view kCloudEventJson = "application/cloudevents+json";

// RFC 3339 has years of four digits.
constexpr Time kFirst = time_from_ms(-62'167'219'200'000);
constexpr Time kLast = time_from_ms(253'402'300'799'999);

Error unfit(std::string detail) { return {Errc::kInvalidArgument, std::move(detail)}; }

Status check(const RecordFacts& facts) {
  if (!base::is_utf8(facts.type)) return unfit("the type of the record is not UTF-8");
  if (facts.time < kFirst || facts.time > kLast) {
    return unfit("the time of the record is not in the years 0 to 9999");
  }
  if (!is_field_value(facts.content_type)) {
    return unfit("the content type of the record has characters that no header field may have");
  }
  return Ok{};
}

// `object` without its last brace, then the member, then the brace. The payload is not copied.
RequestBody spliced(wire::JsonObject object, std::string_view name, std::string_view json) {
  std::string before = std::move(object.raw(name, "")).text();
  before.pop_back();
  return {std::move(before), json, "}"};
}

RequestBody with_data(wire::JsonObject object, std::string_view payload, bool as_json,
                      std::string_view base64_name) {
  if (as_json) return spliced(std::move(object), "data", payload);
  return {std::move(object.add(base64_name, digest::encode_base64(payload))).text(), {}, {}};
}

RequestContent enveloped(const RecordFacts& facts) {
  wire::JsonObject object;
  object.add("idempotencyKey", facts.key)
      .add("eventType", facts.type)
      .add("timestamp", base::rfc3339_ms(facts.time));
  return {BodyShape::kEnvelope,
          with_data(std::move(object), facts.payload, wire::is_strict_json(facts.payload),
                    "dataBase64"),
          {{"Content-Type", std::string(kJson)}}};
}

std::string content_type_of(const RecordFacts& facts) {
  if (!facts.content_type.empty()) return std::string(facts.content_type);
  return std::string(wire::is_strict_json(facts.payload) ? kJson : kBytes);
}

RequestContent as_it_came(const RecordFacts& facts) {
  return {
      BodyShape::kAsItCame, {{}, facts.payload, {}}, {{"Content-Type", content_type_of(facts)}}};
}

RequestContent in_binary_mode(const RecordFacts& facts) {
  RequestContent content = as_it_came(facts);
  content.shape = BodyShape::kCloudEventBinary;
  for (const Attribute& attribute : attributes_of(facts)) {
    content.fields.push_back(
        {base::format("ce-{}", attribute.name), attribute_field_value(attribute.value)});
  }
  return content;
}

RequestContent in_structured_mode(const RecordFacts& facts) {
  wire::JsonObject object;
  for (const Attribute& attribute : attributes_of(facts)) {
    object.add(attribute.name, attribute.value);
  }
  // Of bytes nobody told the type of, none is told; of JSON it is.
  const bool may_be_json = facts.content_type.empty() || is_json_type(facts.content_type);
  const bool as_json = may_be_json && wire::is_strict_json(facts.payload);
  if (!facts.content_type.empty()) {
    object.add("datacontenttype", facts.content_type);
  } else if (as_json) {
    object.add("datacontenttype", kJson);
  }
  return {BodyShape::kCloudEventStructured,
          with_data(std::move(object), facts.payload, as_json, "data_base64"),
          {{"Content-Type", std::string(kCloudEventJson)}}};
}

}  // namespace

std::string RequestBody::text() const {
  std::string whole;
  whole.reserve(size());
  for (const std::string_view piece : pieces()) whole += piece;
  return whole;
}

Result<RequestContent> make_content(BodyShape shape, const RecordFacts& facts) {
  HAPAX_CHECK(check(facts));
  switch (shape) {
    case BodyShape::kEnvelope:
      return enveloped(facts);
    case BodyShape::kAsItCame:
      return as_it_came(facts);
    case BodyShape::kCloudEventBinary:
      HAPAX_CHECK(check_attributes(facts));
      return in_binary_mode(facts);
    case BodyShape::kCloudEventStructured:
      break;
  }
  HAPAX_CHECK(check_attributes(facts));
  return in_structured_mode(facts);
}

}  // namespace hapax::envelope
