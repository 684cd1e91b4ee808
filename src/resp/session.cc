#include "resp/session.h"

#include <utility>

#include "resp/commands.h"
#include "resp/op_arguments.h"
#include "resp/verdict_reply.h"

namespace hapax::resp {

Session::Session(net::Link& link, SessionContext& context, access::Gatherer& gatherer)
    : link_(&link),
      context_(context),
      gatherer_(gatherer),
      loop_(link.loop()),
      parser_(context.limits) {
  sign_out();
  watch_peer();
}

std::size_t Session::take(std::string_view bytes) {
  std::size_t used = 0;
  const std::size_t unsent = link_->unsent();
  while (!closing_ && used != bytes.size()) {
    if (slots_.size() >= context_.pending_max || owes_too_much(unsent)) {
      pause();
      break;
    }
    const Parsed parsed = parser_.parse(bytes.substr(used));
    if (parsed == Parsed::kMore) break;
    if (parsed == Parsed::kBroken) {
      replies_.error("ERR", "Protocol error: " + parser_.problem());
      answer_now();
      closing_ = true;
      break;
    }
    gatherer_.make_room(parser_.consumed());
    const bool go_on = parser_.arguments().empty() || run(parser_.arguments()) == Next::kGoOn;
    if (!go_on) {
      pause();
      break;
    }
    used += parser_.consumed();
  }
  const bool begins = !std::exchange(half_, used != bytes.size()) && half_;
  // A stranger gets no more time for each command.
  if ((used != 0 || begins) && caller_ && std::exchange(waited_, false)) link_->clear_deadline();
  told_all();
  return closing_ ? bytes.size() : used;
}

Status Session::sign_in(std::string_view credential) {
  HAPAX_TRY(access::Admission admission,
            context_.authenticator.authenticate(credential, link_->peer()));
  become(admission.caller);
  admission_ = std::move(admission);
  credential_ = credential;
  return Ok{};
}

void Session::become(std::optional<access::Caller> caller) {
  caller_ = std::move(caller);
  names_ = caller_ ? access::TenantNames(*caller_) : access::TenantNames();
  admission_.reset();
  credential_.clear();
  parser_.expect_stranger(!caller_);
}

// What was queued is carried out for the caller who queued it, or not at all.
void Session::sign_in_again() {
  const std::string credential = credential_;
  const access::Caller before = *caller_;
  if (!sign_in(credential)) {
    end_multi();
    return sign_out();
  }
  if (caller_->tenant != before.tenant || caller_->rights != before.rights) multi_broken_ = multi_;
}

void Session::end_multi() {
  multi_ = false;
  multi_broken_ = false;
  queued_.reset();
  std::vector<Queued>().swap(queued_says_);
  tell_whole_ = false;
}

Status Session::run_op(const Op& op, Say say) {
  HAPAX_CHECK(gatherer_.add(*caller_, names_, op, *this, first_ticket_ + slots_.size()));
  push({say, false, {}, access::answer_bytes_max(op)});
  return Ok{};
}

void Session::push(Slot slot) {
  promised_ += slot.promised;
  slots_.push_back(std::move(slot));
}

void Session::pop() {
  promised_ -= slots_.front().promised;
  slots_.pop_front();
  ++first_ticket_;
}

void Session::answer_now() {
  if (slots_.empty()) {
    due_ = replies_.size();
  } else {
    std::string reply = replies_.cut(due_);
    const std::size_t bytes = reply.size();
    push({nullptr, true, std::move(reply), bytes});
  }
}

void Session::told(std::uint64_t ticket, const Op& op, Verdict& verdict, Time when) {
  if (link_ == nullptr) return;
  Slot& slot = slots_[ticket - first_ticket_];
  if (access::lacks_something(verdict)) {
    slot.left_out = std::make_unique<access::LeftOut>(op, std::move(verdict), when);
    return;
  }
  slot.say(replies_, {&verdict, 1}, when);
  fill(ticket);
}

void Session::failed(std::uint64_t ticket, const Error& error) {
  if (link_ != nullptr) fail(ticket, error);
}

void Session::fail(std::uint64_t ticket, const Error& error) {
  Error clean = error;
  names_.clean(clean.detail);
  reply_error(replies_, clean);
  fill(ticket);
}

void Session::told_all() {
  flush();
  read_left_out();
  finish_if_done();
}

void Session::read_left_out() {
  if (link_ == nullptr || slots_.empty() || slots_.front().left_out == nullptr) return;
  if (holds_too_much(link_->unsent())) return;  // sent() tells.
  const std::shared_ptr<access::LeftOut> it = std::move(slots_.front().left_out);
  context_.entry.ask(
      loop_, [it](Store& store) { return access::read_left_out(store, std::move(*it)); },
      [self = shared_from_this(), when = it->when](Result<Verdict> verdict) {
        if (self->link_ == nullptr) return;
        self->found_left_out(std::move(verdict), when);
        self->told_all();
      });
}

// What was decided stands, whether it can be read or not.
void Session::found_left_out(Result<Verdict> verdict, Time when) {
  if (!verdict) {
    return fail(first_ticket_, {Errc::kOutcomeUnknown,
                                "the command was carried out, but its answer cannot be read: " +
                                    verdict.error().text() + " Ask for it again."});
  }
  names_.clean(*verdict);
  slots_.front().say(replies_, {&*verdict, 1}, when);
  fill(first_ticket_);
}

void Session::fill(std::uint64_t ticket) {
  if (ticket != first_ticket_) {
    Slot& slot = slots_[ticket - first_ticket_];
    slot.reply = replies_.cut(due_);
    slot.ready = true;
    return;
  }
  pop();
  for (; !slots_.empty() && slots_.front().ready; pop()) replies_.raw(slots_.front().reply);
  due_ = replies_.size();
}

void Session::flush() {
  if (link_ == nullptr || due_ == 0) return;
  link_->send(replies_.text());
  replies_.clear();
  due_ = 0;
}

void Session::finish_if_done() {
  if (link_ == nullptr || !slots_.empty()) return;
  if (closing_) return link_->finish();
  // What is not taken yet is waited for: sent() tells.
  if (paused_ && !owes_too_much(link_->unsent())) {
    paused_ = false;
    return link_->resume();
  }
  watch_peer();
}

void Session::pause() {
  paused_ = true;
  link_->pause();
}

// While it is our turn, nobody is late; and a peer that sends byte by byte gets no more time, nor
// does a stranger who asks for this and that.
void Session::watch_peer() {
  const bool stranger = !caller_;
  const bool ours = !stranger && (busy() || paused_ || link_->unsent() != 0);
  const bool waits = half_ || stranger || context_.idle_time.count() != 0;
  if (ours || !waits) {
    if (std::exchange(waited_, false)) link_->clear_deadline();
    return;
  }
  if (std::exchange(waited_, true)) return;
  const auto span = half_ || stranger ? context_.command_time : context_.idle_time;
  link_->set_deadline(std::chrono::steady_clock::now() + span);
}

void Session::late() {
  if (half_) {
    replies_.error("ERR", "Protocol error: the command took too long to arrive");
    answer_now();
    flush();
  }
  link_->finish();
}

void Session::half_closed() {
  closing_ = true;
  finish_if_done();
}

void Session::drain() {
  closing_ = true;
  finish_if_done();
}

}  // namespace hapax::resp
