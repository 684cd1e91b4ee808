// Keys that sign, and tokens of any shape: what an issuer has, and an attacker.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>

#include "auth/octets.h"
#include "digest/base64.h"

namespace hapax::auth {

inline std::string url64(std::string_view bytes) {
  return digest::encode_base64(bytes, digest::Base64::kUrl);
}

inline std::string unsigned_token(std::string_view header, std::string_view claims) {
  return url64(header) + "." + url64(claims);
}

inline std::string sign_hmac(std::string_view secret, std::string_view bytes) {
  unsigned char out[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()), octets(bytes), bytes.size(),
       out, &size);
  return {reinterpret_cast<const char*>(out), size};
}

inline std::string hmac_token(std::string_view secret, std::string_view header,
                              std::string_view claims) {
  const std::string text = unsigned_token(header, claims);
  return text + "." + url64(sign_hmac(secret, text));
}

class SigningKey {
 public:
  static SigningKey rsa(unsigned bits) {
    return SigningKey(EVP_PKEY_Q_keygen(nullptr, nullptr, "RSA", std::size_t{bits}));
  }
  static SigningKey ec(const char* curve) {
    return SigningKey(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", curve));
  }
  static SigningKey ed25519() { return SigningKey(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519")); }

  [[nodiscard]] std::string public_pem() const {
    const std::unique_ptr<BIO, decltype(&BIO_free)> out(BIO_new(BIO_s_mem()), &BIO_free);
    PEM_write_bio_PUBKEY(out.get(), key_.get());
    return content(out.get());
  }
  [[nodiscard]] std::string private_pem() const {
    const std::unique_ptr<BIO, decltype(&BIO_free)> out(BIO_new(BIO_s_mem()), &BIO_free);
    PEM_write_bio_PrivateKey(out.get(), key_.get(), nullptr, nullptr, 0, nullptr, nullptr);
    return content(out.get());
  }

  // As OpenSSL writes it: DER for elliptic curves.
  [[nodiscard]] std::string sign(std::string_view bytes) const {
    const bool hashes = EVP_PKEY_get_base_id(key_.get()) != EVP_PKEY_ED25519;
    const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                          &EVP_MD_CTX_free);
    EVP_DigestSignInit(context.get(), nullptr, hashes ? EVP_sha256() : nullptr, nullptr,
                       key_.get());
    std::size_t size = 0;
    EVP_DigestSign(context.get(), nullptr, &size, octets(bytes), bytes.size());
    std::string out(size, '\0');
    EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(out.data()), &size,
                   octets(bytes), bytes.size());
    out.resize(size);
    return out;
  }
  // As a token has it.
  [[nodiscard]] std::string signature(std::string_view bytes) const {
    std::string out = sign(bytes);
    return EVP_PKEY_get_base_id(key_.get()) == EVP_PKEY_EC ? raw_of(out) : out;
  }
  [[nodiscard]] std::string token(std::string_view header, std::string_view claims) const {
    const std::string text = unsigned_token(header, claims);
    return text + "." + url64(signature(text));
  }

 private:
  explicit SigningKey(EVP_PKEY* key) : key_(key, &EVP_PKEY_free) {}

  static std::string content(BIO* bio) {
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio, &data);
    return {data, static_cast<std::size_t>(size)};
  }
  static std::string raw_of(std::string_view der) {
    const unsigned char* at = octets(der);
    const std::unique_ptr<ECDSA_SIG, decltype(&ECDSA_SIG_free)> pair(
        d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(der.size())), &ECDSA_SIG_free);
    std::string out(64, '\0');
    auto* into = reinterpret_cast<unsigned char*>(out.data());
    BN_bn2binpad(ECDSA_SIG_get0_r(pair.get()), into, 32);
    BN_bn2binpad(ECDSA_SIG_get0_s(pair.get()), into + 32, 32);
    return out;
  }

  std::shared_ptr<EVP_PKEY> key_;
};

}  // namespace hapax::auth
