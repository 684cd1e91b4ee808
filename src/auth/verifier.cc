#include "auth/verifier.h"

#include <set>

#include "auth/jwt.h"
#include "auth/key_files.h"
#include "auth/refusal.h"
#include "base/format.h"
#include "base/mutex.h"

namespace hapax::auth {

namespace {

Status check_rules(const VerifierSettings& settings) {
  if (settings.leeway.count() < 0 || settings.leeway > kLeewayMax) {
    return Error{Errc::kInvalidArgument, base::format("the leeway is {} s; 0 to {} s are possible",
                                                      settings.leeway.count(), kLeewayMax.count())};
  }
  if (settings.tenant_claim.empty() || settings.roles_claim.empty()) {
    return Error{Errc::kInvalidArgument, "the claims of tenant and roles need names"};
  }
  return Ok{};
}

Result<std::vector<Key>> load_keys(const std::vector<KeySource>& sources, const ReadFile& read) {
  std::vector<Key> keys;
  std::set<std::string> ids;
  for (const KeySource& source : sources) {
    HAPAX_TRY(const std::string bytes, read(source.file));
    auto found = read_keys(source, bytes);
    if (!found) return std::move(found).error().within(source.file);
    for (Key& key : *found) {
      // Two keys of one id could be taken for each other.
      if (!key.id().empty() && !ids.insert(key.id()).second) {
        return Error{Errc::kInvalidArgument,
                     source.file + ": the key id '" + key.id() + "' is there twice"};
      }
      keys.push_back(std::move(key));
    }
  }
  if (keys.size() <= kKeysMax) return keys;
  return Error{Errc::kInvalidArgument,
               base::format("{} keys; at most {} are possible", keys.size(), kKeysMax)};
}

Result<Tokens> load_tokens(const std::string& file, const ReadFile& read) {
  if (file.empty()) return Tokens{};
  HAPAX_TRY(const std::string bytes, read(file));
  auto tokens = parse_tokens(bytes);
  if (!tokens) return std::move(tokens).error().within(file);
  return Tokens(*std::move(tokens));
}

Authentication outcome_of(Either<Verified> either) {
  if (auto* verified = std::get_if<Verified>(&either)) {
    return {std::move(verified->identity), verified->until, ""};
  }
  auto& refusal = std::get<Refusal>(either);
  return {told(refusal.fault), Time::max(), std::move(refusal.reason)};
}

}  // namespace

Result<std::shared_ptr<const Verifier>> Verifier::build(const VerifierSettings& settings,
                                                        const ReadFile& read) {
  HAPAX_CHECK(check_rules(settings));
  HAPAX_TRY(std::vector<Key> keys, load_keys(settings.keys, read));
  HAPAX_TRY(Tokens tokens, load_tokens(settings.tokens_file, read));
  return std::shared_ptr<const Verifier>(
      new Verifier(settings, std::move(keys), std::move(tokens)));
}

Authentication Verifier::authenticate(std::string_view credential, Time now) const {
  if (credential.starts_with(kTokenPrefix)) return outcome_of(tokens_.verify(credential, now));
  return outcome_of(verify_jwt(credential, keys_, settings_, now));
}

std::shared_ptr<const Verifier> CurrentVerifier::verifier() const {
  const base::MutexLock lock(mutex_);
  return verifier_;
}

Status CurrentVerifier::reload(const VerifierSettings& settings, const ReadFile& read) {
  HAPAX_TRY(std::shared_ptr<const Verifier> next, Verifier::build(settings, read));
  const base::MutexLock lock(mutex_);
  verifier_.swap(next);
  return Ok{};
}

}  // namespace hapax::auth
