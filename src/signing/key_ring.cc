#include "signing/key_ring.h"

#include <chrono>
#include <utility>

#include "base/format.h"
#include "base/time_text.h"
#include "digest/base64.h"
#include "signing/signed_content.h"
#include "signing/webhook_key.h"

namespace hapax::signing {

Result<KeyRing> KeyRing::make(std::span<const KeyTerm> terms) {
  KeyRing ring;
  for (const KeyTerm& term : terms) {
    const std::string where = base::format("signing key {}", ring.keys_.size() + 1);
    Result<WebhookKey> key = parse_webhook_key(term.key);
    if (!key) return std::move(key).error().within(where);
    if (key->kind == WebhookKey::Kind::kPublic) {
      return Error{Errc::kInvalidArgument,
                   where + ": a whpk_ key can only verify; a whsk_ key signs"};
    }
    if (term.from >= term.until) {
      return Error{Errc::kInvalidArgument, where + ": it ends before it begins"};
    }
    Held held{.shared = {}, .pair = {}, .from = term.from, .until = term.until};
    if (key->kind == WebhookKey::Kind::kPrivate) {
      held.pair = digest::Ed25519Key::from_seed(key->bytes);
    } else {
      held.shared = std::move(key->bytes);
    }
    ring.keys_.push_back(std::move(held));
  }
  if (ring.keys_.empty()) return Error{Errc::kInvalidArgument, "there is no signing key"};
  return ring;
}

Result<std::string> KeyRing::sign(const SignedRequest& request) const {
  if (!is_webhook_id(request.id)) return unfit_webhook_id();
  const std::string timestamp = webhook_timestamp(request.at);
  const auto content = signed_content(request.id, timestamp, request.body);
  std::string signatures;
  for (const Held& key : keys_) {
    if (request.at < key.from || request.at >= key.until) continue;
    if (!signatures.empty()) signatures += ' ';
    signatures += key.pair ? "v1a," : "v1,";
    signatures += digest::encode_base64(key.pair ? key.pair->sign(in_one_piece(content))
                                                 : digest::hmac_sha256(key.shared, content));
  }
  if (!signatures.empty()) return signatures;
  // V3: what was to be signed never leaves without a signature.
  return Error{Errc::kPreconditionFailed,
               base::format("none of the {} signing keys is in use at {}", keys_.size(),
                            base::rfc3339_seconds(request.at))};
}

std::string webhook_timestamp(Time at) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(at.time_since_epoch());
  return base::format("{}", seconds.count());
}

}  // namespace hapax::signing
