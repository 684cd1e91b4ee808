// Signatures over bytes: HMAC-SHA-256 under a secret that both sides know, and Ed25519 (RFC 8032)
// under a pair of keys.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace hapax::digest {

inline constexpr std::size_t kHmacBytes = 32;
inline constexpr std::size_t kEd25519SeedBytes = 32;
inline constexpr std::size_t kEd25519PublicBytes = 32;
inline constexpr std::size_t kEd25519SignatureBytes = 64;

// 32 raw bytes: of the pieces one behind the other, so that nobody has to join them first.
[[nodiscard]] std::string hmac_sha256(std::string_view secret,
                                      std::span<const std::string_view> pieces);

// How long it takes depends on the lengths only, never on where the texts differ. An empty text
// equals nothing, so that a secret that is missing lets nobody in.
[[nodiscard]] bool equal_in_constant_time(std::string_view a, std::string_view b);

// The secret half is the seed; the rest follows from it.
class Ed25519Key {
 public:
  // Nothing unless the seed has 32 bytes.
  [[nodiscard]] static std::optional<Ed25519Key> from_seed(std::string_view seed);

  [[nodiscard]] const std::string& public_key() const { return public_; }  // 32 raw bytes
  [[nodiscard]] std::string sign(std::string_view message) const;          // 64 raw bytes

 private:
  Ed25519Key() = default;

  std::string public_;
  std::string secret_;  // seed and public key, as libsodium wants it
};

// False also for a key or a signature of the wrong length.
[[nodiscard]] bool verify_ed25519(std::string_view public_key, std::string_view message,
                                  std::string_view signature);

}  // namespace hapax::digest
