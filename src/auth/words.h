// The words of credentials: names of tenants, subjects and roles.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "auth/identity.h"

namespace hapax::auth {

inline constexpr std::size_t kTenantMax = 64;
inline constexpr std::size_t kSubjectMax = 256;

// Letters, digits, '.', '_' and '-', a letter or digit first: it becomes part of names in the
// store.
[[nodiscard]] bool is_tenant(std::string_view text);
// UTF-8 without control characters: it is shown in logs.
[[nodiscard]] bool is_subject(std::string_view text);

[[nodiscard]] std::optional<Right> role_of(std::string_view word);
// "produce,consume"
[[nodiscard]] std::string words_of(Rights rights, std::string_view between);

}  // namespace hapax::auth
