// What a client says about its connection: who it is, which protocol it speaks, that it is there.
#pragma once

#include <span>

#include "resp/commands.h"

namespace hapax::resp {

[[nodiscard]] std::span<const Command> connection_commands();

}  // namespace hapax::resp
