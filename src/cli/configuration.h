// A configuration file as the commands around a server read it.
#pragma once

#include <string>

#include <hapax/result.h>

#include "config/load.h"

namespace hapax::cli {

// With the overrides of the environment. Without a name there is no file.
[[nodiscard]] Result<config::Loaded> load_configuration(const std::string& file);

// To standard error, one a line.
void print_findings(const config::ConfigFindings& findings);

}  // namespace hapax::cli
