#include "net/epoll_set.h"

#include <algorithm>
#include <utility>

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

EpollSet::EpollSet(boost::asio::io_context& context) : set_(context, make_set()) {}

void EpollSet::stop() {
  boost::system::error_code ignored;
  set_.cancel(ignored);
}

bool EpollSet::add(int socket, std::uint32_t events, SocketOwner& owner) {
  epoll_event event{.events = events, .data = {.ptr = &owner}};
  return ::epoll_ctl(set_.native_handle(), EPOLL_CTL_ADD, socket, &event) == 0;
}

void EpollSet::change(int socket, std::uint32_t events, SocketOwner& owner) {
  epoll_event event{.events = events, .data = {.ptr = &owner}};
  const int changed = ::epoll_ctl(set_.native_handle(), EPOLL_CTL_MOD, socket, &event);
  HAPAX_ASSERT(changed == 0, "a watched socket is in the set");
}

void EpollSet::remove(int socket, const SocketOwner& owner, std::shared_ptr<void> keep) {
  const int removed = ::epoll_ctl(set_.native_handle(), EPOLL_CTL_DEL, socket, nullptr);
  HAPAX_ASSERT(removed == 0, "a watched socket is in the set");
  for (std::size_t i = next_; i < count_; ++i) {
    if (events_[i].data.ptr == &owner) events_[i].data.ptr = nullptr;
  }
  if (telling_) leaving_.push_back(std::move(keep));  // It may be the one that is being told.
}

// Waiting anew makes Asio look again: what is still ready in the set is told in the next turn.
void EpollSet::wait() {
  set_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                  [this](const boost::system::error_code& error) {
                    if (error) return;
                    tell_ready();
                    wait();
                  });
}

void EpollSet::tell_ready() {
  if (next_ == count_) {
    const int found =
        ::epoll_wait(set_.native_handle(), events_.data(), static_cast<int>(events_.size()), 0);
    count_ = static_cast<std::size_t>(std::max(found, 0));
    next_ = 0;
  }
  std::size_t bytes = 0;
  telling_ = true;
  while (next_ < count_ && bytes < kTurnBytes) {
    const epoll_event event = events_[next_++];
    auto* const owner = static_cast<SocketOwner*>(event.data.ptr);
    if (owner != nullptr) bytes += owner->ready(event.events);
  }
  telling_ = false;
  leaving_.clear();
}

}  // namespace hapax::net
