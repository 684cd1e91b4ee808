// Makes and verifies webhooks for webhooks_test.py: a JSON object a line on standard input, one
// with the answer on standard output. Not installed.
#include <cstdint>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/webhook.h>

#include "digest/base64.h"
#include "envelope/attempt.h"
#include "envelope/content.h"
#include "signing/delivery_key.h"
#include "signing/key_ring.h"
#include "wire/json_text.h"
#include "wire/strict_json.h"

namespace hapax {
namespace {

using wire::JsonObject;
using wire::JsonValue;

std::string_view text_of(const JsonValue& line, std::string_view name) {
  const JsonValue* found = line.find(name);
  const auto* text = found == nullptr ? nullptr : found->get<std::string>();
  return text == nullptr ? std::string_view() : std::string_view(*text);
}

std::int64_t number_of(const JsonValue& line, std::string_view name, std::int64_t otherwise = 0) {
  const JsonValue* found = line.find(name);
  const auto* number = found == nullptr ? nullptr : found->get<std::int64_t>();
  return number == nullptr ? otherwise : *number;
}

const JsonValue::Array& list_of(const JsonValue& line, std::string_view name) {
  static const JsonValue::Array kNone;
  const JsonValue* found = line.find(name);
  const auto* list = found == nullptr ? nullptr : found->get<JsonValue::Array>();
  return list == nullptr ? kNone : *list;
}

std::vector<std::string_view> texts_of(const JsonValue& line, std::string_view name) {
  std::vector<std::string_view> texts;
  for (const JsonValue& one : list_of(line, name)) texts.push_back(*one.get<std::string>());
  return texts;
}

std::vector<Header> fields_of(const JsonValue& line) {
  std::vector<Header> fields;
  for (const JsonValue& one : list_of(line, "fields")) {
    const auto& pair = *one.get<JsonValue::Array>();
    fields.push_back({*pair.at(0).get<std::string>(), *pair.at(1).get<std::string>()});
  }
  return fields;
}

Result<JsonObject> tell_key(const JsonValue& line) {
  const auto parts = texts_of(line, "parts");
  const std::string_view kind = text_of(line, "origin");
  signing::KeyOrigin origin = signing::OutboxOrigin{parts.at(0), parts.at(1), parts.at(2)};
  if (kind == "stream") origin = signing::StreamOrigin{parts[0], parts[1], parts[2]};
  if (kind == "sequence") {
    origin = signing::StreamOrigin{
        parts[0], parts[1],
        Sequence{static_cast<std::uint64_t>(std::stoull(std::string(parts[2])))}};
  }
  if (kind == "http") origin = signing::IngestOrigin{parts[0], parts[1], parts[2]};
  if (kind == "row") {
    const std::vector<std::string_view> columns(parts.begin() + 2, parts.end() - 1);
    origin = signing::RowOrigin{parts[0], parts[1], columns, parts.back()};
  }
  const signing::FanOut fan_out{.output = static_cast<std::uint32_t>(number_of(line, "output")),
                                .endpoint = text_of(line, "endpoint")};
  HAPAX_TRY(const auto key, signing::DeliveryKey::make(origin, fan_out));
  HAPAX_TRY(const std::string components, signing::key_components(origin, fan_out));
  JsonObject answer;
  answer.add("whole", key.text()).add("short", key.text(signing::KeyForm::kShort));
  return std::move(answer.add("components", components));
}

envelope::BodyShape shape_of(std::string_view word) {
  if (word == "binary") return envelope::BodyShape::kCloudEventBinary;
  if (word == "structured") return envelope::BodyShape::kCloudEventStructured;
  return word == "as_it_came" ? envelope::BodyShape::kAsItCame : envelope::BodyShape::kEnvelope;
}

Result<std::optional<signing::KeyRing>> ring_of(const JsonValue& line) {
  std::vector<signing::KeyTerm> terms;
  for (const JsonValue& one : list_of(line, "keys")) {
    terms.push_back({.key = text_of(one, "key"),
                     .from = time_from_ms(number_of(one, "from", to_ms(Time::min()))),
                     .until = time_from_ms(number_of(one, "until", to_ms(Time::max())))});
  }
  if (terms.empty()) return std::optional<signing::KeyRing>();
  HAPAX_TRY(signing::KeyRing ring, signing::KeyRing::make(terms));
  return std::optional<signing::KeyRing>(std::move(ring));
}

Result<JsonObject> tell_request(const JsonValue& line) {
  const std::string payload = digest::decode_base64(text_of(line, "payload")).value();
  HAPAX_TRY(const auto content,
            envelope::make_content(shape_of(text_of(line, "shape")),
                                   {.key = text_of(line, "key"),
                                    .type = text_of(line, "type"),
                                    .time = time_from_ms(number_of(line, "time")),
                                    .payload = payload,
                                    .content_type = text_of(line, "content_type"),
                                    .source = text_of(line, "source"),
                                    .subject = text_of(line, "subject")}));
  HAPAX_TRY(const auto ring, ring_of(line));
  const std::vector<Header> headers = fields_of(line);
  HAPAX_TRY(const auto fields,
            envelope::attempt_fields(
                content, {.key = text_of(line, "key"),
                          .at = time_from_ms(number_of(line, "at")),
                          .replay = static_cast<std::uint32_t>(number_of(line, "replay")),
                          .keys = ring ? &*ring : nullptr,
                          .record_headers = headers}));
  JsonObject answer;
  answer.add("body", digest::encode_base64(content.body.text()));
  answer.list("fields", fields, [](JsonObject& object, const envelope::HeaderField& field) {
    object.add("name", field.name).add("value", field.value);
  });
  return answer;
}

Result<JsonObject> tell_verdict(const JsonValue& line) {
  const auto keys = texts_of(line, "keys");
  HAPAX_TRY(const auto verifier, WebhookVerifier::make(keys));
  const std::string body = digest::decode_base64(text_of(line, "body")).value();
  const auto verdict = verifier.verify(fields_of(line), body, time_from_ms(number_of(line, "now")));
  JsonObject answer;
  if (const auto* sent = std::get_if<VerifiedWebhook>(&verdict)) {
    answer.add("id", sent->id).add("sent", to_ms(sent->sent));
  } else {
    answer.add("fault", word_of(std::get<WebhookRefusal>(verdict).fault));
  }
  return answer;
}

Result<JsonObject> answer_to(std::string_view text) {
  HAPAX_TRY(const JsonValue line, wire::read_strict_json(text));
  const std::string_view wanted = text_of(line, "do");
  if (wanted == "key") return tell_key(line);
  if (wanted == "request") return tell_request(line);
  return tell_verdict(line);
}

int answer_all() {
  std::string text;
  while (std::getline(std::cin, text)) {
    const Result<JsonObject> answer = answer_to(text);
    std::cout << (answer.ok() ? answer->text()
                              : JsonObject().add("error", answer.error().text()).text())
              << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace hapax

int main() { return hapax::answer_all(); }
