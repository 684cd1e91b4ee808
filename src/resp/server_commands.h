// What the server tells about itself: its commands (COMMAND), and what clients of Redis ask of its
// configuration (CONFIG GET).
#pragma once

#include <span>

#include "resp/commands.h"

namespace hapax::resp {

[[nodiscard]] std::span<const Command> server_commands();

}  // namespace hapax::resp
