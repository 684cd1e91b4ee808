// MULTI, EXEC, DISCARD; and HX.COMMIT, which says how EXEC commits.
#pragma once

#include <span>

#include "resp/commands.h"

namespace hapax::resp {

[[nodiscard]] std::span<const Command> transaction_commands();

}  // namespace hapax::resp
