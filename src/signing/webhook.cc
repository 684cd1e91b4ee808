#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <utility>

#include <hapax/webhook.h>

#include "base/format.h"
#include "base/whole_number.h"
#include "base/words.h"
#include "digest/base64.h"
#include "digest/sign.h"
#include "signing/signed_content.h"
#include "signing/webhook_key.h"

namespace hapax {

namespace {

// Signatures that are looked at. Each costs an Ed25519 verification for each key, which is what a
// flood of requests could make a receiver spend; a change of keys needs two.
constexpr std::size_t kSignaturesMax = 16;
// The last second of the year 9999, and what keeps milliseconds within their type.
constexpr std::int64_t kSecondsMax = 253'402'300'799;

WebhookRefusal malformed(std::string detail) {
  return {WebhookFault::kMalformed, std::move(detail)};
}

// The three fields that are signed, or sign.
struct WebhookFields {
  std::optional<std::string_view> id{};
  std::optional<std::string_view> timestamp{};
  std::optional<std::string_view> signature{};
};

using FieldsOrRefusal = std::variant<WebhookFields, WebhookRefusal>;

FieldsOrRefusal fields_in(std::span<const Header> header) {
  WebhookFields fields;
  const std::array wanted = {std::pair{std::string_view("webhook-id"), &fields.id},
                             std::pair{std::string_view("webhook-timestamp"), &fields.timestamp},
                             std::pair{std::string_view("webhook-signature"), &fields.signature}};
  for (const Header& field : header) {
    for (const auto& [name, value] : wanted) {
      if (!base::same_word(field.name, name)) continue;
      // V5: of two a program behind us might believe the other one.
      if (*value) return malformed(base::format("{} is there more than once", name));
      *value = field.value;
    }
  }
  for (const auto& [name, value] : wanted) {
    if (!*value) return WebhookRefusal{WebhookFault::kMissingHeader, base::format("no {}", name)};
  }
  return fields;
}

// The signatures that are written as they must be, of whatever version; nothing for too many.
std::optional<std::vector<std::string_view>> signatures_in(std::string_view list) {
  std::vector<std::string_view> signatures;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(' '), list.size());
    const std::string_view one = list.substr(0, end);
    list.remove_prefix(std::min(end + 1, list.size()));
    const std::size_t comma = one.find(',');
    if (comma == 0 || comma == std::string_view::npos || comma + 1 == one.size()) continue;
    if (signatures.size() == kSignaturesMax) return std::nullopt;
    signatures.push_back(one);
  }
  return signatures;
}

std::optional<WebhookRefusal> untimely(Time sent, Time now, Duration tolerance) {
  // Within what can be a time, so that the difference is one, too.
  now = std::clamp(now, Time{}, time_from_ms(kSecondsMax * 1'000));
  if (now - sent > tolerance) {
    return WebhookRefusal{WebhookFault::kTooOld,
                          base::format("sent {} ms ago; the tolerance is {} ms",
                                       (now - sent).count(), tolerance.count())};
  }
  if (sent - now > tolerance) {
    return WebhookRefusal{WebhookFault::kTooNew,
                          base::format("sent {} ms from now; the tolerance is {} ms",
                                       (sent - now).count(), tolerance.count())};
  }
  return std::nullopt;
}

}  // namespace

std::string_view word_of(WebhookFault fault) {
  constexpr std::array<std::string_view, 5> kWords = {"missing_header", "malformed", "too_old",
                                                      "too_new", "no_match"};
  return kWords.at(static_cast<std::size_t>(fault));
}

Result<WebhookVerifier> WebhookVerifier::make(std::span<const std::string_view> keys,
                                              Duration tolerance) {
  if (tolerance < Duration::zero() || tolerance > std::chrono::hours(24 * 365)) {
    return Error{Errc::kInvalidArgument, "the tolerance must be from 0 s to a year"};
  }
  WebhookVerifier verifier(tolerance);
  std::size_t place = 0;
  for (const std::string_view text : keys) {
    const std::string where = base::format("key {}", ++place);
    Result<signing::WebhookKey> key = signing::parse_webhook_key(text);
    if (!key) return std::move(key).error().within(where);
    if (key->kind == signing::WebhookKey::Kind::kPrivate) {
      return Error{Errc::kInvalidArgument,
                   where + ": a whsk_ key is the sender's alone; a receiver needs its whpk_ key"};
    }
    const bool shared = key->kind == signing::WebhookKey::Kind::kShared;
    (shared ? verifier.secrets_ : verifier.public_keys_).push_back(std::move(key->bytes));
  }
  if (place == 0) return Error{Errc::kInvalidArgument, "there is no key to verify with"};
  return verifier;
}

bool WebhookVerifier::matches(std::string_view signature,
                              std::span<const std::string_view> content) const {
  const std::size_t comma = signature.find(',');
  const std::string_view version = signature.substr(0, comma);
  const auto bytes = digest::decode_base64(signature.substr(comma + 1));
  if (!bytes) return false;
  bool matched = false;
  if (version == "v1") {
    for (const std::string& secret : secrets_) {
      matched |= digest::equal_in_constant_time(digest::hmac_sha256(secret, content), *bytes);
    }
  } else if (version == "v1a" && bytes->size() == digest::kEd25519SignatureBytes &&
             !public_keys_.empty()) {
    const std::string message = signing::in_one_piece(content);
    for (const std::string& key : public_keys_) {
      matched |= digest::verify_ed25519(key, message, *bytes);
    }
  }
  return matched;
}

WebhookVerdict WebhookVerifier::verify(std::span<const Header> header, std::string_view body,
                                       Time now) const {
  const FieldsOrRefusal read = fields_in(header);
  if (const auto* refusal = std::get_if<WebhookRefusal>(&read)) return *refusal;
  const auto& fields = std::get<WebhookFields>(read);
  // V1: also of other senders' ids.
  if (!signing::is_webhook_id(*fields.id)) {
    return malformed("webhook-id is not 1 to 255 visible characters without a full stop");
  }
  const auto seconds = base::whole_number(*fields.timestamp);
  if (!seconds || *seconds < 0 || *seconds > kSecondsMax) {
    return malformed("webhook-timestamp is not a number of seconds since 1970");
  }
  const auto signatures = signatures_in(*fields.signature);
  if (!signatures) {
    return malformed(base::format("webhook-signature has more than {}", kSignaturesMax));
  }
  if (signatures->empty()) return malformed("webhook-signature has nothing like v1,BASE64");

  const Time sent = time_from_ms(*seconds * 1'000);
  if (auto refusal = untimely(sent, now, tolerance_)) return *std::move(refusal);
  const std::array whole{body};
  const auto content = signing::signed_content(*fields.id, *fields.timestamp, whole);
  for (const std::string_view signature : *signatures) {
    if (matches(signature, content)) return VerifiedWebhook{std::string(*fields.id), sent};
  }
  return WebhookRefusal{WebhookFault::kNoMatch,
                        base::format("none of {} signatures is of one of our {} keys",
                                     signatures->size(), secrets_.size() + public_keys_.size())};
}

}  // namespace hapax
