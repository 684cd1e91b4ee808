// HX commands that are an operation each: HX.APPEND, HX.CLAIM …
#pragma once

#include <span>

#include "resp/commands.h"

namespace hapax::resp {

[[nodiscard]] std::span<const Command> operation_commands();

// `arguments` are those behind the name.
Next run_op(Conversation& talk, ReadOp read_op, CommandWords arguments);

}  // namespace hapax::resp
