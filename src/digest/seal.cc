#include "digest/seal.h"

#include <sodium.h>

#include "base/assert.h"

namespace hapax::digest {

namespace {

const unsigned char* raw(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}
unsigned char* raw(std::string& bytes) { return reinterpret_cast<unsigned char*>(bytes.data()); }

static_assert(kSealKeyBytes == crypto_aead_xchacha20poly1305_ietf_KEYBYTES);
static_assert(kSealNonceBytes == crypto_aead_xchacha20poly1305_ietf_NPUBBYTES);
constexpr std::size_t kTagBytes = crypto_aead_xchacha20poly1305_ietf_ABYTES;

}  // namespace

std::string seal(std::string_view key, std::string_view nonce, std::string_view bound,
                 std::string_view text) {
  HAPAX_ASSERT(key.size() == kSealKeyBytes && nonce.size() == kSealNonceBytes,
               "a key or a nonce of another size seals nothing");
  std::string sealed(text.size() + kTagBytes, '\0');
  crypto_aead_xchacha20poly1305_ietf_encrypt(raw(sealed), nullptr, raw(text), text.size(),
                                             raw(bound), bound.size(), nullptr, raw(nonce),
                                             raw(key));
  return sealed;
}

std::optional<std::string> unseal(std::string_view key, std::string_view nonce,
                                  std::string_view bound, std::string_view sealed) {
  const bool sized = key.size() == kSealKeyBytes && nonce.size() == kSealNonceBytes;
  if (!sized || sealed.size() < kTagBytes) return std::nullopt;
  std::string text(sealed.size() - kTagBytes, '\0');
  const int refused = crypto_aead_xchacha20poly1305_ietf_decrypt(
      raw(text), nullptr, nullptr, raw(sealed), sealed.size(), raw(bound), bound.size(), raw(nonce),
      raw(key));
  if (refused != 0) return std::nullopt;
  return text;
}

}  // namespace hapax::digest
