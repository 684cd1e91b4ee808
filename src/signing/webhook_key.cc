#include "signing/webhook_key.h"

#include <array>
#include <optional>
#include <utility>

#include "base/format.h"
#include "digest/base64.h"
#include "digest/sign.h"

namespace hapax::signing {

namespace {

constexpr std::size_t kSharedBytesMin = 24;
constexpr std::size_t kSharedBytesMax = 64;

struct Prefix {
  std::string_view text;
  WebhookKey::Kind kind;
};
constexpr std::array kPrefixes = {Prefix{"whsec_", WebhookKey::Kind::kShared},
                                  Prefix{"whsk_", WebhookKey::Kind::kPrivate},
                                  Prefix{"whpk_", WebhookKey::Kind::kPublic}};

// V4: no detail has a byte of the text.
Error unfit(std::string detail) { return {Errc::kInvalidArgument, std::move(detail)}; }

Result<std::string> seed_of(std::string bytes) {
  constexpr std::size_t kWhole = digest::kEd25519SeedBytes + digest::kEd25519PublicBytes;
  if (bytes.size() == digest::kEd25519SeedBytes) return bytes;
  if (bytes.size() != kWhole) {
    return unfit(
        base::format("a whsk_ key has 32 bytes, or 64 with its public key; not {}", bytes.size()));
  }
  const std::string public_key = bytes.substr(digest::kEd25519SeedBytes);
  bytes.resize(digest::kEd25519SeedBytes);
  const auto key = digest::Ed25519Key::from_seed(bytes);
  if (key->public_key() != public_key) {
    return unfit("the public key in a whsk_ key is not the one of its seed");
  }
  return bytes;
}

}  // namespace

Result<WebhookKey> parse_webhook_key(std::string_view text) {
  for (const Prefix& prefix : kPrefixes) {
    if (!text.starts_with(prefix.text)) continue;
    std::optional<std::string> bytes = digest::decode_base64(text.substr(prefix.text.size()));
    if (!bytes) {
      return unfit(base::format("what follows {} in a webhook key is not base64", prefix.text));
    }
    const std::size_t size = bytes->size();
    switch (prefix.kind) {
      case WebhookKey::Kind::kShared:
        if (size >= kSharedBytesMin && size <= kSharedBytesMax) break;
        return unfit(base::format("a whsec_ secret has 24 to 64 bytes; not {}", size));
      case WebhookKey::Kind::kPrivate: {
        HAPAX_TRY(bytes, seed_of(*std::move(bytes)));
        break;
      }
      case WebhookKey::Kind::kPublic:
        if (size == digest::kEd25519PublicBytes) break;
        return unfit(base::format("a whpk_ key has 32 bytes; not {}", size));
    }
    return WebhookKey{prefix.kind, *std::move(bytes)};
  }
  return unfit("a webhook key begins with whsec_, whsk_ or whpk_");
}

}  // namespace hapax::signing
