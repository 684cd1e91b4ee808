// Whatever a publisher wrote, a request is one request: its body is JSON where it says so and holds
// the payload as it came, and each header field is one field.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "digest/base64.h"
#include "envelope/attempt.h"
#include "envelope/content.h"
#include "envelope/field_value.h"
#include "wire/json_check.h"
#include "wire/strict_json.h"

namespace {

using namespace hapax;
using envelope::BodyShape;

void must(bool holds) {
  if (!holds) std::abort();
}

std::string_view take_line(std::string_view& bytes) {
  const std::size_t end = bytes.find('\n');
  const std::string_view line = bytes.substr(0, end);
  bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
  return line;
}

void must_hold(const std::string& body, std::string_view payload, std::string_view base64_name) {
  must(wire::is_strict_json(body));
  // The reader of small documents allows less depth, so it may not read what is JSON.
  const auto read = wire::read_strict_json(body);
  if (!read) return;
  const auto* base64 = read->find(base64_name);
  must((base64 != nullptr) != (read->find("data") != nullptr));
  if (base64 != nullptr) {
    must(digest::decode_base64(*base64->get<std::string>()) == payload);
  } else {
    must(body.ends_with("\"data\":" + std::string(payload) + "}"));
  }
}

void try_shape(BodyShape shape, const envelope::RecordFacts& facts, const Header& header) {
  const auto content = envelope::make_content(shape, facts);
  if (!content) return;
  const std::string body = content->body.text();
  must(body.size() == content->body.size());
  if (shape == BodyShape::kEnvelope) must_hold(body, facts.payload, "dataBase64");
  if (shape == BodyShape::kCloudEventStructured) must_hold(body, facts.payload, "data_base64");
  const std::array headers{header};
  const auto fields =
      envelope::attempt_fields(*content, {.key = facts.key, .record_headers = headers});
  must(fields.ok());
  for (const envelope::HeaderField& field : *fields) {
    must(envelope::is_field_name(field.name) && envelope::is_field_value(field.value));
  }
}

}  // namespace

// Lines: type, subject, content type, name and value of a header field; then the payload.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  envelope::RecordFacts facts{.key = "k", .type = take_line(rest), .payload = {}, .source = "/s"};
  facts.subject = take_line(rest);
  facts.content_type = take_line(rest);
  const std::string_view name = take_line(rest);
  const Header header{name, take_line(rest)};
  facts.payload = rest;
  must(!wire::read_strict_json(rest).ok() || wire::is_strict_json(rest));
  for (const BodyShape shape : {BodyShape::kEnvelope, BodyShape::kAsItCame,
                                BodyShape::kCloudEventBinary, BodyShape::kCloudEventStructured}) {
    try_shape(shape, facts, header);
  }
  return 0;
}
