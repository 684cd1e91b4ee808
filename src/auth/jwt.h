// JSON Web Tokens (RFC 7519, compact form, signed), read as strictly as RFC 8725 asks: the keys and
// their algorithms are those of the server, and nothing in a token can add to them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <hapax/time.h>

#include "auth/identity.h"
#include "auth/key.h"
#include "auth/refusal.h"
#include "auth/settings.h"

namespace hapax::auth {

inline constexpr std::size_t kJwtMax = 8192;  // bytes

// The form has been checked, the signature has not.
struct Jwt {
  std::string algorithm;          // as written
  std::string key_id;             // `kid`
  bool names_key = false;         // there is a `kid`
  std::string type;               // `typ`
  std::string_view signed_bytes;  // of the text
  std::string payload;            // decoded; not looked at before the signature holds
  std::string signature;
};

[[nodiscard]] Either<Jwt> parse_jwt(std::string_view text);

// What a signed payload says. `now` is wall time.
[[nodiscard]] Either<Verified> read_claims(std::string_view payload, const VerifierSettings& rules,
                                           Time now);

[[nodiscard]] Either<Verified> verify_jwt(std::string_view text, const std::vector<Key>& keys,
                                          const VerifierSettings& rules, Time now);

}  // namespace hapax::auth
