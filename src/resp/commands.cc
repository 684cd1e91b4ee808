#include "resp/commands.h"

#include <initializer_list>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/words.h"
#include "resp/connection_commands.h"
#include "resp/key_value.h"
#include "resp/operations.h"
#include "resp/reads.h"
#include "resp/server_commands.h"
#include "resp/transactions.h"
#include "wire/nearest.h"

namespace hapax::resp {

using base::lower;
using base::upper;

namespace {

// The lines of a header that a browser sends before a body that a page has chosen.
bool is_http(std::string_view name) { return name == "POST" || name.starts_with("HOST:"); }

// Of a long name only the beginning is told.
std::string unknown_command(std::string_view name) {
  const std::string_view told = name.substr(0, 64);
  std::vector<std::string_view> known;
  for (const Command& command : commands()) known.push_back(command.name);
  std::string text = "unknown command '" + std::string(told) + "'";
  if (const auto close = wire::nearest(told, known)) {
    return text + "; did you mean '" + std::string(*close) + "'?";
  }
  return text + "; COMMAND LIST names those there are";
}

bool has_number_of(const Command& command, CommandWords arguments) {
  const auto count = static_cast<int>(arguments.size());
  return command.arity < 0 ? count >= -command.arity : count == command.arity;
}

// The caller may ask for it.
Next run_admitted(Conversation& talk, const Command& command, CommandWords arguments) {
  if (command.read_op != nullptr) return run_op(talk, command.read_op, arguments.subspan(1));
  if (!has_number_of(command, arguments)) return wrong_number(talk, lower(command.name));
  if (talk.multi() && command.in_multi == InMulti::kWaits) return talk.queue(arguments);
  if (talk.multi() && command.in_multi == InMulti::kNever) {
    return talk.error("ERR", "Command not allowed inside a transaction");
  }
  return command.run(talk, arguments);
}

}  // namespace

std::span<const Command> commands() {
  static const std::vector<Command> kCommands = [] {
    std::vector<Command> all;
    for (const std::span<const Command> some :
         {connection_commands(), server_commands(), transaction_commands(), key_value_commands(),
          read_commands(), operation_commands()}) {
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  }();
  return kCommands;
}

const Command* find_command(std::string_view name) {
  static const auto kByName = [] {
    std::unordered_map<std::string_view, const Command*> by_name;
    for (const Command& command : commands()) by_name.emplace(command.name, &command);
    return by_name;
  }();
  const auto found = kByName.find(name);
  return found == kByName.end() ? nullptr : found->second;
}

Next wrong_number(Conversation& talk, std::string_view command) {
  return talk.error("ERR", "wrong number of arguments for '" + std::string(command) + "' command");
}

Next run_command(Conversation& talk, CommandWords arguments) {
  const std::string name = upper(arguments.front());
  if (is_http(name)) {
    talk.end();  // A9: what follows may be commands that a page of another site wrote.
    return talk.error("ERR", "HTTP is not spoken at this port");
  }
  const Command* found = find_command(name);
  if (found == nullptr) return talk.error("ERR", unknown_command(name));
  const bool signs_in = name == "AUTH" || name == "HELLO" || name == "QUIT" || name == "RESET";
  // Answers are told in the names of whoever asked: nobody else signs in before they are.
  if (signs_in && talk.busy()) return Next::kWaitFirst;
  SignedIn& who = talk.who();
  if (!who.holds()) {
    if (talk.busy()) return Next::kWaitFirst;
    talk.sign_in_again();
  }
  if (who.stranger() && !signs_in) {
    return talk.error("NOAUTH", "Authentication required: AUTH token");
  }
  const bool about_multi = talk.multi() && found->in_multi == InMulti::kAtOnce;
  if (!who.stranger() && !signs_in && !about_multi) {
    if (const auto refused = who.let_in()) return talk.refuse(refused->error);
  }
  return run_admitted(talk, *found, arguments);
}

}  // namespace hapax::resp
