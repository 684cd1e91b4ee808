// What the block `exactly_once_config` means here: its fields become keys of our own, and a field
// that has no meaning here is told so. A key of our own that was written wins.
#pragma once

#include "config/config.h"
#include "config/finding.h"

namespace hapax::config {

void apply_exactly_once(Config& config, const Given& given, ConfigFindings& findings);

}  // namespace hapax::config
