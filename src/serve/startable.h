// Whether a server would start with its options on this machine: what only the files tell.
#pragma once

#include <string>
#include <vector>

#include "serve/options.h"

namespace hapax::serve {

// The first that is missing or cannot be used of certificates, keys and tokens.
[[nodiscard]] Status check_files(const Options& options);

// Secrets that every user of this machine can read, one line each.
[[nodiscard]] std::vector<std::string> loose_secrets(const Options& options);

}  // namespace hapax::serve
