#include "auth/tokens.h"

#include <algorithm>
#include <array>
#include <set>
#include <span>

#include "auth/words.h"
#include "base/format.h"
#include "base/hex.h"
#include "base/words.h"
#include "digest/base64.h"
#include "digest/crc32c.h"
#include "digest/hash.h"
#include "digest/sign.h"
#include "wire/json_text.h"
#include "wire/nearest.h"
#include "wire/strict_json.h"

namespace hapax::auth {

namespace {

using digest::Base64;
using wire::JsonValue;

constexpr std::size_t kIdDigits = 16;
constexpr std::size_t kSecretBytes = 32;
constexpr std::size_t kSecretText = 43;
constexpr std::size_t kSumText = 6;
constexpr std::size_t kTokenText = 3 + kIdDigits + 1 + kSecretText + kSumText;

constexpr std::array<std::string_view, 9> kMembers = {
    "id", "sha256", "tenant", "roles", "subject", "created_ms", "expires_ms", "revoked_ms", "note"};

Error wrong(const std::string& what) { return Error{Errc::kInvalidArgument, what}; }

std::string draw(ports::Entropy& entropy, std::size_t size) {
  std::string bytes(size, '\0');
  entropy.fill(std::as_writable_bytes(std::span{bytes}));
  return bytes;
}

bool is_id(std::string_view text) {
  return text.size() == kIdDigits && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

std::string checksum(std::string_view text) {
  const std::uint32_t sum = digest::crc32c(text);
  std::string bytes;
  for (const unsigned shift : {24U, 16U, 8U, 0U}) bytes += static_cast<char>(sum >> shift);
  return digest::encode_base64(bytes, Base64::kUrl);
}

struct Parts {
  std::string_view id;
  std::string secret;
};

std::optional<Parts> take_apart(std::string_view text) {
  if (text.size() != kTokenText || !text.starts_with(kTokenPrefix)) return std::nullopt;
  const std::string_view body = text.substr(0, text.size() - kSumText);
  if (checksum(body) != text.substr(body.size())) return std::nullopt;
  const std::string_view id = body.substr(kTokenPrefix.size(), kIdDigits);
  const std::size_t secret_at = kTokenPrefix.size() + kIdDigits + 1;
  if (!is_id(id) || body[secret_at - 1] != '_') return std::nullopt;
  auto secret = digest::decode_base64(body.substr(secret_at), Base64::kUrl);
  if (!secret || secret->size() != kSecretBytes) return std::nullopt;
  return Parts{id, *std::move(secret)};
}

// --- one line

class Line {
 public:
  explicit Line(const JsonValue& object) : object_(object) {}

  [[nodiscard]] Result<std::string> text(std::string_view name) const {
    const JsonValue* value = object_.find(name);
    const auto* text = value == nullptr ? nullptr : value->get<std::string>();
    if (text == nullptr) return wrong("'" + std::string(name) + "' is missing or no text");
    return *text;
  }
  [[nodiscard]] Result<std::optional<Time>> time(std::string_view name) const {
    const JsonValue* value = object_.find(name);
    if (value == nullptr) return std::optional<Time>{};
    const auto* ms = value->get<std::int64_t>();
    if (ms == nullptr || *ms < 0) {
      return wrong("'" + std::string(name) + "' is no number of milliseconds since 1970");
    }
    return std::optional(time_from_ms(*ms));
  }
  [[nodiscard]] Result<Rights> roles() const {
    const JsonValue* value = object_.find("roles");
    const auto* list = value == nullptr ? nullptr : value->get<JsonValue::Array>();
    if (list == nullptr || list->empty()) return wrong("'roles' is missing, empty or no array");
    Rights rights;
    for (const JsonValue& one : *list) {
      const auto* word = one.get<std::string>();
      const auto role = word == nullptr ? std::nullopt : role_of(*word);
      if (!role) return wrong("'roles' has a word that is no role");
      rights.add(*role);
    }
    return rights;
  }
  // A misspelt "expires_ms" would be a token without end.
  [[nodiscard]] Status check_members() const {
    const auto* members = object_.get<JsonValue::Object>();
    if (members == nullptr) return wrong("not an object");
    for (const wire::JsonMember& member : *members) {
      if (std::find(kMembers.begin(), kMembers.end(), member.name) != kMembers.end()) continue;
      return wrong("'" + member.name + "' is unknown" + wire::suggestion(member.name, kMembers));
    }
    return Ok{};
  }

 private:
  const JsonValue& object_;
};

Status check_token(const ApiToken& token) {
  if (!is_id(token.id)) return wrong("'id' is not 16 digits 0-9, a-f");
  if (!is_tenant(token.identity.tenant)) {
    return wrong(
        "the tenant is not 1 to 64 letters, digits, '.', '_' or '-' after a letter or "
        "digit");
  }
  if (!is_subject(token.identity.subject)) {
    return wrong("the subject is not 1 to 256 bytes of printable text");
  }
  if (words_of(token.identity.rights, ",").empty()) return wrong("there is no role");
  if (!token.note.empty() && !is_subject(token.note)) {
    return wrong("the note is not up to 256 bytes of printable text");
  }
  return Ok{};
}

Result<ApiToken> parse_line(std::string_view text) {
  HAPAX_TRY(const JsonValue object, wire::read_strict_json(text));
  const Line line(object);
  HAPAX_CHECK(line.check_members());
  ApiToken token;
  HAPAX_TRY(token.id, line.text("id"));
  HAPAX_TRY(const std::string hash, line.text("sha256"));
  const auto raw = digest::decode_base64(hash, Base64::kUrl);
  if (!raw || raw->size() != kSecretBytes) return wrong("'sha256' is not 32 bytes in base64url");
  token.sha256 = *raw;
  HAPAX_TRY(token.identity.tenant, line.text("tenant"));
  HAPAX_TRY(token.identity.subject, line.text("subject"));
  HAPAX_TRY(token.identity.rights, line.roles());
  HAPAX_TRY(const std::optional<Time> created, line.time("created_ms"));
  if (!created) return wrong("'created_ms' is missing");
  token.created = *created;
  HAPAX_TRY(token.expires, line.time("expires_ms"));
  HAPAX_TRY(token.revoked, line.time("revoked_ms"));
  if (object.find("note") != nullptr) {
    HAPAX_TRY(token.note, line.text("note"));
  }
  HAPAX_CHECK(check_token(token));
  return token;
}

bool is_for_people(std::string_view line) {
  return line.starts_with('#') || line.find_first_not_of(" \t\r") == std::string_view::npos;
}

std::vector<std::string_view> lines_of(std::string_view file) {
  std::vector<std::string_view> lines;
  while (!file.empty()) {
    const std::size_t end = std::min(file.find('\n'), file.size());
    lines.push_back(file.substr(0, end));
    file.remove_prefix(std::min(end + 1, file.size()));
  }
  return lines;
}

}  // namespace

Result<MadeToken> make_token(const NewToken& wanted, ports::Entropy& entropy) {
  ApiToken token;
  token.id = base::hex(draw(entropy, kIdDigits / 2));
  const std::string secret = draw(entropy, kSecretBytes);
  token.sha256 = digest::sha256(secret);
  token.identity.tenant = wanted.tenant;
  token.identity.subject = wanted.subject.empty() ? wanted.tenant : wanted.subject;
  token.identity.rights = wanted.rights;
  token.created = wanted.created;
  token.expires = wanted.expires;
  token.note = wanted.note;
  HAPAX_CHECK(check_token(token));
  const std::string body =
      std::string(kTokenPrefix) + token.id + "_" + digest::encode_base64(secret, Base64::kUrl);
  return MadeToken{body + checksum(body), std::move(token)};
}

std::string line_of(const ApiToken& token) {
  wire::JsonObject out;
  out.add("id", token.id).add("sha256", digest::encode_base64(token.sha256, Base64::kUrl));
  out.add("tenant", token.identity.tenant);
  out.raw("roles", "[\"" + words_of(token.identity.rights, "\",\"") + "\"]");
  out.add("subject", token.identity.subject).add("created_ms", to_ms(token.created));
  if (token.expires) out.add("expires_ms", to_ms(*token.expires));
  if (token.revoked) out.add("revoked_ms", to_ms(*token.revoked));
  if (!token.note.empty()) out.add("note", token.note);
  return out.text();
}

Result<std::vector<ApiToken>> parse_tokens(std::string_view file) {
  std::vector<ApiToken> tokens;
  std::set<std::string> ids;
  std::size_t number = 0;
  for (const std::string_view line : lines_of(file)) {
    ++number;
    if (is_for_people(line)) continue;
    const std::string where = base::format("line {}", number);
    auto token = parse_line(line);
    if (!token) return std::move(token).error().within(where);
    if (!ids.insert(token->id).second) return wrong(where + ": the id is there twice");
    if (tokens.size() == kTokensMax) {
      return wrong(base::format("{}: more than {} tokens", where, kTokensMax));
    }
    tokens.push_back(*std::move(token));
  }
  return tokens;
}

Result<std::string> with_token(std::string_view file, const ApiToken& token) {
  HAPAX_TRY(const std::vector<ApiToken> tokens, parse_tokens(file));
  if (tokens.size() == kTokensMax) {
    return wrong(base::format("the file has {} tokens already; take revoked and expired lines out",
                              kTokensMax));
  }
  std::string out(file);
  if (!out.empty() && !out.ends_with('\n')) out += '\n';
  return out + line_of(token) + "\n";
}

Result<std::string> with_revoked(std::string_view file, std::string_view id, Time when) {
  HAPAX_TRY(const std::vector<ApiToken> tokens, parse_tokens(file));
  bool found = false;
  std::string out;
  auto token = tokens.begin();
  for (const std::string_view line : lines_of(file)) {
    std::string kept(line);
    if (!is_for_people(line)) {
      ApiToken one = *token++;
      if (one.id == id) {
        found = true;
        if (!one.revoked) {
          one.revoked = when;
          kept = line_of(one);
        }
      }
    }
    out += kept + "\n";
  }
  if (found) return out;
  return Error{Errc::kNotFound, "no token of the file has the id '" + std::string(id) + "'"};
}

Tokens::Tokens(std::vector<ApiToken> tokens) {
  for (ApiToken& token : tokens) {
    std::string id = token.id;
    by_id_.emplace(std::move(id), std::move(token));
  }
}

Either<Verified> Tokens::verify(std::string_view text, Time now) const {
  const auto parts = take_apart(text);
  if (!parts) {
    return Refusal{CredentialFault::kForm,
                   "an API token whose length or checksum is wrong: a typing error"};
  }
  // A3: An unknown id costs the same as a wrong secret: the hash is made and compared all the same.
  static const std::string kNobody(kSecretBytes, '\0');
  const auto found = by_id_.find(parts->id);
  const bool known = found != by_id_.end();
  const bool same = digest::equal_in_constant_time(digest::sha256(parts->secret),
                                                   known ? found->second.sha256 : kNobody);
  const std::string who = "the API token " + std::string(parts->id);
  if (!known) return Refusal{CredentialFault::kInvalid, who + " is unknown"};
  if (!same) return Refusal{CredentialFault::kInvalid, who + " came with a wrong secret"};
  const ApiToken& token = found->second;
  if (token.revoked) return Refusal{CredentialFault::kInvalid, who + " was revoked"};
  if (token.expires && now >= *token.expires)
    return Refusal{CredentialFault::kExpired, who + " is over"};
  return Verified{token.identity, token.expires.value_or(Time::max())};
}

}  // namespace hapax::auth
