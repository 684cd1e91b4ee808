#include "delivery/stream_news.h"

#include <utility>

namespace hapax::delivery {

StreamNews::~StreamNews() {
  if (watch_number_ != 0) store_.unwatch(watch_number_);
}

void StreamNews::watch(std::string_view stream, std::string_view consumer) {
  {
    const base::MutexLock lock(state_->mutex);
    if (std::exchange(state_->watched, true)) return;
  }
  watch_number_ = store_.watch(StreamWatch{stream, consumer}, [state = state_] {
    const base::MutexLock lock(state->mutex);
    state->watched = false;
    state->some = true;
    state->came.notify_all();
  });
}

bool StreamNews::wait(Duration most) {
  base::MutexLock lock(state_->mutex);
  lock.wait_for(state_->came, most,
                [this]() HAPAX_REQUIRES(state_->mutex) { return state_->some || state_->nudged; });
  state_->nudged = false;
  return std::exchange(state_->some, false);
}

void StreamNews::nudge() { nudge(*state_); }

std::function<void()> StreamNews::nudger() const {
  return [state = state_] { nudge(*state); };
}

void StreamNews::nudge(State& state) {
  const base::MutexLock lock(state.mutex);
  state.nudged = true;
  state.came.notify_all();
}

}  // namespace hapax::delivery
