// The stored secrets of one tenant as its endpoints read them: at most a second old.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <hapax/result.h>

#include "base/mutex.h"
#include "ports/clock.h"
#include "workflows/secrets_vault.h"

namespace hapax::workflows {

// From any thread. Waits for the store, at most once a second while nothing changes.
class SecretBook {
 public:
  static constexpr Duration kLookEvery{1'000};

  // The vault and the clock outlive it.
  SecretBook(const SecretVault& vault, ports::Clock& clock, std::string tenant)
      : vault_(vault), clock_(clock), tenant_(std::move(tenant)) {}

  // Of the list of secrets. Another one: a value may be another. While the store does not answer,
  // as it said last; nothing, if it has not said anything yet.
  [[nodiscard]] std::optional<Version> version();
  // kNotFound: there is no such secret; kPreconditionFailed: it cannot be unsealed.
  [[nodiscard]] Result<std::string> value_of(std::string_view name);

 private:
  void look();

  const SecretVault& vault_;
  ports::Clock& clock_;
  const std::string tenant_;
  base::Mutex mutex_;
  std::optional<std::int64_t> looked_ms_ HAPAX_GUARDED_BY(mutex_);
  std::optional<SecretList> list_ HAPAX_GUARDED_BY(mutex_);
  std::map<std::string, std::string, std::less<>> values_ HAPAX_GUARDED_BY(mutex_);
};

}  // namespace hapax::workflows
