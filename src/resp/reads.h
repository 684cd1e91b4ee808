// HX commands that look and change nothing.
#pragma once

#include <span>

#include "resp/commands.h"

namespace hapax::resp {

[[nodiscard]] std::span<const Command> read_commands();

}  // namespace hapax::resp
