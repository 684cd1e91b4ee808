// Keys from the bytes of their files.
#pragma once

#include <string_view>
#include <vector>

#include "auth/key.h"
#include "auth/settings.h"

namespace hapax::auth {

// At least one. Errors say what is wrong with which key, never show one.
[[nodiscard]] Result<std::vector<Key>> read_keys(const KeySource& source, std::string_view bytes);

}  // namespace hapax::auth
