#include "resp/argument_docs.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/words.h"
#include "resp/map_reply.h"

namespace hapax::resp {

namespace {

constexpr std::string_view kMore = "…";

struct Argument {
  std::string_view token;
  std::string_view name;
  bool optional = false;
  bool multiple = false;
};

bool is_token(std::string_view word) {
  return !word.empty() && word == base::upper(word) && word != base::lower(word);
}

// "ID value", "NX", "key…"
Argument read_argument(std::string_view text, bool optional) {
  Argument argument{.name = text, .optional = optional};
  const std::string_view first = text.substr(0, text.find(' '));
  if (is_token(first)) {
    argument.token = first;
    argument.name = text.substr(std::min(first.size() + 1, text.size()));
  }
  // Behind several words it means the last ones: that is for people only.
  const bool one_word = argument.name.find(' ') == std::string_view::npos;
  argument.multiple = one_word && argument.name.ends_with(kMore);
  if (argument.multiple) argument.name.remove_suffix(kMore.size());
  return argument;
}

std::vector<Argument> read_usage(std::string_view usage) {
  std::vector<Argument> arguments;
  while (!usage.empty()) {
    const bool optional = usage.front() == '[';
    const std::size_t end = std::min(usage.find(optional ? ']' : ' '), usage.size());
    const std::size_t begin = optional ? 1 : 0;
    arguments.push_back(read_argument(usage.substr(begin, end - begin), optional));
    const std::size_t next = usage.find_first_not_of("] ", end);
    usage.remove_prefix(std::min(next, usage.size()));
  }
  return arguments;
}

std::string_view type_of(const Argument& argument) {
  if (argument.name.empty()) return "pure-token";
  return argument.name == "key" ? "key" : "string";
}

}  // namespace

void tell_arguments(Replies& replies, std::string_view usage) {
  const std::vector<Argument> arguments = read_usage(usage);
  replies.array(arguments.size());
  for (const Argument& argument : arguments) {
    reply_map(replies, [&](MapReply& map) {
      map.add("name",
              argument.name.empty() ? base::lower(argument.token) : std::string(argument.name));
      map.add("type", type_of(argument));
      if (!argument.token.empty()) map.add("token", argument.token);
      std::vector<std::string_view> flags;
      if (argument.optional) flags.push_back("optional");
      if (argument.multiple) flags.push_back("multiple");
      if (!flags.empty()) map.words("flags", flags);
    });
  }
}

}  // namespace hapax::resp
