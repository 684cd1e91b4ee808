#include "resp/server_commands.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/words.h"
#include "resp/argument_docs.h"
#include "resp/glob.h"

namespace hapax::resp {

using base::lower;
using base::upper;

namespace {

std::vector<const Command*> wanted(CommandWords asked) {
  std::vector<const Command*> found;
  for (const std::string_view name : asked) {
    if (const Command* one = find_command(upper(name))) found.push_back(one);
  }
  if (!asked.empty()) return found;
  for (const Command& command : commands()) found.push_back(&command);
  return found;
}

void tell_docs(Replies& replies, CommandWords asked) {
  const std::vector<const Command*> told = wanted(asked);
  replies.map(told.size());
  for (const Command* command : told) {
    replies.bulk(lower(command->name));
    replies.map(3);
    replies.bulk("summary");
    replies.bulk(command->summary);
    replies.bulk("group");
    replies.bulk(command->group);
    replies.bulk("arguments");
    tell_arguments(replies, command->arguments);
  }
}

void tell_info(Replies& replies, const Command& command) {
  replies.array(6);
  replies.bulk(lower(command.name));
  replies.integer(command.arity);
  replies.array(0);
  replies.integer(0);
  replies.integer(0);
  replies.integer(0);
}

void tell_info(Replies& replies, CommandWords asked) {
  replies.array(asked.empty() ? commands().size() : asked.size());
  for (const std::string_view name : asked) {
    const Command* const found = find_command(upper(name));
    found == nullptr ? replies.null() : tell_info(replies, *found);
  }
  if (!asked.empty()) return;
  for (const Command& command : commands()) tell_info(replies, command);
}

Next list_commands(Conversation& talk, CommandWords filter) {
  const bool by_pattern =
      filter.size() == 3 && upper(filter[0]) == "FILTERBY" && upper(filter[1]) == "PATTERN";
  if (!filter.empty() && !by_pattern) {
    return talk.error("ERR", "COMMAND LIST knows FILTERBY PATTERN pattern");
  }
  const std::string pattern = by_pattern ? lower(filter[2]) : "*";
  std::vector<std::string> names;
  for (const Command& one : commands()) {
    if (matches(pattern, lower(one.name))) names.push_back(lower(one.name));
  }
  talk.replies().array(names.size());
  for (const std::string& name : names) talk.replies().bulk(name);
  return talk.answered();
}

Next tell_commands(Conversation& talk, CommandWords arguments) {
  const std::string what = arguments.size() > 1 ? upper(arguments[1]) : "INFO";
  if (what == "COUNT") {
    talk.replies().integer(static_cast<std::int64_t>(commands().size()));
  } else if (what == "LIST") {
    return list_commands(talk, arguments.subspan(2));
  } else if (what == "DOCS") {
    tell_docs(talk.replies(), arguments.subspan(2));
  } else if (what == "INFO") {
    tell_info(talk.replies(), arguments.subspan(std::min<std::size_t>(2, arguments.size())));
  } else {
    return talk.error("ERR", "COMMAND knows COUNT, LIST, DOCS and INFO");
  }
  return talk.answered();
}

Next tell_config(Conversation& talk, CommandWords arguments) {
  if (upper(arguments[1]) != "GET") {
    return talk.error("ERR", "the configuration is a file; only CONFIG GET is known");
  }
  // What redis-benchmark wants to know: that everything is written down.
  constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kKnown{
      {{"appendonly", "yes"}, {"save", ""}}};
  std::vector<std::string_view> told;
  for (const auto& [name, value] : kKnown) {
    const auto wants = [name = name](std::string_view asked) {
      return matches(lower(asked), name);
    };
    const CommandWords patterns = arguments.subspan(2);
    if (std::none_of(patterns.begin(), patterns.end(), wants)) continue;
    told.insert(told.end(), {name, value});
  }
  talk.replies().map(told.size() / 2);
  for (const std::string_view word : told) talk.replies().bulk(word);
  return talk.answered();
}

}  // namespace

std::span<const Command> server_commands() {
  static const std::array kCommands{
      Command{"COMMAND", -1, "server", "[subcommand] [name…]", "What there is", tell_commands,
              nullptr, InMulti::kWaits},
      Command{"CONFIG", -2, "server", "GET pattern…", "CONFIG GET appendonly, save", tell_config,
              nullptr, InMulti::kWaits},
  };
  return kCommands;
}

}  // namespace hapax::resp
