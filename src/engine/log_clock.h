// Log time: what the store decides by. It never jumps, and goes back in one case only (W8).
// docs/internals/time.md has the rules as a whole.
//
// W1: log time moves with the steady clock. It approaches the wall clock by a tenth of the elapsed
//     time, and is set to it when it is at most kStepMax behind.
// W2: a wall clock that moves by more than `jump_max` while the process runs is not believed:
//     wall() goes on with the steady clock, and jump_pending() says so.
// W4: what others wrote takes log time ahead to their time, and no further.
// W7: a start is not a jump: log time goes on from what the log proves, and the wall clock, however
//     far ahead, is approached as in W1.
// W8: only what others have decided by an older time takes log time back.
#pragma once

#include <hapax/time.h>

#include "core/moment.h"
#include "ports/clock.h"

namespace hapax::engine {

class LogClock {
 public:
  enum class Jump : std::uint8_t { kRefuse, kAccept };
  // Of a new store: log time starts at the wall clock.
  LogClock(ports::Clock& clock, Duration jump_max);
  // Of a store that has a log: log time starts at `last`, or at the wall clock if a person accepts
  // to leave out what lies between.
  void start_at(Time last, Jump jump);

  [[nodiscard]] Time now();
  // Others have written with this log time: it is not before that from now on.
  void follow(Time others);
  // W8: others have decided by an older time: log time is not after `others` from now on. REQUIRES:
  // nobody was told that something is over by a later time, except while the log was full (W5).
  void go_back(Time others);

  // At the latest reading of now(): the wall clock as far as it is believed, …
  [[nodiscard]] Time wall() const { return wall_; }
  // … and how far log time was behind what the wall clock really showed; negative: ahead of it.
  [[nodiscard]] Duration lag() const { return seen_ - now_; }
  [[nodiscard]] bool jump_pending() const { return jump_pending_; }

 private:
  void look_at_wall(Duration elapsed);

  ports::Clock& clock_;
  Duration jump_max_;
  Time now_;
  Time seen_;  // the wall clock at the latest reading
  Time wall_;  // the same as far as it is believed
  std::int64_t steady_ms_;
  Duration unslewed_{0};  // elapsed time that log time was not slewed for yet
  bool unset_ = false;    // no wall clock was believed since the start
  bool jump_pending_ = false;
};

}  // namespace hapax::engine
