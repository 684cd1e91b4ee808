// Values of keys as text: what a file and the environment say, and what is shown to people.
#pragma once

#include <string>
#include <string_view>

#include <hapax/result.h>

#include "config/keys.h"

namespace hapax::config {

// "a whole number from 1 to 64", "a span of time such as 30s".
[[nodiscard]] std::string wanted(const ConfigKey& key);
// The same with the lists and names that may stand in the place of one value.
[[nodiscard]] std::string wanted_forms(const ConfigKey& key);

// The error is kInvalidArgument and reads after the key's name: "must be …, not 'many'".
[[nodiscard]] Result<SettingValue> parse(const ConfigKey& key, std::string_view text);

// As it would be written in a file: 64MiB, 30s, true.
[[nodiscard]] std::string show(const ConfigKey& key, const SettingValue& setting);

// A span may be a bare number only where the key's name tells the unit (_s, _ms).
[[nodiscard]] bool has_unit(const ConfigKey& key);

// Shortened, with what cannot be printed replaced.
[[nodiscard]] std::string quote(std::string_view text);

}  // namespace hapax::config
