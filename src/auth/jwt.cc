#include "auth/jwt.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "auth/words.h"
#include "base/format.h"
#include "base/words.h"
#include "digest/base64.h"
#include "wire/strict_json.h"

namespace hapax::auth {

namespace {

using wire::JsonValue;

constexpr std::int64_t kSecondsMax = 253'402'300'799;  // the end of the year 9999
constexpr std::size_t kKeyIdMax = 256;

Refusal malformed(std::string reason) { return {CredentialFault::kForm, std::move(reason)}; }
Refusal unusable(std::string reason) { return {CredentialFault::kClaims, std::move(reason)}; }

// What others wrote, shown in a log.
std::string quoted(std::string_view text) {
  return is_subject(text) ? "'" + std::string(text) + "'" : "(unprintable or too long)";
}

// --- form

// Padded, or with bits beyond the last byte, is another text for the same bytes: refused.
std::optional<std::string> decode_part(std::string_view part) {
  if (part.find('=') != std::string_view::npos) return std::nullopt;
  return digest::decode_base64(part, digest::Base64::kUrl);
}

std::vector<std::string_view> split(std::string_view text, char at, std::size_t parts_max) {
  std::vector<std::string_view> parts;
  while (parts.size() < parts_max) {
    const std::size_t found = text.find(at);
    parts.push_back(text.substr(0, found));
    if (found == std::string_view::npos) break;
    text.remove_prefix(found + 1);
  }
  return parts;
}

// The text of a header's field; an empty one is treated as missing. Nothing: it is no text.
std::optional<std::string> header_text(const JsonValue& header, std::string_view name) {
  const JsonValue* value = header.find(name);
  if (value == nullptr) return "";
  const auto* text = value->get<std::string>();
  return text == nullptr ? std::nullopt : std::optional(*text);
}

// `jwk`, `jku`, `x5u`, `x5c` and all other fields are never looked at: a key from the token itself
// would let anybody sign.
std::optional<Refusal> read_header(std::string_view bytes, Jwt& jwt) {
  const auto header = wire::read_strict_json(bytes);
  if (!header) return malformed("the header of the token: " + header.error().detail);
  if (header->get<JsonValue::Object>() == nullptr) return malformed("the header is no object");
  // What we do not understand must be refused if it is critical, and we understand nothing there.
  if (header->find("crit") != nullptr) return malformed("the header has 'crit'");
  if (header->find("zip") != nullptr) return malformed("the header has 'zip'");
  const auto algorithm = header_text(*header, "alg");
  const auto key_id = header_text(*header, "kid");
  const auto type = header_text(*header, "typ");
  if (!algorithm || !key_id || !type) return malformed("'alg', 'kid' or 'typ' is no text");
  if (algorithm->empty()) return malformed("the header has no 'alg'");
  if (key_id->size() > kKeyIdMax) return malformed("'kid' is too long");
  jwt.algorithm = *algorithm;
  jwt.key_id = *key_id;
  jwt.names_key = header->find("kid") != nullptr;
  jwt.type = *type;
  return std::nullopt;
}

// --- claims

struct Seconds {
  std::optional<Refusal> refusal;
  std::optional<double> value;
};

// A number of seconds since 1970, perhaps with a fraction. Negative or absurd ones are refused, so
// that no sum with them can overflow.
Seconds read_seconds(const JsonValue& claims, std::string_view name) {
  const JsonValue* claim = claims.find(name);
  if (claim == nullptr) return {};
  const auto wrong = [&] {
    return Seconds{unusable("'" + std::string(name) + "' is no number of seconds since 1970"), {}};
  };
  double seconds = -1;
  if (const auto* whole = claim->get<std::int64_t>()) seconds = static_cast<double>(*whole);
  if (const auto* broken = claim->get<double>()) seconds = *broken;
  if (!(seconds >= 0 && seconds <= static_cast<double>(kSecondsMax))) return wrong();
  return {std::nullopt, seconds};
}

// Rounded so that a fraction never makes a token good for longer.
Time at(double seconds, double (*round)(double)) {
  return time_from_ms(static_cast<std::int64_t>(round(seconds * 1000)));
}

std::optional<Refusal> check_times(const JsonValue& claims, const VerifierSettings& rules, Time now,
                                   Verified& verified) {
  const Seconds expires = read_seconds(claims, "exp");
  const Seconds not_before = read_seconds(claims, "nbf");
  const Seconds issued = read_seconds(claims, "iat");
  for (const Seconds* one : {&expires, &not_before, &issued}) {
    if (one->refusal) return one->refusal;
  }
  if (!expires.value) return unusable("'exp' is missing");
  verified.until = at(*expires.value, std::floor) + rules.leeway;
  if (now >= verified.until) return Refusal{CredentialFault::kExpired, "'exp' is over"};
  for (const Seconds* one : {&not_before, &issued}) {
    if (one->value && now + rules.leeway < at(*one->value, std::ceil)) {
      const char* name = one == &issued ? "iat" : "nbf";
      return Refusal{CredentialFault::kEarly, "'" + std::string(name) + "' is in the future"};
    }
  }
  return std::nullopt;
}

bool is_text(const JsonValue* claim, std::string_view wanted) {
  const auto* text = claim == nullptr ? nullptr : claim->get<std::string>();
  return text != nullptr && *text == wanted;
}

bool names_audience(const JsonValue* claim, std::string_view wanted) {
  const auto* list = claim == nullptr ? nullptr : claim->get<JsonValue::Array>();
  if (list == nullptr) return is_text(claim, wanted);
  return std::any_of(list->begin(), list->end(),
                     [&](const JsonValue& one) { return is_text(&one, wanted); });
}

std::optional<Refusal> check_place(const JsonValue& claims, const VerifierSettings& rules) {
  if (!rules.issuer.empty() && !is_text(claims.find("iss"), rules.issuer)) {
    return Refusal{CredentialFault::kElsewhere, "'iss' is not " + quoted(rules.issuer)};
  }
  if (!rules.audience.empty() && !names_audience(claims.find("aud"), rules.audience)) {
    return Refusal{CredentialFault::kElsewhere, "'aud' is not " + quoted(rules.audience)};
  }
  return std::nullopt;
}

std::optional<Refusal> read_who(const JsonValue& claims, const VerifierSettings& rules,
                                Identity& identity) {
  const JsonValue* tenant = claims.find(rules.tenant_claim);
  const auto* name = tenant == nullptr ? nullptr : tenant->get<std::string>();
  if (name == nullptr || !is_tenant(*name)) {
    return Refusal{CredentialFault::kNoTenant,
                   "the claim " + quoted(rules.tenant_claim) +
                       (tenant == nullptr ? " is missing" : " names no tenant")};
  }
  identity.tenant = *name;
  identity.subject = *name;  // of a token that is nobody's in particular
  if (const JsonValue* subject = claims.find("sub")) {
    const auto* text = subject->get<std::string>();
    if (text == nullptr || !is_subject(*text)) return unusable("'sub' is no printable text");
    identity.subject = *text;
  }
  return std::nullopt;
}

// Roles of other services may stand beside ours.
void add_role(Rights& rights, std::string_view word) {
  if (const auto role = role_of(word)) rights.add(*role);
}

// `scope` counts only where no roles are named: two lists would leave open which of them limits.
std::optional<Refusal> read_roles(const JsonValue& claims, const VerifierSettings& rules,
                                  Rights& rights) {
  const JsonValue* roles = claims.find(rules.roles_claim);
  const JsonValue* scope = claims.find("scope");
  if (roles != nullptr) {
    const auto* list = roles->get<JsonValue::Array>();
    if (list == nullptr) return unusable(quoted(rules.roles_claim) + " is no array");
    for (const JsonValue& one : *list) {
      const auto* word = one.get<std::string>();
      if (word == nullptr) return unusable(quoted(rules.roles_claim) + " holds what is no text");
      add_role(rights, *word);
    }
  } else if (scope != nullptr) {
    const auto* words = scope->get<std::string>();
    if (words == nullptr) return unusable("'scope' is no text");
    for (const std::string_view word : split(*words, ' ', words->size() + 1)) {
      add_role(rights, word);
    }
  }
  if (!words_of(rights, " ").empty()) return std::nullopt;
  return Refusal{CredentialFault::kNoRole,
                 "neither " + quoted(rules.roles_claim) + " nor 'scope' has a role of this server"};
}

// --- header against the server's keys

// "at+jwt" and "application/at+jwt" are the same type (RFC 7515 §4.1.9).
bool same_type(std::string_view type, std::string_view wanted) {
  constexpr std::string_view kPrefix = "application/";
  const auto bare = [&](std::string_view text) {
    return text.size() > kPrefix.size() && base::same_word(text.substr(0, kPrefix.size()), kPrefix)
               ? text.substr(kPrefix.size())
               : text;
  };
  return base::same_word(bare(type), bare(wanted));
}

// A2: A key is used with its own algorithm only, and a token chooses among the server's keys only.
bool may_check(const Key& key, Algorithm algorithm, const Jwt& jwt) {
  if (key.algorithm() != algorithm) return false;
  return !jwt.names_key || key.id().empty() || key.id() == jwt.key_id;
}

std::optional<Refusal> check_signature(const Jwt& jwt, const std::vector<Key>& keys) {
  const auto algorithm = algorithm_of(jwt.algorithm);
  if (!algorithm) {
    return Refusal{CredentialFault::kInvalid,
                   "the algorithm " + quoted(jwt.algorithm) + " is not accepted"};
  }
  bool tried = false;
  for (const Key& key : keys) {
    if (!may_check(key, *algorithm, jwt)) continue;
    tried = true;
    if (key.verify(jwt.signed_bytes, jwt.signature)) return std::nullopt;
  }
  if (tried) return Refusal{CredentialFault::kInvalid, "the signature is wrong"};
  const std::string named = jwt.names_key ? " with the id " + quoted(jwt.key_id) : "";
  return Refusal{CredentialFault::kInvalid, "there is no key for " + jwt.algorithm + named};
}

}  // namespace

Either<Jwt> parse_jwt(std::string_view text) {
  if (text.size() > kJwtMax) {
    return malformed(
        base::format("a token of {} bytes; at most {} are read", text.size(), kJwtMax));
  }
  const auto parts = split(text, '.', 6);
  if (parts.size() == 5) return malformed("an encrypted token; only signed ones are accepted");
  if (parts.size() != 3) return malformed("not three parts with dots between them");
  const auto header = decode_part(parts[0]);
  auto payload = decode_part(parts[1]);
  auto signature = decode_part(parts[2]);
  if (!header || !payload || !signature) {
    return malformed("a part of the token is not base64url without padding");
  }
  if (signature->empty()) return malformed("the token is not signed");
  Jwt jwt;
  if (auto refusal = read_header(*header, jwt)) return *std::move(refusal);
  jwt.signed_bytes = text.substr(0, parts[0].size() + 1 + parts[1].size());
  jwt.payload = *std::move(payload);
  jwt.signature = *std::move(signature);
  return jwt;
}

Either<Verified> read_claims(std::string_view payload, const VerifierSettings& rules, Time now) {
  const auto claims = wire::read_strict_json(payload);
  if (!claims) return unusable("the claims of the token: " + claims.error().detail);
  if (claims->get<JsonValue::Object>() == nullptr) return unusable("the claims are no object");
  Verified verified;
  if (auto refusal = check_times(*claims, rules, now, verified)) return *std::move(refusal);
  if (auto refusal = check_place(*claims, rules)) return *std::move(refusal);
  if (auto refusal = read_who(*claims, rules, verified.identity)) return *std::move(refusal);
  if (auto refusal = read_roles(*claims, rules, verified.identity.rights)) {
    return *std::move(refusal);
  }
  return verified;
}

Either<Verified> verify_jwt(std::string_view text, const std::vector<Key>& keys,
                            const VerifierSettings& rules, Time now) {
  const auto parsed = parse_jwt(text);
  if (const auto* refusal = std::get_if<Refusal>(&parsed)) return *refusal;
  const Jwt& jwt = std::get<Jwt>(parsed);
  if (auto refusal = check_signature(jwt, keys)) return *std::move(refusal);
  if (!rules.type.empty() && !same_type(jwt.type, rules.type)) {
    return Refusal{CredentialFault::kElsewhere, "'typ' is not " + quoted(rules.type)};
  }
  return read_claims(jwt.payload, rules, now);
}

}  // namespace hapax::auth
