#include "resp/session.h"

#include <utility>

#include "resp/commands.h"
#include "resp/op_arguments.h"
#include "resp/verdict_reply.h"

namespace hapax::resp {

Session::Session(net::Link& link, Hall& hall, front::Gatherer& gatherer)
    : link_(&link),
      hall_(hall),
      gatherer_(gatherer),
      loop_(link.loop()),
      parser_(hall.limits),
      caller_(hall.reception.anybody()) {}

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
  flush();
  finish_if_done();
  return closing_ ? bytes.size() : used;
}

Status Session::sign_in(std::string_view credential) {
  HAPAX_TRY(front::Admission admission, hall_.reception.admit(credential, link_->peer()));
  caller_ = admission.caller;
  admission_ = std::move(admission);
  credential_ = credential;
  return Ok{};
}

void Session::sign_out() {
  caller_ = hall_.reception.anybody();
  admission_.reset();
  credential_.clear();
}

Status Session::let_in() {
  if (caller_->account == nullptr) return Ok{};
  HAPAX_CHECK(front::keep_seat(seat_, caller_->account));
  if (multi_) return Ok{};
  const auto wait = caller_->account->charge(std::chrono::steady_clock::now());
  return wait ? Status(front::rate_error(*wait)) : Status(Ok{});
}

void Session::sign_in_again() {
  const std::string credential = credential_;
  if (!sign_in(credential)) sign_out();
}

void Session::run_op(const Op& op, Say say) {
  slots_.push_back({say, false, {}});
  gatherer_.add(op, shared_from_this(), first_ticket_ + slots_.size() - 1);
}

void Session::answer_now() {
  if (slots_.empty()) {
    out_ += replies_.text();
  } else {
    slots_.push_back({nullptr, true, std::string(replies_.text())});
  }
  replies_.clear();
}

void Session::told(std::uint64_t ticket, const Verdict& verdict, Time when) {
  if (link_ == nullptr) return;
  Slot& slot = slots_[ticket - first_ticket_];
  if (!caller_ || caller_->tenant.empty()) {
    slot.say(replies_, {&verdict, 1}, when);
  } else {
    Verdict clean = verdict;
    front::TenantNames(*caller_).clean(clean);
    slot.say(replies_, {&clean, 1}, when);
  }
  fill(ticket);
}

void Session::failed(std::uint64_t ticket, const Error& error) {
  if (link_ == nullptr) return;
  Error clean = error;
  if (caller_) front::TenantNames(*caller_).clean(clean.detail);
  reply_error(replies_, clean);
  fill(ticket);
}

// Answers that are due leave at once, one behind the other; the rest waits for its turn.
void Session::fill(std::uint64_t ticket) {
  if (ticket == first_ticket_) {
    out_ += replies_.text();
    slots_.pop_front();
    ++first_ticket_;
    while (!slots_.empty() && slots_.front().ready) {
      out_ += slots_.front().reply;
      slots_.pop_front();
      ++first_ticket_;
    }
  } else {
    Slot& slot = slots_[ticket - first_ticket_];
    slot.reply = replies_.text();
    slot.ready = true;
  }
  replies_.clear();
  flush();
  finish_if_done();
}

void Session::flush() {
  if (link_ == nullptr || out_.empty()) return;
  link_->send(out_);
  out_.clear();
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
