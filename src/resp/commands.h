// The commands and what they do.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "resp/conversation.h"
#include "resp/op_arguments.h"

namespace hapax::resp {

// What becomes of a command between MULTI and EXEC.
enum class InMulti : std::uint8_t {
  kKnows,   // it has operations, which wait for EXEC, or it says that it cannot
  kWaits,   // it has none: it waits as it is
  kAtOnce,  // it is about MULTI itself, or ends it
  kNever,
};

struct Command {
  std::string_view name;       // upper case
  int arity = 1;               // with the name; negative: at least
  std::string_view group;      // for COMMAND DOCS, as the next two
  std::string_view arguments;  // as argument_docs.h reads them
  std::string_view summary;
  Next (*run)(Conversation&, CommandWords) = nullptr;
  ReadOp read_op = nullptr;  // instead of `run`: it is an operation
  InMulti in_multi = InMulti::kKnows;
};

[[nodiscard]] std::span<const Command> commands();
// Null: there is none. `name` is in upper case.
[[nodiscard]] const Command* find_command(std::string_view name);

// `command` is in lower case, as Redis tells it.
Next wrong_number(Conversation& talk, std::string_view command);

// REQUIRES: there are arguments.
Next run_command(Conversation& talk, CommandWords arguments);

}  // namespace hapax::resp
