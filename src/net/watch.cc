#include "net/watch.h"

#include <array>
#include <utility>

#include <sys/epoll.h>

#include "base/assert.h"

namespace hapax::net {

namespace {

// Then the turn ends, so that what was read goes on its way while more is read: if all that a
// thousand peers sent were read at once, everybody would then wait for everybody at every stage.
constexpr std::size_t kTurnBytes = std::size_t{64} << 10;

int make_set() {
  const int set = ::epoll_create1(EPOLL_CLOEXEC);
  HAPAX_ASSERT(set >= 0, "an epoll set can be made");
  return set;
}

}  // namespace

Watch::Watch(boost::asio::io_context& context) : set_(context, make_set()) {}

void Watch::stop() {
  boost::system::error_code ignored;
  set_.cancel(ignored);
}

bool Watch::add(int socket, std::uint32_t events, Watched& watched) {
  epoll_event event{.events = events, .data = {.ptr = &watched}};
  return ::epoll_ctl(set_.native_handle(), EPOLL_CTL_ADD, socket, &event) == 0;
}

void Watch::change(int socket, std::uint32_t events, Watched& watched) {
  epoll_event event{.events = events, .data = {.ptr = &watched}};
  const int changed = ::epoll_ctl(set_.native_handle(), EPOLL_CTL_MOD, socket, &event);
  HAPAX_ASSERT(changed == 0, "a watched socket is in the set");
}

void Watch::remove(int socket, std::shared_ptr<void> keep) {
  const int removed = ::epoll_ctl(set_.native_handle(), EPOLL_CTL_DEL, socket, nullptr);
  HAPAX_ASSERT(removed == 0, "a watched socket is in the set");
  if (telling_) leaving_.push_back(std::move(keep));  // It may be among those still to be told.
}

// Waiting anew makes Asio look again: what is still ready in the set is told in the next turn.
void Watch::wait() {
  set_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                  [this](const boost::system::error_code& error) {
                    if (error) return;
                    tell_ready();
                    wait();
                  });
}

void Watch::tell_ready() {
  constexpr int kAtOnce = 256;
  std::array<epoll_event, kAtOnce> events;
  const int count = ::epoll_wait(set_.native_handle(), events.data(), kAtOnce, 0);
  std::size_t bytes = 0;
  telling_ = true;
  for (int i = 0; i < count && bytes < kTurnBytes; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    bytes += static_cast<Watched*>(event.data.ptr)->ready(event.events);
  }
  telling_ = false;
  leaving_.clear();
}

}  // namespace hapax::net
