// Hears the notifications of publishers, on a connection of its own.
#pragma once

#include <cstdint>
#include <optional>

#include <hapax/time.h>

#include "postgres/connection.h"
#include "postgres/outbox_session.h"

namespace hapax::postgres {

class OutboxListener {
 public:
  explicit OutboxListener(OutboxSession& session) : session_(session) {}

  // Whether notifications get through is tried, for two seconds at most. If not, nobody tries
  // again.
  void open();
  // Makes a lost connection again, if its time has come. `now_ms` is steady time.
  // True: it hears again, and what was published meanwhile notified nobody.
  [[nodiscard]] bool keep_up(std::int64_t now_ms);

  [[nodiscard]] bool hears() const { return connection_.has_value(); }
  [[nodiscard]] int socket() const;  // readable when there is something to read(); -1 = none
  void read();                       // REQUIRES: hears(). Afterwards it may not.
  [[nodiscard]] std::uint64_t notifications() const { return notifications_; }

 private:
  void connect();

  OutboxSession& session_;
  std::optional<Connection> connection_;
  bool works_ = false;      // notifications got through at the start
  Duration pause_{0};       // between attempts to listen again
  std::int64_t at_ms_ = 0;  // steady; not before
  std::uint64_t notifications_ = 0;
};

}  // namespace hapax::postgres
