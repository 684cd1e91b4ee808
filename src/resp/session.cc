#include "resp/session.h"

#include <utility>

#include "resp/commands.h"
#include "resp/op_arguments.h"
#include "resp/verdict_reply.h"

namespace hapax::resp {

Session::Session(net::Link& link, Hall& hall, front::Gatherer& gatherer)
    : link_(&link), hall_(hall), gatherer_(gatherer), loop_(link.loop()), parser_(hall.limits) {
  sign_out();
}

std::size_t Session::take(std::string_view bytes) {
  std::size_t used = 0;
  while (!closing_) {
    if (slots_.size() >= hall_.pending_max) {
      paused_ = true;
      link_->pause();
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
    const bool go_on = parser_.arguments().empty() || run(parser_.arguments()) == Next::kGoOn;
    if (!go_on) {
      paused_ = true;
      link_->pause();
      break;
    }
    used += parser_.consumed();
  }
  told_all();
  return closing_ ? bytes.size() : used;
}

Status Session::sign_in(std::string_view credential) {
  HAPAX_TRY(front::Admission admission, hall_.reception.admit(credential, link_->peer()));
  become(admission.caller);
  admission_ = std::move(admission);
  credential_ = credential;
  return Ok{};
}

void Session::become(std::optional<front::Caller> caller) {
  caller_ = std::move(caller);
  names_ = caller_ ? front::TenantNames(*caller_) : front::TenantNames();
  admission_.reset();
  credential_.clear();
}

Status Session::let_in() {
  if (caller_->account == nullptr) return Ok{};
  HAPAX_CHECK(front::keep_seat(seat_, caller_->account));
  if (multi_) return Ok{};
  const auto wait = caller_->account->charge();
  return wait ? Status(front::rate_error(*wait)) : Status(Ok{});
}

void Session::sign_in_again() {
  const std::string credential = credential_;
  if (!sign_in(credential)) sign_out();
}

void Session::run_op(const Op& op, Say say) {
  slots_.push_back({say, false, {}});
  gatherer_.add(op, *this, first_ticket_ + slots_.size() - 1);
}

void Session::answer_now() {
  if (slots_.empty()) {
    due_ = replies_.size();
  } else {
    slots_.push_back({nullptr, true, replies_.cut(due_)});
  }
}

void Session::told(std::uint64_t ticket, Verdict& verdict, Time when) {
  if (link_ == nullptr) return;
  names_.clean(verdict);
  slots_[ticket - first_ticket_].say(replies_, {&verdict, 1}, when);
  fill(ticket);
}

void Session::failed(std::uint64_t ticket, const Error& error) {
  if (link_ == nullptr) return;
  Error clean = error;
  names_.clean(clean.detail);
  reply_error(replies_, clean);
  fill(ticket);
}

void Session::told_all() {
  flush();
  finish_if_done();
}

void Session::fill(std::uint64_t ticket) {
  if (ticket != first_ticket_) {
    Slot& slot = slots_[ticket - first_ticket_];
    slot.reply = replies_.cut(due_);
    slot.ready = true;
    return;
  }
  slots_.pop_front();
  ++first_ticket_;
  for (; !slots_.empty() && slots_.front().ready; slots_.pop_front(), ++first_ticket_) {
    replies_.raw(slots_.front().reply);
  }
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
  if (std::exchange(paused_, false)) link_->resume();
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
