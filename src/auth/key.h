// One key that signatures are checked with. It has one algorithm for all its life, so that no token
// can choose how its own signature is read.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <hapax/result.h>

struct evp_pkey_st;  // OpenSSL's EVP_PKEY

namespace hapax::auth {

enum class Algorithm : std::uint8_t { kHs256, kRs256, kEs256, kEdDsa };

// As in the header of a token: "RS256". Case matters.
[[nodiscard]] std::string_view word_of(Algorithm algorithm);
[[nodiscard]] std::optional<Algorithm> algorithm_of(std::string_view word);

inline constexpr std::size_t kSecretMin = 32;  // bytes of an HS256 secret: the size of its hash
inline constexpr int kRsaBitsMin = 2048;
inline constexpr int kRsaBitsMax = 8192;  // checking a signature costs the square

class Key {
 public:
  using Public = std::shared_ptr<evp_pkey_st>;

  static Result<Key> secret(std::string bytes);
  // The algorithm follows from the key: RSA of 2,048 bits or more, P-256, or Ed25519.
  static Result<Key> from_public(Public key);

  [[nodiscard]] Algorithm algorithm() const { return algorithm_; }
  // Empty: for tokens whatever key they name.
  [[nodiscard]] const std::string& id() const { return id_; }
  void name(std::string id) { id_ = std::move(id); }

  // Never says why not.
  [[nodiscard]] bool verify(std::string_view bytes, std::string_view signature) const;

 private:
  Key(Algorithm algorithm, Public key, std::string secret)
      : algorithm_(algorithm), public_(std::move(key)), secret_(std::move(secret)) {}

  Algorithm algorithm_;
  Public public_;  // all but HS256
  std::string secret_;
  std::string id_;
};

}  // namespace hapax::auth
