// A sample record and what became of it, as the doors know them.
#pragma once

#include <string>
#include <string_view>

#include <hapax/result.h>

#include "workflows/trial.h"

namespace hapax::serve {

[[nodiscard]] std::string trial_json(const workflows::Trial& trial);

}  // namespace hapax::serve
