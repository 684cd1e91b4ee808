#include "resp/conversation.h"

#include <algorithm>

#include "access/admission.h"
#include "resp/verdict_reply.h"

namespace hapax::resp {

Conversation::Conversation(SessionContext& context, access::Gatherer& gatherer, net::Link& link,
                           access::Asker& asker)
    : context_(context),
      gatherer_(gatherer),
      loop_(link.loop()),
      asker_(asker),
      who_(context.authenticator, link.peer()) {}

// --- answering

Next Conversation::ok() {
  replies().ok();
  return answered();
}

Next Conversation::error(std::string_view code, std::string_view text) {
  replies().error(code, text);
  if (multi_) multi_->refuse();
  return answered();
}

Next Conversation::refuse(const Error& problem) {
  switch (problem.code) {
    case Errc::kForbidden:
      return error("NOPERM", problem.text());
    case Errc::kUnauthenticated:
      return error("WRONGPASS", problem.text());
    default:
      return error("ERR", problem.text());
  }
}

Next Conversation::answered() {
  answers_.answer();
  return Next::kGoOn;
}

void Conversation::fail(std::uint64_t ticket, const Error& error) {
  Error clean = error;
  who_.names().clean(clean.detail);
  reply_error(replies(), clean);
  answers_.answer(ticket);
}

// --- operations

void Conversation::begin(std::size_t bytes) {
  command_bytes_ = bytes;
  gatherer_.make_room(bytes);
}

std::string_view Conversation::keep(std::string_view bytes) {
  return multi_ ? multi_->request().keep(bytes) : gatherer_.keep(bytes);
}

CommandWords Conversation::keep_all(CommandWords arguments) {
  kept_.assign(arguments.begin(), arguments.end());
  if (!multi_) {
    gatherer_.keep(kept_);
  } else {
    for (std::string_view& view : kept_) view = multi_->request().keep(view);
  }
  return kept_;
}

std::deque<std::vector<Header>>& Conversation::headers() {
  return multi_ ? multi_->request().headers : gatherer_.headers();
}

Next Conversation::carry_out(Op op, Say say) {
  if (multi_) {
    std::vector<Op>& ops = multi_->request().ops;
    ops.push_back(op);
    return queue_ops(ops.size() - 1, say);
  }
  const Status added = gatherer_.add(caller(), who_.names(), op, asker_, answers_.next());
  if (!added) return refuse(added.error());
  answers_.expect(access::answer_bytes_max(op), say);
  return Next::kGoOn;
}

Next Conversation::commit(const wire::SharedRequest& request, std::vector<CommitPart> commands,
                          CommitShape shape, std::size_t let_in) {
  std::size_t promised = 0;
  for (const Op& op : request->ops) promised += access::answer_bytes_max(op);
  const std::uint64_t ticket = answers_.expect(std::min(promised, limits::kAnswerBytesMax));
  auto tell = [this, alive = asker_.keep(), ticket, commands = std::move(commands),
               shape](const Result<Answer>& answer) {
    if (lost()) return;
    reply_commit(replies(), answer, commands, shape);
    answers_.answer(ticket);
    alive->told_all();
  };
  context_.entry.commit(loop_, caller(), request, std::move(tell), let_in);
  return Next::kGoOn;
}

// --- MULTI

Next Conversation::queue_ops(std::size_t first, Say say) {
  const std::vector<Op>& ops = multi_->request().ops;
  for (std::size_t i = first; i < ops.size(); ++i) {
    if (const Status allowed = access::check(caller(), ops[i]); !allowed) {
      return refuse(allowed.error());
    }
  }
  // Not with EXEC: a list that is never carried out costs as much.
  access::charge_rest(caller(), ops.size() - first, 1);
  return queue({say, ops.size() - first, {}, {}});
}

Next Conversation::queue(CommandWords words) {
  if (multi_->whole()) return error("ERR", "behind HX.COMMIT there are operations only");
  return queue(CommitPart{nullptr, 0, {words.begin(), words.end()}, {}});
}

Next Conversation::queue(CommitPart command) {
  if (const Status fits = multi_->add(std::move(command), command_bytes_); !fits) {
    return refuse(fits.error());
  }
  replies().simple("QUEUED");
  return answered();
}

void Conversation::sign_in_again() {
  const SignedIn::Became became = who_.sign_in_again();
  if (became == SignedIn::Became::kNobody) multi_.reset();
  if (became == SignedIn::Became::kOther && multi_) multi_->break_off();
}

// --- the end

void Conversation::end() {
  if (stage_ == Stage::kOpen) stage_ = Stage::kEnding;
}

void Conversation::lose() {
  stage_ = Stage::kLost;
  who_.hang_up();
}

}  // namespace hapax::resp
