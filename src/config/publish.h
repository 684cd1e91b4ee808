// What is made of the table of keys for people and programs.
#pragma once

#include <string>

#include "config/config.h"

namespace hapax::config {

// JSON Schema (2020-12) of the file, for editors; docs/reference/hapax.schema.json.
[[nodiscard]] std::string json_schema();

// The tables of docs/reference/config.md.
[[nodiscard]] std::string reference_tables();

// Every value as a JSON object; what is not set is left out.
[[nodiscard]] std::string to_json(const Config& config);

}  // namespace hapax::config
