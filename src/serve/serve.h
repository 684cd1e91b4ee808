// The server process: a store, its front doors, and an orderly end.
#pragma once

#include <hapax/result.h>

#include "serve/options.h"

namespace hapax::serve {

// Serves until SIGTERM or SIGINT. Prints where it listens.
[[nodiscard]] Status run(const Options& options);

}  // namespace hapax::serve
