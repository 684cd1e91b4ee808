// Redis' commands on keys that hold a value, carried out on registers: the same semantics and
// replies, and durable before they are answered. docs/reference/resp.md lists what differs.
#pragma once

#include <span>

#include "resp/commands.h"

namespace hapax::resp {

[[nodiscard]] std::span<const Command> key_value_commands();

}  // namespace hapax::resp
