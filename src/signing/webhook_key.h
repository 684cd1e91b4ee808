// The keys of Standard Webhooks as people copy them. No error tells a byte of the text: it is, or
// was meant to be, a secret.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <hapax/result.h>

namespace hapax::signing {

struct WebhookKey {
  enum class Kind : std::uint8_t {
    kShared,   // whsec_: 24 to 64 bytes for HMAC, known to both sides
    kPrivate,  // whsk_: the seed of an Ed25519 key, 32 bytes
    kPublic,   // whpk_: its public half, 32 bytes
  };
  Kind kind;
  std::string bytes;
};

// whsec_, whsk_ or whpk_, and base64. A whsk_ of 64 bytes (seed, then public key) is read as its
// seed, if the public key is the seed's.
[[nodiscard]] Result<WebhookKey> parse_webhook_key(std::string_view text);

}  // namespace hapax::signing
