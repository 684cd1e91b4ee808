// API tokens: random text that is shown once and stored as a hash. The server's file of tokens has
// one JSON object per line; empty lines and lines that begin with '#' are for people.
//
//   hx_<16 hex digits: id>_<43 base64url: secret of 32 bytes><6 base64url: CRC-32C of all before>
//
// The checksum is no protection: it tells a typing error from a token that was revoked.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/result.h>
#include <hapax/time.h>

#include "auth/identity.h"
#include "auth/refusal.h"
#include "ports/entropy.h"

namespace hapax::auth {

inline constexpr std::string_view kTokenPrefix = "hx_";
inline constexpr std::size_t kTokensMax = 100'000;  // lines of one file

struct ApiToken {
  std::string id;
  std::string sha256;  // of the secret, raw; a hash that is slow on purpose protects weak secrets,
                       // and these have 256 random bits
  Identity identity;
  Time created;
  std::optional<Time> expires;
  std::optional<Time> revoked;
  std::string note;
};

struct NewToken {
  std::string tenant;
  Rights rights;
  std::string subject;  // empty: the tenant's name
  Time created;
  std::optional<Time> expires;
  std::string note;
};

struct MadeToken {
  std::string text;  // to be shown once; from here on nobody can tell it again
  ApiToken token;
};

[[nodiscard]] Result<MadeToken> make_token(const NewToken& wanted, ports::Entropy& entropy);

// --- the file

[[nodiscard]] std::string line_of(const ApiToken& token);  // without newline
// kInvalidArgument with the number of the line.
[[nodiscard]] Result<std::vector<ApiToken>> parse_tokens(std::string_view file);
// The file with one line more.
[[nodiscard]] Result<std::string> with_token(std::string_view file, const ApiToken& token);
// The file with that token marked as revoked, all other lines as they were. kNotFound: none has
// this id. A second time changes nothing.
[[nodiscard]] Result<std::string> with_revoked(std::string_view file, std::string_view id,
                                               Time when);

// --- at the door

class Tokens {
 public:
  Tokens() = default;
  explicit Tokens(std::vector<ApiToken> tokens);
  [[nodiscard]] Either<Verified> verify(std::string_view text, Time now) const;
  [[nodiscard]] std::size_t size() const { return by_id_.size(); }

 private:
  std::map<std::string, ApiToken, std::less<>> by_id_;
};

}  // namespace hapax::auth
