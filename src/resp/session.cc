#include "resp/session.h"

#include <chrono>
#include <string>
#include <utility>

#include "access/left_out.h"
#include "resp/commands.h"

namespace hapax::resp {

Session::Session(net::Link& link, SessionContext& context, access::Gatherer& gatherer)
    : link_(&link),
      context_(context),
      parser_(context.limits),
      talk_(context, gatherer, link, *this) {
  watch_peer();
}

std::size_t Session::take(std::string_view bytes) {
  std::size_t used = 0;
  const std::size_t unsent = link_->unsent();
  while (!talk_.ending() && used != bytes.size()) {
    if (talk_.answers().waiting() >= context_.pending_max || owes_too_much(unsent)) {
      pause();
      break;
    }
    parser_.expect_stranger(talk_.who().stranger());
    const Parsed parsed = parser_.parse(bytes.substr(used));
    if (parsed == Parsed::kMore) break;
    if (parsed == Parsed::kBroken) {
      answer_broken(parser_.problem());
      talk_.end();
      break;
    }
    talk_.begin(parser_.consumed());
    const CommandWords arguments = parser_.arguments();
    if (!arguments.empty() && run_command(talk_, arguments) == Next::kWaitFirst) {
      pause();
      break;
    }
    used += parser_.consumed();
  }
  const bool begins = !std::exchange(half_, used != bytes.size()) && half_;
  // A stranger gets no more time for each command.
  const bool heard = (used != 0 || begins) && !talk_.who().stranger();
  if (heard && std::exchange(waited_, false)) link_->clear_deadline();
  told_all();
  return talk_.ending() ? bytes.size() : used;
}

void Session::answer_broken(const std::string& problem) {
  talk_.replies().error("ERR", "Protocol error: " + problem);
  talk_.answered();
}

void Session::told(std::uint64_t ticket, const Op& op, Verdict& verdict, Time when) {
  if (talk_.lost()) return;
  if (access::lacks_something(verdict)) {
    talk_.answers().leave_out(ticket, access::LeftOut(op, std::move(verdict), when));
  } else {
    talk_.answers().tell(ticket, verdict, when);
  }
}

void Session::failed(std::uint64_t ticket, const Error& error) {
  if (!talk_.lost()) talk_.fail(ticket, error);
}

void Session::told_all() {
  if (link_ == nullptr) return;
  flush();
  read_left_out();
  finish_if_done();
}

void Session::flush() {
  if (talk_.answers().due() == 0) return;
  link_->send(talk_.answers().text());
  talk_.answers().sent();
}

void Session::read_left_out() {
  if (link_ == nullptr || !talk_.answers().first_is_left_out()) return;
  if (holds_too_much(link_->unsent())) return;  // sent() tells.
  const std::shared_ptr<access::LeftOut> it = talk_.answers().take_left_out();
  context_.entry.ask(
      link_->loop(), talk_.caller(),
      [it](Store& store) { return access::read_left_out(store, std::move(*it)); },
      [self = shared_from_this(), when = it->when](Result<Verdict> verdict) {
        if (self->talk_.lost()) return;
        self->found_left_out(std::move(verdict), when);
        self->told_all();
      });
}

// What was decided stands, whether it can be read or not.
void Session::found_left_out(Result<Verdict> verdict, Time when) {
  const std::uint64_t ticket = talk_.answers().first();
  if (!verdict) {
    return talk_.fail(ticket, {Errc::kOutcomeUnknown,
                               "the command was carried out, but its answer cannot be read: " +
                                   verdict.error().text() + " Ask for it again."});
  }
  talk_.answers().tell(ticket, *verdict, when);
}

void Session::finish_if_done() {
  if (link_ == nullptr || talk_.busy()) return;
  if (talk_.ending()) return link_->finish();
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
  const bool stranger = talk_.who().stranger();
  const bool ours = !stranger && (talk_.busy() || paused_ || link_->unsent() != 0);
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
    answer_broken("the command took too long to arrive");
    flush();
  }
  link_->finish();
}

void Session::half_closed() {
  talk_.end();
  finish_if_done();
}

void Session::drain() {
  talk_.end();
  finish_if_done();
}

}  // namespace hapax::resp
