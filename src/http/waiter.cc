#include "http/waiter.h"

#include <algorithm>
#include <utility>

#include "http/replies.h"

namespace hapax::http {

namespace {

constexpr std::chrono::milliseconds kLookAgain{1'000};
constexpr std::chrono::milliseconds kWaitMax{60'000};

}  // namespace

void Waiter::listen() {
  rung_ = false;
  if (number_ != 0) return;
  number_ = desk_.bell().wait(stream_, call_->exchange->loop(), [self = shared_from_this()] {
    self->number_ = 0;
    self->rung_ = true;
    self->fire();
  });
}

void Waiter::wait(std::function<void()> again) {
  again_ = std::move(again);
  call_->exchange->at_leave([self = shared_from_this()] { self->fire(); });
  net::Loop& loop = call_->exchange->loop();
  const auto wake = [self = shared_from_this(), mine = ++waits_] {
    if (self->waits_ == mine) self->fire();
  };
  if (rung_ || call_->exchange->leaving()) return loop.post(wake);
  loop.at(std::min(until_, std::chrono::steady_clock::now() + kLookAgain), wake);
}

void Waiter::quit() {
  again_ = nullptr;
  if (number_ != 0) desk_.bell().cancel(stream_, std::exchange(number_, 0));
}

void Waiter::fire() {
  const auto again = std::exchange(again_, nullptr);
  if (!again) return;
  ++waits_;
  again();
}

Error made_again() {
  return {Errc::kNotFound, "the stream was deleted, and one of the same name made; begin again"};
}

Result<Waiter::Time> wait_until(const SharedCall& call) {
  HAPAX_TRY(const Duration wait, option(call, "wait_ms", Duration{0}));
  const auto span = std::clamp<std::chrono::milliseconds>(wait, Duration{0}, kWaitMax);
  return std::chrono::steady_clock::now() + span;
}

}  // namespace hapax::http
