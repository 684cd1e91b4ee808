#include <algorithm>
#include <utility>

#include <hapax/event_signature.h>

#include "base/format.h"
#include "digest/base64.h"
#include "digest/sign.h"
#include "signing/webhook_key.h"

namespace hapax {

namespace {

// The first component. Another list of components would have another number.
constexpr std::string_view kEvent = "hapax-event-1";
constexpr std::string_view kVersion = "v1,";
constexpr std::size_t kEventSignaturesMax = 10;

Result<std::string> secret_of(std::string_view text) {
  HAPAX_TRY(auto key, signing::parse_webhook_key(text));
  if (key.kind == signing::WebhookKey::Kind::kShared) return std::move(key.bytes);
  return Error{Errc::kInvalidArgument, "a key of events is whsec_ and base64"};
}

// V2: the length comes first, so that no two events are one text.
std::string signature_of(const SignedEvent& event, std::string_view secret) {
  std::string front;
  for (const std::string_view part : {kEvent, event.id, event.type, event.key}) {
    base::append_format(front, "{}:{},", part.size(), part);
  }
  base::append_format(front, "{}:", event.payload.size());
  const std::string_view pieces[] = {front, event.payload, ","};
  return std::string(kVersion) + digest::encode_base64(digest::hmac_sha256(secret, pieces));
}

}  // namespace

Result<std::string> sign_event(const SignedEvent& event, std::string_view key) {
  if (event.id.empty()) {
    return Error{Errc::kInvalidArgument, "an event without an id cannot be signed"};
  }
  HAPAX_TRY(const std::string secret, secret_of(key));
  return signature_of(event, secret);
}

Result<EventVerifier> EventVerifier::make(std::span<const std::string> keys) {
  if (keys.empty()) {
    return Error{Errc::kInvalidArgument, "a verifier of events needs a key"};
  }
  EventVerifier verifier;
  for (const std::string& key : keys) {
    auto secret = secret_of(key);
    if (!secret) {
      return std::move(secret).error().within(base::format("key {}", verifier.secrets_.size() + 1));
    }
    verifier.secrets_.push_back(*std::move(secret));
  }
  return verifier;
}

std::optional<std::string_view> EventVerifier::fault_of(const SignedEvent& event,
                                                        std::string_view signatures) const {
  if (signatures.empty()) return "its signature is missing";
  if (event.id.empty()) return "its signature does not match: it has no id";
  std::vector<std::string> good;
  for (const std::string& secret : secrets_) good.push_back(signature_of(event, secret));
  for (std::size_t i = 0; i < kEventSignaturesMax && !signatures.empty(); ++i) {
    const std::size_t end = std::min(signatures.find(' '), signatures.size());
    const std::string_view one = signatures.substr(0, end);
    const bool fits = std::any_of(good.begin(), good.end(), [one](const std::string& each) {
      return digest::equal_in_constant_time(each, one);
    });
    if (fits) return std::nullopt;
    signatures.remove_prefix(std::min(end + 1, signatures.size()));
  }
  return "its signature does not match: it was changed after it was published, or signed with "
         "another key";
}

}  // namespace hapax
