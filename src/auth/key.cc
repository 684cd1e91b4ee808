#include "auth/key.h"

#include <array>

#include <openssl/bn.h>
#include <openssl/crypto.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "auth/octets.h"
#include "base/format.h"
#include "digest/sign.h"

namespace hapax::auth {

namespace {

constexpr std::array kWords = {
    std::pair{Algorithm::kHs256, std::string_view("HS256")},
    std::pair{Algorithm::kRs256, std::string_view("RS256")},
    std::pair{Algorithm::kEs256, std::string_view("ES256")},
    std::pair{Algorithm::kEdDsa, std::string_view("EdDSA")},
};
constexpr std::size_t kHalf = 32;  // bytes of r and of s on P-256

std::string hmac_sha256(std::string_view secret, std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> out{};
  unsigned int size = 0;
  const unsigned char* done = HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
                                   octets(bytes), bytes.size(), out.data(), &size);
  return done == nullptr ? "" : std::string(reinterpret_cast<const char*>(out.data()), size);
}

// r || s of a token as the DER that OpenSSL checks. Empty: not possible.
std::string der_of(std::string_view signature) {
  if (signature.size() != 2 * kHalf) return "";
  const std::unique_ptr<ECDSA_SIG, decltype(&ECDSA_SIG_free)> pair(ECDSA_SIG_new(),
                                                                   &ECDSA_SIG_free);
  BIGNUM* r = BN_bin2bn(octets(signature), kHalf, nullptr);
  BIGNUM* s = BN_bin2bn(octets(signature.substr(kHalf)), kHalf, nullptr);
  if (pair == nullptr || ECDSA_SIG_set0(pair.get(), r, s) != 1) {
    BN_free(r);
    BN_free(s);
    return "";
  }
  unsigned char* der = nullptr;
  const int size = i2d_ECDSA_SIG(pair.get(), &der);
  std::string out;
  if (size > 0) out.assign(reinterpret_cast<const char*>(der), static_cast<std::size_t>(size));
  OPENSSL_free(der);
  return out;
}

bool verify_public(EVP_PKEY* key, const EVP_MD* hash, std::string_view bytes,
                   std::string_view signature) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        &EVP_MD_CTX_free);
  const bool good = context != nullptr &&
                    EVP_DigestVerifyInit(context.get(), nullptr, hash, nullptr, key) == 1 &&
                    EVP_DigestVerify(context.get(), octets(signature), signature.size(),
                                     octets(bytes), bytes.size()) == 1;
  if (!good) ERR_clear_error();  // The queue belongs to the thread; TLS reads it too.
  return good;
}

Error unfit(const std::string& what) { return Error{Errc::kInvalidArgument, what}; }

Result<Algorithm> algorithm_of_rsa(EVP_PKEY* key) {
  const int bits = EVP_PKEY_get_bits(key);
  if (bits >= kRsaBitsMin && bits <= kRsaBitsMax) return Algorithm::kRs256;
  return unfit(
      base::format("an RSA key of {} bits; {} to {} are accepted", bits, kRsaBitsMin, kRsaBitsMax));
}

Result<Algorithm> algorithm_of_ec(EVP_PKEY* key) {
  std::array<char, 64> group{};
  std::size_t size = 0;
  const bool known = EVP_PKEY_get_group_name(key, group.data(), group.size(), &size) == 1;
  if (known && std::string_view(group.data()) == "prime256v1") return Algorithm::kEs256;
  return unfit("an elliptic curve that is not P-256" +
               (known ? " but " + std::string(group.data()) : ""));
}

Result<Algorithm> algorithm_of_key(EVP_PKEY* key) {
  switch (EVP_PKEY_get_base_id(key)) {
    case EVP_PKEY_RSA:
      return algorithm_of_rsa(key);
    case EVP_PKEY_EC:
      return algorithm_of_ec(key);
    case EVP_PKEY_ED25519:
      return Algorithm::kEdDsa;
    default:
      return unfit("a kind of key that is not accepted; RSA, P-256 and Ed25519 are");
  }
}

}  // namespace

std::string_view word_of(Algorithm algorithm) {
  for (const auto& [one, word] : kWords) {
    if (one == algorithm) return word;
  }
  return {};
}

std::optional<Algorithm> algorithm_of(std::string_view word) {
  for (const auto& [one, known] : kWords) {
    if (known == word) return one;
  }
  return std::nullopt;
}

Result<Key> Key::secret(std::string bytes) {
  if (bytes.size() < kSecretMin) {
    return unfit(base::format(
        "a secret of {} bytes; HS256 needs at least {} random ones (openssl rand -base64 48)",
        bytes.size(), kSecretMin));
  }
  // With a public key as secret everybody could sign.
  if (bytes.find("-----BEGIN") != std::string::npos) {
    return unfit(
        "a PEM file as a secret; HS256 takes a file of random bytes. For a "
        "public key set algorithm to RS256, ES256 or EdDSA");
  }
  return Key(Algorithm::kHs256, nullptr, std::move(bytes));
}

Result<Key> Key::from_public(Public key) {
  HAPAX_TRY(const Algorithm algorithm, algorithm_of_key(key.get()));
  return Key(algorithm, std::move(key), "");
}

bool Key::verify(std::string_view bytes, std::string_view signature) const {
  switch (algorithm_) {
    case Algorithm::kHs256:
      return digest::equal_in_constant_time(hmac_sha256(secret_, bytes), signature);
    case Algorithm::kRs256:
      return verify_public(public_.get(), EVP_sha256(), bytes, signature);
    case Algorithm::kEs256: {
      const std::string der = der_of(signature);
      return !der.empty() && verify_public(public_.get(), EVP_sha256(), bytes, der);
    }
    case Algorithm::kEdDsa:
      return verify_public(public_.get(), nullptr, bytes, signature);
  }
  return false;
}

}  // namespace hapax::auth
