#include "digest/sign.h"

#include <sodium.h>

namespace hapax::digest {

namespace {

const unsigned char* octets(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}
unsigned char* octets(std::string& bytes) { return reinterpret_cast<unsigned char*>(bytes.data()); }

static_assert(kHmacBytes == crypto_auth_hmacsha256_BYTES);
static_assert(kEd25519SeedBytes == crypto_sign_ed25519_SEEDBYTES);
static_assert(kEd25519PublicBytes == crypto_sign_ed25519_PUBLICKEYBYTES);
static_assert(kEd25519SignatureBytes == crypto_sign_ed25519_BYTES);

}  // namespace

std::string hmac_sha256(std::string_view secret, std::span<const std::string_view> pieces) {
  crypto_auth_hmacsha256_state state;
  crypto_auth_hmacsha256_init(&state, octets(secret), secret.size());
  for (const std::string_view piece : pieces) {
    crypto_auth_hmacsha256_update(&state, octets(piece), piece.size());
  }
  std::string out(kHmacBytes, '\0');
  crypto_auth_hmacsha256_final(&state, octets(out));
  return out;
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  return !a.empty() && a.size() == b.size() && sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::optional<Ed25519Key> Ed25519Key::from_seed(std::string_view seed) {
  if (seed.size() != kEd25519SeedBytes) return std::nullopt;
  Ed25519Key key;
  key.public_.resize(kEd25519PublicBytes);
  key.secret_.resize(crypto_sign_ed25519_SECRETKEYBYTES);
  crypto_sign_ed25519_seed_keypair(octets(key.public_), octets(key.secret_), octets(seed));
  return key;
}

std::string Ed25519Key::sign(std::string_view message) const {
  std::string signature(kEd25519SignatureBytes, '\0');
  crypto_sign_ed25519_detached(octets(signature), nullptr, octets(message), message.size(),
                               octets(std::string_view(secret_)));
  return signature;
}

bool verify_ed25519(std::string_view public_key, std::string_view message,
                    std::string_view signature) {
  return public_key.size() == kEd25519PublicBytes && signature.size() == kEd25519SignatureBytes &&
         crypto_sign_ed25519_verify_detached(octets(signature), octets(message), message.size(),
                                             octets(public_key)) == 0;
}

}  // namespace hapax::digest
