#include "webhook/socket_watch.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/format.h"

namespace hapax::webhook {
namespace {

Error failed(const char* what) {
  return {Errc::kUnavailable, base::format("{}: {}", what, std::strerror(errno))};
}

std::uint32_t for_epoll(std::uint8_t events) {
  std::uint32_t out = 0;
  if ((events & SocketWatch::kRead) != 0) out |= EPOLLIN;
  if ((events & SocketWatch::kWrite) != 0) out |= EPOLLOUT;
  return out;
}

std::uint8_t from_epoll(std::uint32_t events) {
  std::uint8_t out = 0;
  if ((events & (EPOLLIN | EPOLLHUP)) != 0) out |= SocketWatch::kRead;
  if ((events & EPOLLOUT) != 0) out |= SocketWatch::kWrite;
  if ((events & EPOLLERR) != 0) out |= SocketWatch::kFailed;
  return out;
}

}  // namespace

Result<SocketWatch> SocketWatch::open() {
  const int set = ::epoll_create1(EPOLL_CLOEXEC);
  if (set < 0) return failed("epoll_create1");
  const int wakes = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wakes < 0) {
    Error error = failed("eventfd");
    ::close(set);
    return error;
  }
  SocketWatch watch(set, wakes);
  epoll_event event{.events = EPOLLIN, .data = {.fd = wakes}};
  if (::epoll_ctl(set, EPOLL_CTL_ADD, wakes, &event) != 0) return failed("epoll_ctl");
  return watch;
}

SocketWatch::SocketWatch(SocketWatch&& other) noexcept
    : set_(std::exchange(other.set_, -1)),
      wakes_(std::exchange(other.wakes_, -1)),
      sockets_(std::move(other.sockets_)),
      ready_(std::move(other.ready_)) {}

SocketWatch::~SocketWatch() {
  if (set_ >= 0) ::close(set_);
  if (wakes_ >= 0) ::close(wakes_);
}

SocketWatch::Watched& SocketWatch::at(int socket) {
  const auto number = static_cast<std::size_t>(socket);
  if (sockets_.size() <= number) sockets_.resize(2 * number + 1);
  return sockets_[number];
}

void SocketWatch::opened(int socket) { at(socket) = {.wanted = 0, .held = 0, .ours = true}; }

// The kernel takes a socket out of the set when it is closed.
void SocketWatch::closing(int socket) { at(socket) = {}; }

void SocketWatch::want(int socket, std::uint8_t events) {
  Watched& watched = at(socket);
  watched.wanted = events;
  const bool stays = events == 0 && watched.ours && watched.held == kRead;
  if (!stays && events != watched.held) hold(socket, watched, events);
}

void SocketWatch::hold(int socket, Watched& watched, std::uint8_t events) const {
  epoll_event event{.events = for_epoll(events), .data = {.fd = socket}};
  const int change = watched.held == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
  const int done = ::epoll_ctl(set_, events == 0 ? EPOLL_CTL_DEL : change, socket, &event);
  // A socket that cannot be watched is left to the timeouts of its transfer.
  watched.held = done == 0 ? events : std::uint8_t{0};
}

const std::vector<SocketWatch::Ready>& SocketWatch::wait(std::chrono::milliseconds patience) {
  std::array<epoll_event, 256> events;
  const int found = ::epoll_wait(set_, events.data(), static_cast<int>(events.size()),
                                 static_cast<int>(patience.count()));
  HAPAX_ASSERT(found >= 0 || errno == EINTR, "the set can be waited for");
  ready_.clear();
  for (int i = 0; i < found; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    const int socket = event.data.fd;
    if (socket == wakes_) {
      std::uint64_t count = 0;
      [[maybe_unused]] const auto got = ::read(wakes_, &count, sizeof count);
      continue;
    }
    Watched& watched = at(socket);
    if (watched.wanted == 0) {  // an idle connection ended; libcurl finds out when it wants it
      hold(socket, watched, 0);
      continue;
    }
    ready_.push_back({socket, from_epoll(event.events)});
  }
  return ready_;
}

void SocketWatch::wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto put = ::write(wakes_, &one, sizeof one);
}

}  // namespace hapax::webhook
