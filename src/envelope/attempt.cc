#include "envelope/attempt.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/format.h"
#include "base/words.h"
#include "envelope/field_value.h"
#include "signing/signed_content.h"

namespace hapax::envelope {

namespace {

// For the connection and the framing of the request; who the sender is, which only the endpoint's
// own configuration says; and what would make an answer other than one to a plain request.
constexpr std::array<std::string_view, 24> kWithheld = {
    "accept-encoding",
    "authorization",
    "connection",
    "content-encoding",
    "content-length",
    "content-range",
    "content-type",
    "cookie",
    "date",
    "expect",
    "forwarded",
    "host",
    "keep-alive",
    "http2-settings",
    "idempotency-key",
    "if-match",
    "if-none-match",
    "range",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
    "ce-datacontenttype",
};
constexpr std::array<std::string_view, 5> kWithheldPrefixes = {"webhook-", "hapax-", "proxy-",
                                                               "x-forwarded-", "sec-"};

// Servers hand a field to programs under a name in which '-' is '_', so both are one name.
std::string plain_name(std::string_view name) {
  std::string plain = base::lower(name);
  std::replace(plain.begin(), plain.end(), '_', '-');
  return plain;
}

bool has(const std::vector<HeaderField>& fields, std::string_view name) {
  return std::any_of(fields.begin(), fields.end(), [&](const HeaderField& field) {
    return plain_name(field.name) == plain_name(name);
  });
}

}  // namespace

bool is_withheld(std::string_view name, BodyShape shape) {
  const std::string plain = plain_name(name);
  const auto begins = [&](std::string_view prefix) { return plain.starts_with(prefix); };
  if (std::find(kWithheld.begin(), kWithheld.end(), plain) != kWithheld.end()) return true;
  if (std::any_of(kWithheldPrefixes.begin(), kWithheldPrefixes.end(), begins)) return true;
  // Beside another body they would describe a CloudEvent that is not there.
  const bool may_be_event = shape == BodyShape::kAsItCame || shape == BodyShape::kCloudEventBinary;
  return begins("ce-") && !may_be_event;
}

Result<std::vector<HeaderField>> attempt_fields(const RequestContent& content,
                                                const AttemptFacts& facts) {
  // V1: also without a signature, for it is a header field.
  if (!signing::is_webhook_id(facts.key)) return signing::unfit_webhook_id();
  std::vector<HeaderField> fields;
  for (const Header& header : facts.record_headers) {
    if (!is_field_name(header.name) || is_withheld(header.name, content.shape) ||
        has(content.fields, header.name)) {
      continue;
    }
    fields.push_back({std::string(header.name), field_value(header.value)});
  }
  fields.insert(fields.end(), content.fields.begin(), content.fields.end());
  fields.push_back({"webhook-id", std::string(facts.key)});
  fields.push_back({"Idempotency-Key", std::string(facts.key)});
  fields.push_back({"webhook-timestamp", signing::webhook_timestamp(facts.at)});
  if (facts.keys != nullptr) {
    const auto pieces = content.body.pieces();
    HAPAX_TRY(std::string signature, facts.keys->sign({facts.key, facts.at, pieces}));
    fields.push_back({"webhook-signature", std::move(signature)});
  }
  if (facts.replay != 0) fields.push_back({"Hapax-Replay", base::format("{}", facts.replay)});
  return fields;
}

}  // namespace hapax::envelope
