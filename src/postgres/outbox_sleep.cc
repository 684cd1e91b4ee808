#include "postgres/outbox_sleep.h"

#include <algorithm>
#include <chrono>

#include <poll.h>
#include <sys/eventfd.h>

#include "base/assert.h"

namespace hapax::postgres {

namespace {

constexpr Duration kNapFirst{5};
constexpr Duration kNapMax{5'000};         // with notifications
constexpr Duration kNapMaxPolling{1'700};  // without
constexpr Duration kAnnounced{30'000};     // so long publishers notify, once asked to

}  // namespace

std::int64_t steady_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

WakeSigns::WakeSigns()
    : end(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      nudge(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  HAPAX_ASSERT(end.ok() && nudge.ok(), "a file descriptor is left");
}

OutboxSleep::OutboxSleep(OutboxSession& session, const WakeSigns& signs)
    : session_(session), signs_(signs), listener_(session) {}

bool OutboxSleep::announce(std::int64_t now_ms) {
  if (now_ms + nap_.count() < asked_until_ms_) return true;
  Values values;
  values.number(kAnnounced.count());
  if (!session_.ask("SELECT \"{schema}\".relay_announce($1)", values)) return true;
  const bool lapsed = now_ms >= asked_until_ms_;
  asked_until_ms_ = now_ms + kAnnounced.count();
  return !lapsed;
}

void OutboxSleep::renounce() {
  if (asked_until_ms_ == 0) return;
  if (session_.ask("SELECT \"{schema}\".relay_renounce()", Values{})) asked_until_ms_ = 0;
}

Duration OutboxSleep::prepare(Duration most, std::int64_t now_ms) {
  if (listener_.keep_up(now_ms)) nap_ = Duration{0};
  nap_ = std::clamp(nap_ * 2, kNapFirst, listener_.hears() ? kNapMax : kNapMaxPolling);
  // What was committed before publishers were asked to notify is looked for once more. Who
  // published before that and commits later notifies nobody; but naps start over and are hardly
  // longer than what has passed since, so it waits no longer than it took to commit.
  if (listener_.hears() && nap_ > 4 * kNapFirst && !announce(now_ms)) {
    nap_ = kNapFirst;
    return Duration{0};
  }
  return std::min({nap_, most, until_due(now_ms)});
}

bool OutboxSleep::wait(Duration most) {
  const std::int64_t now = steady_ms();
  Duration span{asleep_until_ms_.value_or(now) - now};
  if (span <= Duration{0}) {  // Otherwise a nudge ended the nap before its time.
    span = prepare(most, now);
    asleep_until_ms_ = now + span.count();
  }
  span = std::min({span, most, until_due(now)});
  if (span == Duration{0}) return look_again();
  pollfd watched[3] = {{signs_.end.get(), POLLIN, 0},
                       {listener_.socket(), POLLIN, 0},
                       {signs_.nudge.get(), POLLIN, 0}};
  if (::poll(watched, 3, static_cast<int>(span.count())) <= 0) return look_again();
  if (watched[1].revents != 0) {
    nap_ = Duration{0};
    listener_.read();
  }
  const bool only_nudged = watched[0].revents == 0 && watched[1].revents == 0;
  if (watched[2].revents != 0) {
    eventfd_t count = 0;
    ::eventfd_read(signs_.nudge.get(), &count);
  }
  return only_nudged ? false : look_again();
}

bool OutboxSleep::look_again() {
  asleep_until_ms_.reset();
  if (due_at_ms_ && *due_at_ms_ <= steady_ms()) due_at_ms_.reset();
  return true;
}

// A look may have asked some lanes only, so an earlier retry of another one counts, too.
void OutboxSleep::expect_retry_in(Duration span) {
  const std::int64_t due = steady_ms() + span.count();
  due_at_ms_ = std::min(due_at_ms_.value_or(due), due);
}

Duration OutboxSleep::until_due(std::int64_t now_ms) const {
  return due_at_ms_ ? std::max(Duration{*due_at_ms_ - now_ms}, kNapFirst) : kNapMax;
}

void OutboxSleep::stay_up() {
  nap_ = Duration{0};
  asleep_until_ms_.reset();
}

}  // namespace hapax::postgres
