#include "resp/transactions.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "access/admission.h"
#include "base/words.h"
#include "resp/argument_fields.h"

namespace hapax::resp {

namespace {

Next begin_multi(Conversation& talk, CommandWords) {
  if (talk.multi()) return talk.error("ERR", "MULTI calls can not be nested");
  talk.multi().emplace();
  return talk.ok();
}

Next discard_multi(Conversation& talk, CommandWords) {
  if (!talk.multi()) return talk.error("ERR", "DISCARD without MULTI");
  talk.multi().reset();
  return talk.ok();
}

// REQUIRES: everything before it is answered.
std::string reply_of(Conversation& talk, const std::vector<std::string>& words) {
  const std::vector<std::string_view> arguments(words.begin(), words.end());
  const std::size_t before = talk.answers().due();
  find_command(base::upper(arguments.front()))->run(talk, arguments);
  return talk.answers().take_back(before);
}

// Of the commands that are no operations. False: the replies are too long.
bool fill_replies(Conversation& talk, std::vector<CommitPart>& commands) {
  std::size_t bytes = 0;
  for (CommitPart& command : commands) {
    if (!command.is_op()) command.reply = reply_of(talk, command.words);
    bytes += command.reply.size();
    if (bytes > limits::kAnswerBytesMax) return false;
  }
  return true;
}

Next exec_multi(Conversation& talk, CommandWords) {
  if (!talk.multi()) return talk.error("ERR", "EXEC without MULTI");
  // Operations before MULTI may not have left for the store yet.
  if (talk.busy()) return Next::kWaitFirst;
  Multi multi = std::move(*talk.multi());
  talk.multi().reset();
  if (multi.broken()) {
    return talk.error("EXECABORT", "Transaction discarded because of previous errors.");
  }
  std::vector<CommitPart> commands = std::move(multi.commands());
  if (!fill_replies(talk, commands)) {
    return talk.error("EXECABORT", "Transaction discarded: its replies are too long.");
  }
  if (!multi.request().ops.empty() || multi.whole()) {
    const auto shape = multi.whole() ? CommitShape::kWhole : CommitShape::kArray;
    return talk.commit(multi.shared(), std::move(commands), shape, multi.request().ops.size());
  }
  talk.replies().array(commands.size());
  for (const CommitPart& command : commands) talk.replies().raw(command.reply);
  return talk.answered();
}

// How EXEC commits, and that it tells everything.
Next set_terms(Conversation& talk, CommandWords arguments) {
  if (!talk.multi()) {
    return talk.error("ERR", "HX.COMMIT says how EXEC commits: it stands behind MULTI");
  }
  Multi& multi = *talk.multi();
  if (multi.whole()) return talk.error("ERR", "HX.COMMIT is said once");
  if (multi.has_others_than_ops()) {
    return talk.error("ERR", "with HX.COMMIT there are operations only");
  }
  wire::Request& request = multi.request();
  wire::CommitFields how{request, {}, {}};
  const CommandWords kept = talk.keep_all(arguments.subspan(1));
  if (const Status read = read_fields(kept, request.headers, how); !read) {
    return talk.refuse(read.error());
  }
  const Status good = access::check_terms(talk.caller(), request);
  if (!good) return talk.refuse(good.error());
  multi.tell_whole();
  return talk.ok();
}

}  // namespace

std::span<const Command> transaction_commands() {
  static const std::array kCommands{
      Command{"MULTI", 1, "transactions", "", "Begins a list of commands", begin_multi, nullptr,
              InMulti::kAtOnce},
      Command{"EXEC", 1, "transactions", "", "Carries them out, all or nothing", exec_multi,
              nullptr, InMulti::kAtOnce},
      Command{"DISCARD", 1, "transactions", "", "Forgets them", discard_multi, nullptr,
              InMulti::kAtOnce},
      Command{"HX.COMMIT", -1, "hapax", usage_of<wire::CommitFields>(),
              "Inside MULTI: how EXEC commits, and that it tells everything", set_terms, nullptr,
              InMulti::kAtOnce},
  };
  return kCommands;
}

}  // namespace hapax::resp
