// The secrets of tenants, as the doors know them.
#pragma once

#include <string>
#include <string_view>

#include "rest/secret_directory.h"
#include "workflows/secrets_vault.h"

namespace hapax::serve {

// The keys that a reference stands for; none: the reference is empty. kInvalidArgument,
// kPreconditionFailed: it is not there, or not a key; no error repeats a byte of it.
[[nodiscard]] Result<std::optional<workflows::SecretKeys>> secret_keys_of(
    const std::string& reference);

class StoredSecrets final : public rest::SecretDirectory {
 public:
  // The vault outlives it.
  explicit StoredSecrets(workflows::SecretVault& vault) : vault_(vault) {}

  [[nodiscard]] Result<std::string> list(std::string_view tenant) override;
  [[nodiscard]] Result<std::string> put(std::string_view tenant, std::string_view name,
                                        std::string_view value) override;
  [[nodiscard]] Status remove(std::string_view tenant, std::string_view name) override;

 private:
  workflows::SecretVault& vault_;
};

}  // namespace hapax::serve
