// What no key can say alone: keys that belong together, and those that exclude each other.
#pragma once

#include "config/config.h"
#include "config/finding.h"

namespace hapax::config {

void check_whole(const Config& config, const Given& given, ConfigFindings& findings);

}  // namespace hapax::config
