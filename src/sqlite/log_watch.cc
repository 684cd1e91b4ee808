#include "sqlite/log_watch.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/assert.h"

namespace hapax::sqlite {

namespace {

constexpr Duration kNapFirst{1};
constexpr Duration kNapMax{1'000};
constexpr Duration kNapMaxUnwatched{40};

std::int64_t steady_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

void clear(const pollfd& eventfd) {
  eventfd_t count = 0;
  if (eventfd.revents != 0) ::eventfd_read(eventfd.fd, &count);
}

}  // namespace

LogWatch::LogWatch(const std::string& path) {
  wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  nudge_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  HAPAX_ASSERT(wake_ >= 0 && nudge_ >= 0, "a file descriptor is left");
  watch_ = ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  const std::string log = path + "-wal";
  if (watch_ >= 0 && ::inotify_add_watch(watch_, log.c_str(), IN_MODIFY) < 0) {
    ::close(std::exchange(watch_, -1));
  }
}

LogWatch::~LogWatch() {
  ::close(wake_);
  ::close(nudge_);
  if (watch_ >= 0) ::close(watch_);
}

// A commit is written to the log first and counts a moment later; so after a sign of life the naps
// are short again.
bool LogWatch::wait(Duration most) {
  const std::int64_t now = steady_ms();
  if (!asleep_since_ms_ || Duration{now - *asleep_since_ms_} >= nap_) {
    asleep_since_ms_ = now;
    nap_ = std::clamp(nap_ * 2, kNapFirst, watch_ >= 0 ? kNapMax : kNapMaxUnwatched);
  }  // Otherwise a nudge ended the nap before its time.
  const Duration left = std::max(nap_ - Duration{now - *asleep_since_ms_}, Duration{0});
  std::array<pollfd, 3> watched = {pollfd{wake_, POLLIN, 0}, pollfd{watch_, POLLIN, 0},
                                   pollfd{nudge_, POLLIN, 0}};
  const int found =
      ::poll(watched.data(), watched.size(), static_cast<int>(std::min(left, most).count()));
  if (found > 0) {
    clear(watched[0]);
    clear(watched[2]);
    if (watched[0].revents == 0 && watched[1].revents == 0) return false;
  }
  asleep_since_ms_.reset();
  if (found <= 0 || watched[1].revents == 0) return true;
  nap_ = Duration{0};
  std::array<char, 4096> events{};
  while (::read(watch_, events.data(), events.size()) > 0) ++signs_;
  return true;
}

void LogWatch::wake() { ::eventfd_write(wake_, 1); }

void LogWatch::nudge() { ::eventfd_write(nudge_, 1); }

}  // namespace hapax::sqlite
