#include "resp/reply_queue.h"

#include <utility>

#include "base/assert.h"

namespace hapax::resp {

std::uint64_t ReplyQueue::expect(std::size_t promised, Say say) {
  return push({say, false, {}, promised});
}

std::uint64_t ReplyQueue::push(Slot slot) {
  promised_ += slot.promised;
  slots_.push_back(std::move(slot));
  return first_ + slots_.size() - 1;
}

void ReplyQueue::pop() {
  promised_ -= slots_.front().promised;
  slots_.pop_front();
  ++first_;
}

void ReplyQueue::answer() {
  if (slots_.empty()) {
    due_ = replies_.size();
    return;
  }
  std::string reply = replies_.cut(due_);
  const std::size_t bytes = reply.size();
  push({nullptr, true, std::move(reply), bytes});
}

void ReplyQueue::answer(std::uint64_t ticket) {
  if (ticket != first_) {
    Slot& later = slot(ticket);
    later.reply = replies_.cut(due_);
    later.ready = true;
    return;
  }
  pop();
  for (; !slots_.empty() && slots_.front().ready; pop()) replies_.raw(slots_.front().reply);
  due_ = replies_.size();
}

void ReplyQueue::tell(std::uint64_t ticket, const Verdict& verdict, Time when) {
  slot(ticket).say(replies_, {&verdict, 1}, when);
  answer(ticket);
}

void ReplyQueue::leave_out(std::uint64_t ticket, access::LeftOut it) {
  slot(ticket).left_out = std::make_unique<access::LeftOut>(std::move(it));
}

std::unique_ptr<access::LeftOut> ReplyQueue::take_left_out() {
  return slots_.empty() ? nullptr : std::move(slots_.front().left_out);
}

std::string ReplyQueue::take_back(std::size_t begin) {
  HAPAX_ASSERT(slots_.empty(), "what is taken back is behind all answers");
  HAPAX_ASSERT(begin <= due_, "what is taken back is due");
  due_ = begin;
  return replies_.cut(begin);
}

void ReplyQueue::sent() {
  replies_.clear();
  due_ = 0;
}

}  // namespace hapax::resp
