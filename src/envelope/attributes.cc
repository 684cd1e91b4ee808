#include "envelope/attributes.h"

#include <algorithm>
#include <cstdint>

#include "base/format.h"
#include "base/time_text.h"
#include "base/utf8.h"
#include "base/words.h"
#include "envelope/field_value.h"

namespace hapax::envelope {

namespace {

// Of one character of UTF-8.
std::uint32_t code_point(std::string_view character) {
  const auto lead = static_cast<unsigned char>(character.front());
  if (character.size() == 1) return lead;
  std::uint32_t code = lead & (0xffU >> (character.size() + 1));
  for (const char c : character.substr(1)) {
    code = code << 6 | (static_cast<unsigned char>(c) & 0x3fU);
  }
  return code;
}

bool is_allowed(std::uint32_t code) {
  const bool control = code < 0x20 || (code >= 0x7f && code <= 0x9f);
  const bool no_character = (code >= 0xfdd0 && code <= 0xfdef) || (code & 0xfffe) == 0xfffe;
  return !control && !no_character;
}

Status check_text(std::string_view name, std::string_view text) {
  while (!text.empty()) {
    const std::size_t size = base::utf8_size(text);
    if (size == 0 || !is_allowed(code_point(text.substr(0, size)))) {
      return Error{
          Errc::kInvalidArgument,
          base::format("{} of a CloudEvent must be UTF-8 without control characters", name)};
    }
    text.remove_prefix(size);
  }
  return Ok{};
}

Status check_required(std::string_view name, std::string_view text) {
  if (!text.empty()) return check_text(name, text);
  return Error{Errc::kInvalidArgument, base::format("a CloudEvent needs a {}", name)};
}

// The characters of RFC 3986. How they follow each other is the operator's business.
bool is_uri_text(std::string_view text) {
  constexpr std::string_view kMarks = "-._~:/?#[]@!$&'()*+,;=%";
  return std::all_of(text.begin(), text.end(), [&](char c) {
    const char lower = base::to_lower(c);
    return (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') ||
           kMarks.find(c) != std::string_view::npos;
  });
}

}  // namespace

Status check_attributes(const RecordFacts& facts) {
  HAPAX_CHECK(check_required("id", facts.key));
  HAPAX_CHECK(check_required("source", facts.source));
  HAPAX_CHECK(check_required("type", facts.type));
  HAPAX_CHECK(check_text("subject", facts.subject));
  if (is_uri_text(facts.source)) return Ok{};
  return Error{Errc::kInvalidArgument,
               "source of a CloudEvent must be a URI reference; write other characters as %XX"};
}

std::vector<Attribute> attributes_of(const RecordFacts& facts) {
  std::vector<Attribute> attributes = {{"specversion", "1.0"},
                                       {"id", std::string(facts.key)},
                                       {"source", std::string(facts.source)},
                                       {"type", std::string(facts.type)},
                                       {"time", base::rfc3339_ms(facts.time)}};
  if (!facts.subject.empty()) attributes.push_back({"subject", std::string(facts.subject)});
  return attributes;
}

std::string attribute_field_value(std::string_view text) {
  return percent_encoded(text, [](char c) { return c > ' ' && c <= '~' && c != '"' && c != '%'; });
}

bool is_json_type(std::string_view media_type) {
  std::string_view essence = media_type.substr(0, media_type.find(';'));
  while (essence.ends_with(' ')) essence.remove_suffix(1);
  const std::size_t slash = essence.find('/');
  if (slash == std::string_view::npos) return false;
  const std::string subtype = base::lower(essence.substr(slash + 1));
  return subtype == "json" || subtype.ends_with("+json");
}

}  // namespace hapax::envelope
