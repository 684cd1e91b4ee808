// Log time: what the store decides by. It never goes back and never jumps.
//
// W1: it moves with the steady clock; towards the wall clock it is only slewed, by a tenth.
// W2: a wall clock further off than `jump_max` is not believed: log time goes on from where it
//     was, and jump_pending() says so until a person accepts the new time (at a start).
// W4: what others wrote takes it ahead to their time, and no further.
#pragma once

#include <hapax/time.h>

#include "ports/clock.h"

namespace hapax::engine {

class LogClock {
 public:
  // `last` is the newest log time in the journal; none = a new store, which starts at wall time.
  enum class Jump : std::uint8_t { kRefuse, kAccept };
  LogClock(ports::Clock& clock, Duration jump_max);
  void start_at(Time last, Jump jump);

  [[nodiscard]] Time now();
  // Others have written with this log time: it is not before that from now on.
  void follow(Time others);
  // The latest that a right clock may show: the wall clock as far as it is believed, and no less
  // than log time, which lags behind it after a jump.
  [[nodiscard]] Time latest() const;
  [[nodiscard]] bool jump_pending() const { return jump_pending_; }

 private:
  ports::Clock& clock_;
  Duration jump_max_;
  Time now_;
  std::int64_t steady_ms_;
  bool jump_pending_ = false;
};

}  // namespace hapax::engine
