#include "postgres/outbox_listener.h"

#include <algorithm>
#include <utility>

#include <libpq-fe.h>

#include "base/format.h"
#include "host/entropy.h"
#include "ports/entropy.h"

namespace hapax::postgres {

namespace {

constexpr Duration kProbeTime{2'000};
constexpr Duration kListenFirst{100};  // after a failure to listen again, doubled …
constexpr Duration kListenMax{60'000};

}  // namespace

void OutboxListener::open() {
  connect();
  works_ = hears();
}

// Behind a pooler LISTEN may seem to work and never tell anything; so it is tried.
void OutboxListener::connect() {
  auto listener = session_.open_beside("hapax relay (listens)");
  if (!listener) return;
  host::HostEntropy entropy;
  const std::string nonce = base::format("hapax_probe_{}", ports::draw_u64(entropy));
  if (!listener->run("LISTEN " + nonce) || !session_.ask("NOTIFY " + nonce, Values{})) return;
  const auto told = listener->wait_notified(kProbeTime);
  if (!told || *told != Notified::kChannel) {
    ignore(listener->run("UNLISTEN " + nonce), "a pooled session may hear it for a while");
    return;
  }
  if (!listener->run("UNLISTEN *; LISTEN " + session_.named("\"{schema}_outbox\""))) return;
  connection_ = std::move(*listener);
}

// One that got through once and was lost is made again, ever more rarely while that fails.
bool OutboxListener::keep_up(std::int64_t now_ms) {
  if (!works_ || hears() || now_ms < at_ms_) return false;
  connect();
  pause_ = hears() ? Duration{0} : std::clamp(pause_ * 2, kListenFirst, kListenMax);
  at_ms_ = now_ms + pause_.count();
  return hears();
}

int OutboxListener::socket() const { return hears() ? ::PQsocket(connection_->raw()) : -1; }

void OutboxListener::read() {
  if (::PQconsumeInput(connection_->raw()) != 1) {
    connection_.reset();
    return;
  }
  while (PGnotify* told = ::PQnotifies(connection_->raw())) {
    ::PQfreemem(told);
    ++notifications_;
  }
}

}  // namespace hapax::postgres
