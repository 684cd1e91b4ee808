// How a relay of an outbox sleeps, and what wakes it: naps that grow while nothing comes, and end
// early for notifications, nudges, the next retry and the end of the relay.
#pragma once

#include <cstdint>
#include <optional>

#include "host/descriptor.h"
#include "postgres/outbox_listener.h"
#include "postgres/outbox_session.h"

namespace hapax::postgres {

[[nodiscard]] std::int64_t steady_ms();

// What other threads tell a relay. Eventfds.
struct WakeSigns {
  WakeSigns();
  host::Descriptor end;    // readable from the wish to end on
  host::Descriptor nudge;  // readable after a nudge, until the sleep ends
};

class OutboxSleep {
 public:
  OutboxSleep(OutboxSession& session, const WakeSigns& signs);

  void listen() { listener_.open(); }
  [[nodiscard]] const OutboxListener& listener() const { return listener_; }

  // See relay::Source.
  [[nodiscard]] bool wait(Duration most);
  // What wait() does before it sleeps, and for how long it then does; 0 = look again first.
  [[nodiscard]] Duration prepare(Duration most, std::int64_t now_ms);

  // A look has told of a retry that is due then.
  void expect_retry_in(Duration span);
  void stay_up();  // Something came: naps start over.
  // Under load nobody sleeps, and publishers need not notify. REQUIRES: no other relay does sleep.
  void renounce();
  void forget_asked() { asked_until_ms_ = 0; }  // by a server that may be another one now

 private:
  // Whether publishers had been asked before to notify until the nap is over.
  [[nodiscard]] bool announce(std::int64_t now_ms);
  [[nodiscard]] bool look_again();
  [[nodiscard]] Duration until_due(std::int64_t now_ms) const;

  OutboxSession& session_;
  const WakeSigns& signs_;
  OutboxListener listener_;
  std::optional<std::int64_t> asleep_until_ms_{};  // of a nap that nudges interrupt
  Duration nap_{0};                                // the latest; grows while nothing comes
  std::optional<std::int64_t> due_at_ms_{};        // the next retry that a look has told of
  std::int64_t asked_until_ms_ = 0;                // steady; so long publishers notify
};

}  // namespace hapax::postgres
