#include "digest/hash.h"

#include <cstring>

#include <sodium.h>

namespace hapax::digest {

base::Hash128 hash128(const HashKey& key, std::string_view bytes) {
  static_assert(crypto_shorthash_siphashx24_KEYBYTES == std::tuple_size_v<HashKey>);
  static_assert(crypto_shorthash_siphashx24_BYTES == sizeof(base::Hash128));
  base::Hash128 hash;
  unsigned char out[crypto_shorthash_siphashx24_BYTES];
  crypto_shorthash_siphashx24(out, reinterpret_cast<const unsigned char*>(bytes.data()),
                              bytes.size(), key.data());
  std::memcpy(&hash, out, sizeof hash);
  return hash;
}

base::Hash128 hash128(const HashKey& key, std::span<const std::string_view> pieces) {
  std::string joined;
  for (const std::string_view piece : pieces) {
    const std::uint64_t size = piece.size();
    joined.append(reinterpret_cast<const char*>(&size), sizeof size);
    joined.append(piece);
  }
  return hash128(key, joined);
}

std::string sha256(std::string_view bytes) {
  std::string out(crypto_hash_sha256_BYTES, '\0');
  crypto_hash_sha256(reinterpret_cast<unsigned char*>(out.data()),
                     reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  return out;
}

}  // namespace hapax::digest
