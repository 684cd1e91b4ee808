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
  const Duration due = std::exchange(due_in_, std::nullopt).value_or(nap_);
  return std::min({nap_, most, std::max(due, kNapFirst)});
}

void OutboxSource::wait(Duration most) {
  const Duration span = ready_to_sleep(most, steady_ms());
  if (span == Duration{0}) return;
  pollfd watched[2] = {{wake_, POLLIN, 0}, {-1, POLLIN, 0}};
  if (listener_) watched[1].fd = ::PQsocket(listener_->raw());
  if (::poll(watched, 2, static_cast<int>(span.count())) <= 0) return;
  if (watched[1].revents != 0) read_notifications();
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

}  // namespace hapax::postgres
