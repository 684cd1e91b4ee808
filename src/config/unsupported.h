// What a configuration may say and this server cannot do. The one place to shorten when it can.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace hapax::config {

struct Unsupported {
  std::vector<std::string> refusals;  // serving without it would be unsafe: do not start
  std::vector<std::string> ignored;   // serving without it is safe: say so
};

[[nodiscard]] Unsupported unsupported(const Config& config);

}  // namespace hapax::config
