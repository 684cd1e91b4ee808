#include "resp/operations.h"

#include <memory>
#include <string_view>
#include <vector>

#include "access/admission.h"
#include "access/audit.h"
#include "resp/verdict_reply.h"

namespace hapax::resp {

namespace {

void say_map(Replies& replies, std::span<const Verdict> verdicts, Time when) {
  reply_verdict(replies, verdicts.front(), when);
}

// An administrative act is a commit of its own, which takes its audit with it; so is the end of a
// transaction, which answers for everything that was staged.
Next run_alone(Conversation& talk, ReadOp read_op, CommandWords arguments, CommitShape shape) {
  if (talk.busy()) return Next::kWaitFirst;  // Operations before it may not have left yet.
  const auto request = std::make_shared<wire::Request>();
  std::vector<std::string_view> kept;
  for (const std::string_view argument : arguments) kept.push_back(request->keep(argument));
  Op& op = request->ops.emplace_back();
  const Status read = read_op(kept, request->headers, usual_of(talk.caller()), op);
  if (!read) return talk.refuse(read.error());
  return talk.commit(request, {{say_map, 1}}, shape);
}

}  // namespace

Next run_op(Conversation& talk, ReadOp read_op, CommandWords arguments) {
  const access::Caller& caller = talk.caller();
  const CommandWords kept = talk.keep_all(arguments);
  Op op;
  const Status read = read_op(kept, talk.headers(), usual_of(caller), op);
  if (!read) return talk.refuse(read.error());
  const bool ends = std::holds_alternative<End>(op);
  if (!talk.multi() && (ends || access::is_audited(caller, op))) {
    const Status allowed = access::check(caller, op);
    if (!allowed) return talk.refuse(allowed.error());
    return run_alone(talk, read_op, arguments, ends ? CommitShape::kWhole : CommitShape::kOne);
  }
  return talk.carry_out(op, say_map);
}

std::span<const Command> operation_commands() {
  static const std::vector<Command> kCommands = [] {
    std::vector<Command> all;
    for (const OpSyntax& op : op_syntaxes()) {
      all.push_back({op.name, -1 - op.required, "hapax", op.usage, op.summary, nullptr, op.read});
    }
    return all;
  }();
  return kCommands;
}

}  // namespace hapax::resp
