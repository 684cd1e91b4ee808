#include "workflows/secrets_vault.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>
#include <variant>

#include "base/format.h"
#include "base/tenant_frame.h"
#include "base/words.h"
#include "digest/base64.h"
#include "digest/seal.h"

namespace hapax::workflows {

namespace {

// The form of a sealed value, which is followed by the nonce.
constexpr char kSealForm = '1';
// Somebody else changes the list of the same tenant at the same time.
constexpr int kTriesMax = 20;

// Names of tenants have no slash, so no two places are one.
std::string list_register(std::string_view tenant) {
  return base::StoreName{base::kOwnTenant, base::format("secrets/{}", tenant)}.text();
}
std::string value_register(std::string_view tenant, std::string_view name) {
  return base::StoreName{base::kOwnTenant, base::format("secrets/{}/{}", tenant, name)}.text();
}

// What a value is sealed for.
std::string place_of(std::string_view tenant, std::string_view name) {
  return base::format("hapax-secret-1/{}/{}", tenant, name);
}

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

// "NAME 1700000000000" on a line each.
std::string text_of_list(const std::vector<SecretName>& names) {
  std::string text;
  for (const SecretName& one : names) {
    base::append_format(text, "{} {}\n", one.name, to_ms(one.changed));
  }
  return text;
}

std::vector<SecretName> names_in(std::string_view text) {
  std::vector<SecretName> names;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos) continue;
    std::int64_t ms = 0;
    std::from_chars(line.data() + space + 1, line.data() + line.size(), ms);
    names.push_back({std::string(line.substr(0, space)), time_from_ms(ms)});
  }
  return names;
}

Error no_keys() {
  return Error{Errc::kPreconditionFailed,
               "this server keeps no secrets: server.secrets_key names no key; make one with "
               "'openssl rand -base64 32' and give it as ${file:PATH} or ${env:NAME}"};
}

Status check_value(std::string_view value) {
  if (value.empty()) return Error{Errc::kInvalidArgument, "value: is empty"};
  if (value.size() > SecretVault::kValueBytesMax) {
    return Error{Errc::kLimitExceeded, base::format("value: has {} bytes; the most is {}",
                                                    value.size(), SecretVault::kValueBytesMax)};
  }
  // Whatever it is used for must be able to carry it: a header field can carry no more.
  const auto printable = [](char c) { return c >= ' ' && c <= '~'; };
  if (!std::all_of(value.begin(), value.end(), printable)) {
    return Error{Errc::kInvalidArgument,
                 "value: holds a byte that is not printable ASCII, such as a line break"};
  }
  return Ok{};
}

}  // namespace

Result<SecretKeys> SecretKeys::parse(std::string_view text) {
  std::vector<std::string> keys;
  for (std::size_t at = 0; at < text.size();) {
    if (is_space(text[at])) {
      ++at;
      continue;
    }
    const auto begin = text.begin() + static_cast<std::ptrdiff_t>(at);
    const auto size = static_cast<std::size_t>(std::find_if(begin, text.end(), is_space) - begin);
    auto key = digest::decode_base64(text.substr(at, size));
    if (!key || key->size() != digest::kSealKeyBytes) {
      return Error{Errc::kInvalidArgument,
                   base::format("key {} is not 32 bytes in base64; make one with 'openssl rand "
                                "-base64 32'",
                                keys.size() + 1)};
    }
    keys.push_back(*std::move(key));
    at += size;
  }
  if (keys.empty()) {
    return Error{Errc::kInvalidArgument,
                 "there is no key; make one with 'openssl rand -base64 32'"};
  }
  return SecretKeys(std::move(keys));
}

std::string SecretKeys::sealed(std::string_view place, std::string_view value,
                               ports::Entropy& entropy) const {
  std::array<std::byte, digest::kSealNonceBytes> drawn{};
  entropy.fill(drawn);
  const std::string_view nonce(reinterpret_cast<const char*>(drawn.data()), drawn.size());
  return base::format("{}{}{}", kSealForm, nonce, digest::seal(keys_.front(), nonce, place, value));
}

std::optional<std::string> SecretKeys::unsealed(std::string_view place,
                                                std::string_view sealed) const {
  if (sealed.size() <= digest::kSealNonceBytes || sealed.front() != kSealForm) return std::nullopt;
  const std::string_view nonce = sealed.substr(1, digest::kSealNonceBytes);
  const std::string_view rest = sealed.substr(1 + digest::kSealNonceBytes);
  for (const std::string& key : keys_) {
    if (auto value = digest::unseal(key, nonce, place, rest)) return value;
  }
  return std::nullopt;
}

bool SecretList::has(std::string_view name) const {
  return std::any_of(names.begin(), names.end(),
                     [&](const SecretName& one) { return one.name == name; });
}

Status check_secret_name(std::string_view name) {
  const auto fits = [](char c) {
    return (base::to_lower(c) >= 'a' && base::to_lower(c) <= 'z') || c == '_' ||
           (c >= '0' && c <= '9');
  };
  const bool good = !name.empty() && name.size() <= SecretVault::kNameBytesMax &&
                    std::all_of(name.begin(), name.end(), fits);
  if (good) return Ok{};
  return Error{Errc::kInvalidArgument,
               base::format("a secret's name is 1 to {} letters, digits and '_'",
                            SecretVault::kNameBytesMax)};
}

Error no_such_secret(std::string_view name) {
  return Error{
      Errc::kNotFound,
      base::format("secret {} is not stored; store it with 'hapax secrets set {}'", name, name)};
}

Result<SecretList> SecretVault::list(std::string_view tenant) const {
  HAPAX_TRY(const auto found, store_.find_register(list_register(tenant)));
  if (!found) return SecretList{};
  return SecretList{.version = found->version, .names = names_in(found->value)};
}

// The value and the list change together: whoever finds the name finds a value, and whoever watches
// the list sees every change.
Result<bool> SecretVault::commit(std::string_view tenant, const SecretList& list,
                                 const Op& change) {
  const std::string name = list_register(tenant);
  const std::string text = text_of_list(list.names);
  const Op ops[] = {
      Set{.name = name, .value = text, .mode = SetMode::kVersion, .expected = list.version},
      change};
  HAPAX_TRY(const Answer answer, store_.commit({ops}));
  for (const Verdict& verdict : answer.verdicts) {
    if (std::holds_alternative<Superseded>(verdict)) return false;
    if (const auto* refused = std::get_if<Refused>(&verdict)) return refused->error;
  }
  return answer.committed;
}

Result<SecretName> SecretVault::put(std::string_view tenant, std::string_view name,
                                    std::string_view value) {
  HAPAX_CHECK(check_secret_name(name));
  HAPAX_CHECK(check_value(value));
  if (!keys_) return no_keys();
  const std::string place = value_register(tenant, name);
  const std::string sealed = keys_->sealed(place_of(tenant, name), value, entropy_);
  const Op change = Set{.name = place, .value = sealed, .mode = SetMode::kAlways};
  for (int tries = 0; tries < kTriesMax; ++tries) {
    HAPAX_TRY(SecretList list, this->list(tenant));
    std::erase_if(list.names, [&](const SecretName& one) { return one.name == name; });
    if (list.names.size() >= kSecretsMax) {
      return Error{Errc::kLimitExceeded,
                   base::format("there are {} secrets, which is the most of a tenant; remove one",
                                kSecretsMax)};
    }
    const SecretName made{std::string(name), time_from_ms(clock_.wall_ms())};
    list.names.push_back(made);
    std::sort(list.names.begin(), list.names.end(),
              [](const SecretName& a, const SecretName& b) { return a.name < b.name; });
    HAPAX_TRY(const bool done, commit(tenant, list, change));
    if (done) return made;
  }
  return Error{Errc::kUnavailable, "others change the secrets at the same time; try again"};
}

Status SecretVault::remove(std::string_view tenant, std::string_view name) {
  HAPAX_CHECK(check_secret_name(name));
  const std::string place = value_register(tenant, name);
  const Op change = Unset{.name = place};
  for (int tries = 0; tries < kTriesMax; ++tries) {
    HAPAX_TRY(SecretList list, this->list(tenant));
    if (!list.has(name)) return no_such_secret(name);
    std::erase_if(list.names, [&](const SecretName& one) { return one.name == name; });
    HAPAX_TRY(const bool done, commit(tenant, list, change));
    if (done) return Ok{};
  }
  return Error{Errc::kUnavailable, "others change the secrets at the same time; try again"};
}

Result<std::string> SecretVault::value_of(std::string_view tenant, std::string_view name) const {
  HAPAX_TRY(const auto found, store_.find_register(value_register(tenant, name)));
  if (!found) return no_such_secret(name);
  if (!keys_) {
    return Error{Errc::kPreconditionFailed,
                 base::format("secret {} cannot be read: server.secrets_key names no key", name)};
  }
  auto value = keys_->unsealed(place_of(tenant, name), found->value);
  if (!value) {
    return Error{Errc::kPreconditionFailed,
                 base::format("secret {} cannot be read: it was sealed under another key than "
                              "those of server.secrets_key; add that key, or store the secret "
                              "again",
                              name)};
  }
  return *std::move(value);
}

}  // namespace hapax::workflows
