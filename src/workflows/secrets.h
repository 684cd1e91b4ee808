// What secrets stand for. Values are looked up once, when a workflow starts, and never told.
#pragma once

#include <string>

#include <hapax/result.h>

#include "delivery/endpoint_settings.h"

namespace hapax::workflows {

// kPreconditionFailed with the reference, not its value: there is no such variable or file. A line
// break at the end of a file is not part of the secret.
[[nodiscard]] Result<std::string> reveal(const delivery::SecretText& text);

}  // namespace hapax::workflows
