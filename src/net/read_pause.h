// Whether a session wants to be offered bytes.
#pragma once

#include <utility>

#include "base/assert.h"

namespace hapax::net {

// A session may pause and resume from inside of its own call. So what was read before the pause is
// offered to it only at the end of the loop's turn, and nothing is read before that.
class ReadPause {
 public:
  void pause() { paused_ = true; }
  // True: the owner calls offer_begins() at the end of the turn.
  [[nodiscard]] bool resume() {
    return std::exchange(paused_, false) && !std::exchange(offer_due_, true);
  }
  void offer_begins() {
    HAPAX_ASSERT(offer_due_, "an offer follows a resume");
    offer_due_ = false;
  }

  [[nodiscard]] bool paused() const { return paused_; }
  [[nodiscard]] bool holds_reads() const { return paused_ || offer_due_; }

 private:
  bool paused_ = false;
  bool offer_due_ = false;
};

}  // namespace hapax::net
