#include "rest/long_poll.h"

#include <algorithm>
#include <utility>

#include "rest/replies.h"

namespace hapax::rest {

namespace {

// How long a credential that ended goes unnoticed. The store is not asked for it.
constexpr std::chrono::milliseconds kAdmissionEvery{1'000};
constexpr std::chrono::milliseconds kWaitMax{60'000};

}  // namespace

void LongPoll::listen() {
  changed_ = false;
  if (number_ != 0) return;
  const auto changed = [self = shared_from_this()] {
    self->number_ = 0;
    self->changed_ = true;
    self->fire();
  };
  net::Loop& loop = call_->exchange->loop();
  number_ = store_.watch(StreamWatch{for_.stream, for_.consumer},
                         [&loop, changed] { loop.post(changed); });
}

void LongPoll::wait(std::function<void()> again, Steady due) {
  again_ = std::move(again);
  due_ = std::min(until_, due);
  ++waits_;
  call_->exchange->at_leave([self = shared_from_this()] { self->fire(); });
  const bool now =
      changed_ || call_->exchange->leaving() || std::chrono::steady_clock::now() >= due_;
  if (!now) return arm();
  call_->exchange->loop().post([self = shared_from_this(), mine = waits_] {
    if (self->waits_ == mine) self->fire();
  });
}

void LongPoll::arm() {
  const auto tick = [self = shared_from_this(), mine = waits_] {
    if (self->waits_ != mine) return;
    const bool due = std::chrono::steady_clock::now() >= self->due_;
    due || !self->call_->still_admitted() ? self->fire() : self->arm();
  };
  call_->exchange->loop().at(std::min(due_, std::chrono::steady_clock::now() + kAdmissionEvery),
                             tick);
}

void LongPoll::quit() {
  again_ = nullptr;
  if (number_ != 0) store_.unwatch(std::exchange(number_, 0));
}

void LongPoll::fire() {
  const auto again = std::exchange(again_, nullptr);
  if (!again) return;
  ++waits_;
  again();
}

Error made_again() {
  return {Errc::kNotFound, "the stream was deleted, and one of the same name made; begin again"};
}

Result<LongPoll::Steady> wait_until(const SharedCall& call) {
  HAPAX_TRY(const Duration wait, option(call, "wait_ms", Duration{0}));
  const auto span = std::clamp<std::chrono::milliseconds>(wait, Duration{0}, kWaitMax);
  return std::chrono::steady_clock::now() + span;
}

QueryField wait_field() {
  return {"wait_ms", R"({"type":"integer"})",
          "Wait so long for a first record; more than 60,000 is 60,000, less than 0 is 0"};
}

}  // namespace hapax::rest
