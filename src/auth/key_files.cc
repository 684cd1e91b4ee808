#include "auth/key_files.h"

#include <algorithm>
#include <memory>

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>

#include "auth/octets.h"
#include "auth/words.h"
#include "base/format.h"
#include "digest/base64.h"
#include "wire/strict_json.h"

namespace hapax::auth {

namespace {

using wire::JsonValue;

constexpr std::size_t kCoordinate = 32;  // bytes of x and y on P-256, and of an Ed25519 key
constexpr std::size_t kSetMax = 256;     // keys of one set, of all kinds

Error bad(const std::string& what) { return Error{Errc::kInvalidArgument, what}; }

Key::Public own(EVP_PKEY* key) {
  if (key == nullptr) {
    ERR_clear_error();
    return nullptr;
  }
  return {key, &EVP_PKEY_free};
}

// --- PEM

Result<Key> read_pem(std::string_view bytes) {
  if (bytes.find("PRIVATE KEY-----") != std::string_view::npos) {
    return bad(
        "a private key; the server needs the public one only "
        "(openssl pkey -in private.pem -pubout)");
  }
  if (bytes.find("BEGIN CERTIFICATE-----") != std::string_view::npos) {
    return bad("a certificate; take its public key (openssl x509 -in cert.pem -noout -pubkey)");
  }
  const std::unique_ptr<BIO, decltype(&BIO_free)> input(
      BIO_new_mem_buf(bytes.data(), static_cast<int>(bytes.size())), &BIO_free);
  Key::Public key = own(PEM_read_bio_PUBKEY(input.get(), nullptr, nullptr, nullptr));
  if (key == nullptr) return bad("no public key in PEM ('-----BEGIN PUBLIC KEY-----')");
  if (Key::Public second = own(PEM_read_bio_PUBKEY(input.get(), nullptr, nullptr, nullptr))) {
    return bad("two public keys in one PEM file; list each in a file of its own");
  }
  return Key::from_public(std::move(key));
}

// --- secret

bool is_text(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
}

// An editor ends text with a newline that nobody means; in random bytes it may be meant.
std::string_view without_newline(std::string_view bytes) {
  std::string_view line = bytes;
  if (line.ends_with('\n')) line.remove_suffix(1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return is_text(line) ? line : bytes;
}

// --- JWKS

std::string_view text_of(const JsonValue& key, std::string_view name) {
  const JsonValue* value = key.find(name);
  const auto* text = value == nullptr ? nullptr : value->get<std::string>();
  return text == nullptr ? std::string_view() : *text;
}

Result<std::string> decoded(const JsonValue& key, std::string_view name) {
  const std::string_view text = text_of(key, name);
  const auto bytes = text.find('=') == std::string_view::npos
                         ? digest::decode_base64(text, digest::Base64::kUrl)
                         : std::nullopt;
  if (!text.empty() && bytes) return *bytes;
  return bad("'" + std::string(name) + "' is missing or not base64url without padding");
}

Key::Public make_public(const char* kind, OSSL_PARAM_BLD* builder) {
  const std::unique_ptr<OSSL_PARAM, decltype(&OSSL_PARAM_free)> params(
      OSSL_PARAM_BLD_to_param(builder), &OSSL_PARAM_free);
  const std::unique_ptr<EVP_PKEY_CTX, decltype(&EVP_PKEY_CTX_free)> context(
      EVP_PKEY_CTX_new_from_name(nullptr, kind, nullptr), &EVP_PKEY_CTX_free);
  EVP_PKEY* key = nullptr;
  if (context == nullptr || params == nullptr || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_PUBLIC_KEY, params.get()) != 1) {
    return own(nullptr);
  }
  return own(key);
}

bool is_sound(EVP_PKEY* key) {
  const std::unique_ptr<EVP_PKEY_CTX, decltype(&EVP_PKEY_CTX_free)> context(
      EVP_PKEY_CTX_new_from_pkey(nullptr, key, nullptr), &EVP_PKEY_CTX_free);
  const bool sound = context != nullptr && EVP_PKEY_public_check(context.get()) == 1;
  if (!sound) ERR_clear_error();
  return sound;
}

using ParamBuilder = std::unique_ptr<OSSL_PARAM_BLD, decltype(&OSSL_PARAM_BLD_free)>;
using BigNumber = std::unique_ptr<BIGNUM, decltype(&BN_free)>;

BigNumber number_of(std::string_view bytes) {
  return {BN_bin2bn(octets(bytes), static_cast<int>(bytes.size()), nullptr), &BN_free};
}

Result<Key::Public> rsa_key(const JsonValue& key) {
  HAPAX_TRY(const std::string n, decoded(key, "n"));
  HAPAX_TRY(const std::string e, decoded(key, "e"));
  if (n.size() > static_cast<std::size_t>(kRsaBitsMax) / 8 + 1) return bad("'n' is too long");
  const BigNumber modulus = number_of(n);
  const BigNumber exponent = number_of(e);
  if (exponent == nullptr || BN_is_odd(exponent.get()) == 0 || BN_num_bits(exponent.get()) < 2 ||
      BN_num_bits(exponent.get()) > 64) {
    return bad("'e' is no exponent of an RSA key");
  }
  const ParamBuilder builder(OSSL_PARAM_BLD_new(), &OSSL_PARAM_BLD_free);
  OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, modulus.get());
  OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, exponent.get());
  return make_public("RSA", builder.get());
}

Result<Key::Public> p256_key(const JsonValue& key) {
  HAPAX_TRY(const std::string x, decoded(key, "x"));
  HAPAX_TRY(const std::string y, decoded(key, "y"));
  if (x.size() != kCoordinate || y.size() != kCoordinate) return bad("'x' or 'y' is not 32 bytes");
  const std::string point = "\x04" + x + y;  // uncompressed
  const ParamBuilder builder(OSSL_PARAM_BLD_new(), &OSSL_PARAM_BLD_free);
  OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0);
  OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(),
                                   point.size());
  return make_public("EC", builder.get());
}

Result<Key::Public> ed25519_key(const JsonValue& key) {
  HAPAX_TRY(const std::string x, decoded(key, "x"));
  if (x.size() != kCoordinate) return bad("'x' is not 32 bytes");
  return own(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, octets(x), x.size()));
}

Result<Key> public_key(Result<Key::Public> made) {
  HAPAX_TRY(Key::Public key, std::move(made));
  if (key == nullptr) return bad("its numbers make no key");
  HAPAX_TRY(Key checked, Key::from_public(key));
  // A point beside the curve would give signatures no meaning.
  if (checked.algorithm() != Algorithm::kEdDsa && !is_sound(key.get())) {
    return bad("its numbers make no sound key");
  }
  return checked;
}

// RFC 7517 §5: what is not for checking signatures in one of our ways is left out of a set.
std::optional<Algorithm> purpose_of(const JsonValue& key) {
  const std::string_view kind = text_of(key, "kty");
  const std::string_view curve = text_of(key, "crv");
  std::optional<Algorithm> algorithm;
  if (kind == "oct") algorithm = Algorithm::kHs256;
  if (kind == "RSA") algorithm = Algorithm::kRs256;
  if (kind == "EC" && curve == "P-256") algorithm = Algorithm::kEs256;
  if (kind == "OKP" && curve == "Ed25519") algorithm = Algorithm::kEdDsa;
  if (key.find("use") != nullptr && text_of(key, "use") != "sig") return std::nullopt;
  if (const JsonValue* acts = key.find("key_ops")) {
    const auto* list = acts->get<JsonValue::Array>();
    const auto verifies = [](const JsonValue& act) {
      const auto* word = act.get<std::string>();
      return word != nullptr && *word == "verify";
    };
    if (list == nullptr || std::none_of(list->begin(), list->end(), verifies)) return std::nullopt;
  }
  if (key.find("alg") != nullptr && algorithm_of(text_of(key, "alg")) != algorithm) {
    return std::nullopt;
  }
  return algorithm;
}

Result<Key> read_jwk(const JsonValue& jwk, Algorithm algorithm) {
  if (algorithm != Algorithm::kHs256 && jwk.find("d") != nullptr) {
    return bad("it holds a private key ('d'); the server needs the public part only");
  }
  switch (algorithm) {
    case Algorithm::kHs256: {
      HAPAX_TRY(std::string secret, decoded(jwk, "k"));
      return Key::secret(std::move(secret));
    }
    case Algorithm::kRs256:
      return public_key(rsa_key(jwk));
    case Algorithm::kEs256:
      return public_key(p256_key(jwk));
    case Algorithm::kEdDsa:
      return public_key(ed25519_key(jwk));
  }
  return bad("its algorithm is unknown");
}

Result<std::vector<Key>> read_jwks(std::string_view bytes, std::optional<Algorithm> wanted) {
  HAPAX_TRY(const JsonValue set, wire::read_strict_json(bytes));
  const JsonValue* list = set.find("keys");
  const auto* jwks = list == nullptr ? nullptr : list->get<JsonValue::Array>();
  if (jwks == nullptr) return bad("no key set: an object with the array 'keys' was expected");
  if (jwks->size() > kSetMax) return bad(base::format("more than {} keys", kSetMax));
  std::vector<Key> keys;
  for (std::size_t i = 0; i < jwks->size(); ++i) {
    const JsonValue& jwk = (*jwks)[i];
    const std::optional<Algorithm> purpose = purpose_of(jwk);
    if (!purpose || (wanted && purpose != wanted)) continue;
    auto key = read_jwk(jwk, *purpose);
    if (!key) return std::move(key).error().within(base::format("key {}", i + 1));
    key->name(std::string(text_of(jwk, "kid")));
    keys.push_back(*std::move(key));
  }
  if (keys.empty()) return bad("no key of this set is for checking signatures in an accepted way");
  // Without ids a set could not say which key a token means.
  const auto unnamed = [](const Key& key) { return key.id().empty(); };
  if (keys.size() > 1 && std::any_of(keys.begin(), keys.end(), unnamed)) {
    return bad("every key of a set with several needs a 'kid'");
  }
  return keys;
}

Result<Key> read_one(const KeySource& source, std::string_view bytes) {
  if (source.kind == KeyKind::kPem) return read_pem(bytes);
  return Key::secret(std::string(without_newline(bytes)));
}

}  // namespace

Result<std::vector<Key>> read_keys(const KeySource& source, std::string_view bytes) {
  if (!source.id.empty() && !is_subject(source.id)) return bad("its id has control characters");
  if (source.kind == KeyKind::kJwks) {
    if (!source.id.empty()) return bad("the ids of a key set are in the set; leave out the id");
    return read_jwks(bytes, source.algorithm);
  }
  HAPAX_TRY(Key key, read_one(source, bytes));
  if (source.algorithm && *source.algorithm != key.algorithm()) {
    return bad("it is a key for " + std::string(word_of(key.algorithm())) + ", not for " +
               std::string(word_of(*source.algorithm)));
  }
  key.name(source.id);
  return std::vector<Key>{std::move(key)};
}

}  // namespace hapax::auth
