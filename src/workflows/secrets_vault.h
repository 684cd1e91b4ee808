// Secrets that tenants gave the server to keep: written by them, read by the endpoints of their
// workflows and by nobody else.
//
// U1: no value is in clear text in the journal, in a copy of the store, or in an answer. A value is
// sealed for its tenant and its name, so that one that somebody moved cannot be read in its new
// place.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/result.h>
#include <hapax/store.h>

#include "ports/clock.h"
#include "ports/entropy.h"

namespace hapax::workflows {

// The operator's keys, each 32 bytes. The first one seals; all of them unseal, so that a key can be
// replaced while values are still sealed under the one before.
class SecretKeys {
 public:
  // Keys as base64, with white space between them. kInvalidArgument; no error repeats a byte.
  [[nodiscard]] static Result<SecretKeys> parse(std::string_view text);

  [[nodiscard]] std::string sealed(std::string_view place, std::string_view value,
                                   ports::Entropy& entropy) const;
  // Nothing: it was sealed under another key, or is damaged.
  [[nodiscard]] std::optional<std::string> unsealed(std::string_view place,
                                                    std::string_view sealed) const;

 private:
  explicit SecretKeys(std::vector<std::string> keys) : keys_(std::move(keys)) {}
  std::vector<std::string> keys_;  // raw bytes; at least one
};

struct SecretName {
  std::string name;
  Time changed{};
  friend bool operator==(const SecretName&, const SecretName&) = default;
};
// Every change of a secret of the tenant changes the version.
struct SecretList {
  Version version{};
  std::vector<SecretName> names{};  // in their order
  [[nodiscard]] bool has(std::string_view name) const;
};

struct VaultPorts {
  Store& store;  // the whole one: no tenant can reach the place of secrets
  ports::Clock& clock;
  ports::Entropy& entropy;
};

// From any thread; waits for the store.
class SecretVault {
 public:
  static constexpr std::size_t kNameBytesMax = 100;
  static constexpr std::size_t kValueBytesMax = 4 * 1024;
  static constexpr std::size_t kSecretsMax = 256;  // of a tenant

  // Without keys nothing is kept, and the names of what was kept before can be read.
  SecretVault(const VaultPorts& ports, std::optional<SecretKeys> keys)
      : store_(ports.store), clock_(ports.clock), entropy_(ports.entropy), keys_(std::move(keys)) {}

  // kPreconditionFailed: there are no keys; kInvalidArgument, kLimitExceeded: the name, the value.
  [[nodiscard]] Result<SecretName> put(std::string_view tenant, std::string_view name,
                                       std::string_view value);
  // kNotFound: there is no such secret.
  [[nodiscard]] Status remove(std::string_view tenant, std::string_view name);
  [[nodiscard]] Result<SecretList> list(std::string_view tenant) const;
  // kNotFound: there is none; kPreconditionFailed: it cannot be unsealed.
  [[nodiscard]] Result<std::string> value_of(std::string_view tenant, std::string_view name) const;

 private:
  // One change of one secret with the list of names. Nothing: the list was changed meanwhile.
  [[nodiscard]] Result<bool> commit(std::string_view tenant, const SecretList& list,
                                    const Op& change);

  Store& store_;
  ports::Clock& clock_;
  ports::Entropy& entropy_;
  const std::optional<SecretKeys> keys_;
};

// Letters, digits and '_', as ${secret:NAME} takes them.
[[nodiscard]] Status check_secret_name(std::string_view name);
[[nodiscard]] Error no_such_secret(std::string_view name);

}  // namespace hapax::workflows
