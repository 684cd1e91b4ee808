// The secrets of tenants, for the routes that keep them.
#pragma once

#include <string>
#include <string_view>

#include <hapax/result.h>
#include <hapax/time.h>

namespace hapax::rest {

// Waits for the store. No answer holds a value.
class SecretDirectory {
 public:
  SecretDirectory() = default;
  SecretDirectory(const SecretDirectory&) = delete;
  SecretDirectory& operator=(const SecretDirectory&) = delete;
  virtual ~SecretDirectory() = default;

  // {"secrets":[{"name":…,"changed_ms":…}]}
  [[nodiscard]] virtual Result<std::string> list(std::string_view tenant) = 0;
  // {"name":…,"changed_ms":…}. kPreconditionFailed: this server keeps no secrets.
  [[nodiscard]] virtual Result<std::string> put(std::string_view tenant, std::string_view name,
                                                std::string_view value) = 0;
  // kNotFound: there is no such secret.
  [[nodiscard]] virtual Status remove(std::string_view tenant, std::string_view name) = 0;
};

}  // namespace hapax::rest
