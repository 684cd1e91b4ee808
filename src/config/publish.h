// What is made of the table of keys for people and programs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "config/config.h"
#include "config/keys.h"

namespace hapax::config {

// JSON Schema (2020-12) of the file, for editors; docs/reference/hapax.schema.json.
[[nodiscard]] std::string json_schema();

// The tables of docs/reference/config.md.
[[nodiscard]] std::string reference_tables();

// Every value as a JSON object; what is not set is left out, and secrets are hidden.
[[nodiscard]] std::string to_json(const Config& config);

enum class Secrets : std::uint8_t {
  kWritten,  // as they were written, also those in clear text: for the store
  kHidden,   // for people
};
// The values of the keys that `inside` describes. What is empty is left out, too.
[[nodiscard]] std::string values_as_json(const Keys::Inside& inside, Secrets secrets);

// One value as JSON, for comparing and for people.
struct ShownValue {
  std::string written;
  std::string shown;
};
// Values that only a start takes, by their paths, for comparing. They may be secret.
[[nodiscard]] std::map<std::string, std::string> fixed_values(const Config& config);
// The top sections in which these differ.
[[nodiscard]] std::vector<std::string> changed_blocks(
    const std::map<std::string, std::string>& before,
    const std::map<std::string, std::string>& after);

// The same values by their paths ("endpoint.timeouts.connect").
[[nodiscard]] std::map<std::string, ShownValue> values_by_path(const Keys::Inside& inside);

}  // namespace hapax::config
