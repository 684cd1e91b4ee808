// What a server accepts as a credential. A plain list: reading it from a file is somebody else's.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "auth/key.h"

namespace hapax::auth {

enum class KeyKind : std::uint8_t {
  kPem,     // one public key, "-----BEGIN PUBLIC KEY-----"
  kSecret,  // the bytes of an HS256 secret; of a text file without the newline at its end
  kJwks,    // a JSON Web Key Set (RFC 7517): any number of keys, each with its id
};

struct KeySource {
  std::string file;
  KeyKind kind = KeyKind::kPem;
  std::optional<Algorithm> algorithm;  // what the key must be for; from a set, others are left out
  std::string id;                      // `kid`; empty: for tokens whatever key they name
};

struct VerifierSettings {
  std::vector<KeySource> keys;
  std::string issuer;    // `iss` must be this, unless empty
  std::string audience;  // `aud` must be or hold this, unless empty
  std::string type;      // `typ` of the header must be this ("at+jwt"), unless empty
  std::chrono::seconds leeway{30};
  std::string tenant_claim = "tenant";
  std::string roles_claim = "roles";
  std::string tokens_file;  // API tokens; empty: none

  [[nodiscard]] bool empty() const { return keys.empty() && tokens_file.empty(); }
};

inline constexpr std::chrono::seconds kLeewayMax{300};
inline constexpr std::size_t kKeysMax = 64;  // a token without key id is tried with all that fit

}  // namespace hapax::auth
