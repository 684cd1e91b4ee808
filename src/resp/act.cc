#include "resp/act.h"

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "access/admission.h"

namespace hapax::resp {

namespace {

constexpr std::size_t kBytesPerOp = 600;  // that the store adds to the limit of a commit

// Nothing was done at all: one operation was refused, or what it expected did not hold.
void say_none(Replies& replies, std::span<const Verdict> verdicts, Act::Shape shape) {
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    const auto* refused = std::get_if<Refused>(&verdicts[i]);
    if (refused == nullptr) continue;
    if (shape == Act::Shape::kOne) return reply_error(replies, refused->error);
    return replies.error("EXECABORT", "Transaction discarded: operation " + std::to_string(i + 1) +
                                          " was refused: " + refused->error.text());
  }
  replies.null_array();
}

void say_all(Replies& replies, const Result<Answer>& answer,
             const std::vector<Session::Queued>& queued, Act::Shape shape) {
  if (!answer) return reply_error(replies, answer.error());
  if (shape == Act::Shape::kWhole) return reply_answer(replies, *answer);
  if (!answer->committed) return say_none(replies, answer->verdicts, shape);
  std::span<const Verdict> left = answer->verdicts;
  std::size_t ops = 0;
  Session::Say last = nullptr;
  for (const Session::Queued& command : queued) {
    ops += command.ops;
    if (command.say != nullptr) last = command.say;
  }
  // The end of a transaction answers with the verdicts of what was staged, too.
  const std::size_t more = left.size() - ops;
  if (shape == Act::Shape::kArray) replies.array(queued.size() + more);
  for (const Session::Queued& command : queued) {
    if (command.say == nullptr) {
      replies.raw(command.reply);
      continue;
    }
    command.say(replies, left.first(command.ops), answer->time);
    left = left.subspan(command.ops);
  }
  for (; !left.empty(); left = left.subspan(1)) last(replies, left.first(1), answer->time);
}

}  // namespace

Act::Next Act::ok(Session& session) {
  session.replies_.ok();
  return answered(session);
}

Act::Next Act::error(Session& session, std::string_view code, std::string_view text) {
  session.replies_.error(code, text);
  if (session.multi_) {
    session.multi_broken_ = true;
    drop_queued(session);
  }
  return answered(session);
}

Act::Next Act::refuse(Session& session, const Error& problem) {
  switch (problem.code) {
    case Errc::kForbidden:
      return error(session, "NOPERM", problem.text());
    case Errc::kUnauthenticated:
      return error(session, "WRONGPASS", problem.text());
    default:
      return error(session, "ERR", problem.text());
  }
}

Act::Next Act::answered(Session& session) {
  session.answer_now();
  return Next::kGoOn;
}

std::string_view Act::keep(Session& session, std::string_view bytes) {
  return session.multi_ ? session.queued_->keep(bytes) : session.gatherer_.keep(bytes);
}

void Act::keep(Session& session, std::span<std::string_view> views) {
  if (!session.multi_) return session.gatherer_.keep(views);
  for (std::string_view& view : views) view = session.queued_->keep(view);
}

Act::Next Act::carry_out(Session& session, Op op, Session::Say say) {
  if (session.multi_) {
    session.queued_->ops.push_back(op);
    return queue(session, session.queued_->ops.size() - 1, say);
  }
  if (const Status added = session.run_op(op, say); !added) return refuse(session, added.error());
  return Next::kGoOn;
}

Act::Next Act::queue(Session& session, std::size_t first, Session::Say say) {
  std::vector<Op>& ops = session.queued_->ops;
  for (std::size_t i = first; i < ops.size(); ++i) {
    if (const Status allowed = access::check(*session.caller_, ops[i]); !allowed) {
      return refuse(session, allowed.error());
    }
  }
  return queue(session, {say, ops.size() - first, {}, {}});
}

Act::Next Act::queue(Session& session, Arguments words) {
  if (session.tell_whole_) {
    return error(session, "ERR", "behind HX.COMMIT there are operations only");
  }
  return queue(session, {nullptr, 0, {words.begin(), words.end()}, {}});
}

// As much may wait as makes one commit.
Act::Next Act::queue(Session& session, Session::Queued command) {
  session.queued_bytes_ += session.parser_.consumed() + command.words.size() * sizeof(std::string);
  session.queued_says_.push_back(std::move(command));
  const std::size_t count = std::max(session.queued_->ops.size(), session.queued_says_.size());
  if (count > limits::kCommitOpsMax) return too_many(session, count);
  const std::size_t most = limits::kCommitBytesMax + session.queued_->ops.size() * kBytesPerOp;
  if (session.queued_bytes_ > most) {
    return refuse(session, {Errc::kLimitExceeded, "commit in bytes has " +
                                                      std::to_string(session.queued_bytes_) +
                                                      "; the most is " + std::to_string(most)});
  }
  if (session.multi_broken_) drop_queued(session);
  session.replies_.simple("QUEUED");
  return answered(session);
}

void Act::drop_queued(Session& session) {
  session.queued_ = std::make_shared<wire::Request>();
  session.queued_says_.clear();
  session.queued_bytes_ = 0;
}

Act::Next Act::too_many(Session& session, std::size_t ops) {
  return refuse(session, {Errc::kLimitExceeded, "number of operations of a commit has " +
                                                    std::to_string(ops) + "; the most is " +
                                                    std::to_string(limits::kCommitOpsMax)});
}

Act::Next Act::commit(Session& session, const wire::SharedRequest& request,
                      std::vector<Session::Queued> queued, Shape shape) {
  std::size_t promised = 0;
  const auto is_op = [](const Session::Queued& command) { return command.say != nullptr; };
  const auto let_in = std::count_if(queued.begin(), queued.end(), is_op);
  for (const Op& op : request->ops) promised += access::answer_bytes_max(op);
  session.push({nullptr, false, {}, std::min(promised, limits::kAnswerBytesMax)});
  const std::uint64_t ticket = session.first_ticket_ + session.slots_.size() - 1;
  auto tell = [self = session.shared_from_this(), ticket, queued = std::move(queued),
               shape](const Result<Answer>& answer) {
    if (self->link_ == nullptr) return;
    say_all(self->replies_, answer, queued, shape);
    self->fill(ticket);
    self->told_all();
  };
  session.context_.entry.commit(session.loop_, *session.caller_, request, std::move(tell),
                                static_cast<std::size_t>(let_in));
  return Next::kGoOn;
}

}  // namespace hapax::resp
