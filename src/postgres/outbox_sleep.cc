// How a relay of an outbox sleeps, and what wakes it.
#include <algorithm>
#include <chrono>
#include <utility>

#include <libpq-fe.h>
#include <poll.h>
#include <sys/eventfd.h>

#include "base/format.h"
#include "ports/entropy.h"
#include "postgres/outbox_source.h"

namespace hapax::postgres {

namespace {

constexpr Duration kNapFirst{5};
constexpr Duration kNapMax{5'000};         // with notifications
constexpr Duration kNapMaxPolling{1'700};  // without
constexpr Duration kAnnounced{30'000};     // so long publishers notify, once asked to
constexpr Duration kProbeTime{2'000};
constexpr Duration kListenFirst{100};  // after a failure to listen again, doubled …
constexpr Duration kListenMax{60'000};

}  // namespace

std::int64_t OutboxSource::steady_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

// Behind a pooler LISTEN may seem to work and never tell anything; so it is tried.
void OutboxSource::test_notify() {
  auto listener = open_session("hapax relay (listens)");
  if (!listener) return;
  const std::string nonce = base::format("hapax_probe_{}", ports::draw_u64(entropy_));
  if (!listener->run("LISTEN " + nonce) || !ask("NOTIFY " + nonce, Values{})) return;
  const auto told = listener->wait_notified(kProbeTime);
  if (!told || *told != Notified::kChannel) {
    ignore(listener->run("UNLISTEN " + nonce), "a pooled session may hear it for a while");
    return;
  }
  if (!listener->run("UNLISTEN *; LISTEN " + named("\"{schema}_outbox\""))) return;
  listener_ = std::move(*listener);
}

// One that got through once and was lost is made again, ever more rarely while that fails. What was
// published meanwhile notified nobody, so naps begin anew.
void OutboxSource::keep_listening(std::int64_t now_ms) {
  if (!listens_ || listener_ || now_ms < listen_at_ms_) return;
  test_notify();
  listen_pause_ = listener_ ? Duration{0} : std::clamp(listen_pause_ * 2, kListenFirst, kListenMax);
  listen_at_ms_ = now_ms + listen_pause_.count();
  if (listener_) nap_ = Duration{0};
}

bool OutboxSource::announce(std::int64_t now_ms) {
  if (now_ms + nap_.count() < asked_until_ms_) return true;
  Values values;
  values.number(kAnnounced.count());
  if (!ask("SELECT \"{schema}\".relay_announce($1)", values)) return true;
  const bool lapsed = now_ms >= asked_until_ms_;
  asked_until_ms_ = now_ms + kAnnounced.count();
  return !lapsed;
}

void OutboxSource::renounce() {
  if (!is_alone_ || asked_until_ms_ == 0) return;
  if (ask("SELECT \"{schema}\".relay_renounce()", Values{})) asked_until_ms_ = 0;
}

Duration OutboxSource::ready_to_sleep(Duration most, std::int64_t now_ms) {
  keep_listening(now_ms);
  nap_ = std::clamp(nap_ * 2, kNapFirst, listener_ ? kNapMax : kNapMaxPolling);
  // What was committed before publishers were asked to notify is looked for once more. Who
  // published before that and commits later notifies nobody; but naps begin anew and are hardly
  // longer than what has passed since, so it waits no longer than it took to commit.
  if (listener_ && nap_ > 4 * kNapFirst && !announce(now_ms)) {
    nap_ = kNapFirst;
    return Duration{0};
  }
  return std::min({nap_, most, until_due(now_ms)});
}

bool OutboxSource::wait(Duration most) {
  const std::int64_t now = steady_ms();
  Duration span{asleep_until_ms_.value_or(now) - now};
  if (span <= Duration{0}) {  // Otherwise a nudge ended the nap before its time.
    span = ready_to_sleep(most, now);
    asleep_until_ms_ = now + span.count();
  }
  span = std::min({span, most, until_due(now)});
  if (span == Duration{0}) return look_again();
  pollfd watched[3] = {{wake_, POLLIN, 0}, {-1, POLLIN, 0}, {nudge_, POLLIN, 0}};
  if (listener_) watched[1].fd = ::PQsocket(listener_->raw());
  if (::poll(watched, 3, static_cast<int>(span.count())) <= 0) return look_again();
  if (watched[1].revents != 0) read_notifications();
  const bool only_nudged = watched[0].revents == 0 && watched[1].revents == 0;
  if (watched[2].revents != 0) {
    eventfd_t count = 0;
    ::eventfd_read(nudge_, &count);
  }
  return only_nudged ? false : look_again();
}

bool OutboxSource::look_again() {
  asleep_until_ms_.reset();
  if (due_at_ms_ && *due_at_ms_ <= steady_ms()) due_at_ms_.reset();
  return true;
}

// A look may have asked some lanes only, so an earlier retry of another one counts, too.
void OutboxSource::expect_retry_in(Duration span) {
  const std::int64_t due = steady_ms() + span.count();
  due_at_ms_ = std::min(due_at_ms_.value_or(due), due);
}

Duration OutboxSource::until_due(std::int64_t now_ms) const {
  return due_at_ms_ ? std::max(Duration{*due_at_ms_ - now_ms}, kNapFirst) : kNapMax;
}

void OutboxSource::read_notifications() {
  nap_ = Duration{0};
  if (::PQconsumeInput(listener_->raw()) != 1) {
    listener_.reset();
    return;
  }
  while (PGnotify* told = ::PQnotifies(listener_->raw())) {
    ::PQfreemem(told);
    ++notifications_;
  }
}

void OutboxSource::wake() { ::eventfd_write(wake_, 1); }

void OutboxSource::nudge() { ::eventfd_write(nudge_, 1); }

}  // namespace hapax::postgres
