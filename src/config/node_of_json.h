// A JSON value as the tree that the keys are read from. It has no places: errors name paths only.
#pragma once

#include "config/document.h"
#include "wire/strict_json.h"

namespace hapax::config {

[[nodiscard]] Node node_of_json(const wire::JsonValue& json);

}  // namespace hapax::config
