// Everything about credentials that comes from outside or from a file: no input is accepted without
// a signature, the parts of a token that parses are written back as the same text, and claims that
// are accepted name a tenant.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "auth/jwt.h"
#include "auth/key_files.h"
#include "auth/verifier.h"
#include "auth/words.h"
#include "digest/base64.h"

namespace {

using namespace hapax::auth;

const hapax::Time kNow = hapax::time_from_ms(1'700'000'100'000);

void must(bool holds) {
  if (!holds) std::abort();
}

void try_claims(std::string_view payload) {
  const auto claims = read_claims(payload, VerifierSettings{}, kNow);
  if (const auto* verified = std::get_if<Verified>(&claims)) {
    must(is_tenant(verified->identity.tenant) && is_subject(verified->identity.subject));
    must(verified->until > kNow && !words_of(verified->identity.rights, " ").empty());
  }
}

void try_token(std::string_view text) {
  const auto parsed = parse_jwt(text);
  const auto* jwt = std::get_if<Jwt>(&parsed);
  if (jwt == nullptr) return;
  const auto encode = [](const std::string& bytes) {
    return hapax::digest::encode_base64(bytes, hapax::digest::Base64::kUrl);
  };
  must(text == std::string(jwt->signed_bytes) + "." + encode(jwt->signature));
  must(jwt->signed_bytes.ends_with("." + encode(jwt->payload)));
  try_claims(jwt->payload);
}

// A secret that no input knows.
const Verifier& verifier() {
  static const auto kVerifier = Verifier::build(
      {.keys = {{"key", KeyKind::kSecret, std::nullopt, ""}}, .tokens_file = ""},
      [](const std::string&) -> hapax::Result<std::string> { return std::string(64, '\x8f'); });
  return **kVerifier;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  must(!verifier().authenticate(bytes, kNow).identity);
  try_token(bytes);
  try_claims(bytes);
  for (const KeyKind kind : {KeyKind::kPem, KeyKind::kSecret, KeyKind::kJwks}) {
    const auto keys = read_keys({"file", kind, std::nullopt, ""}, bytes);
    if (!keys) continue;
    must(!keys->empty());
    for (const Key& key : *keys) must(!key.verify("bytes", "signature"));
  }
  if (const auto tokens = parse_tokens(bytes)) {
    for (const ApiToken& token : *tokens) must(parse_tokens(line_of(token)).ok());
  }
  return 0;
}
