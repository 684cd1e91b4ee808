#include "resp/commit_reply.h"

#include "resp/verdict_reply.h"

namespace hapax::resp {

namespace {

// Nothing was done at all: one operation was refused, or what it expected did not hold.
void reply_none(Replies& replies, std::span<const Verdict> verdicts, CommitShape shape) {
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    const auto* refused = std::get_if<Refused>(&verdicts[i]);
    if (refused == nullptr) continue;
    if (shape == CommitShape::kOne) return reply_error(replies, refused->error);
    return replies.error("EXECABORT", "Transaction discarded: operation " + std::to_string(i + 1) +
                                          " was refused: " + refused->error.text());
  }
  replies.null_array();
}

}  // namespace

void reply_commit(Replies& replies, const Result<Answer>& answer,
                  std::span<const CommitPart> commands, CommitShape shape) {
  if (!answer) return reply_error(replies, answer.error());
  if (shape == CommitShape::kWhole) return reply_answer(replies, *answer);
  if (!answer->committed) return reply_none(replies, answer->verdicts, shape);
  std::span<const Verdict> left = answer->verdicts;
  std::size_t ops = 0;
  Say last = nullptr;
  for (const CommitPart& command : commands) {
    ops += command.ops;
    if (command.is_op()) last = command.say;
  }
  // The end of a transaction answers with the verdicts of what was staged, too.
  const std::size_t more = left.size() - ops;
  if (shape == CommitShape::kArray) replies.array(commands.size() + more);
  for (const CommitPart& command : commands) {
    if (!command.is_op()) {
      replies.raw(command.reply);
      continue;
    }
    command.say(replies, left.first(command.ops), answer->time);
    left = left.subspan(command.ops);
  }
  for (; !left.empty(); left = left.subspan(1)) last(replies, left.first(1), answer->time);
}

}  // namespace hapax::resp
