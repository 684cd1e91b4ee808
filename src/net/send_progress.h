// Whether a peer still takes what it is sent.
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

#include "net/send_queue.h"

namespace hapax::net {

// A peer that takes nothing costs memory for as long as it stays, whoever it is. Bytes are counted
// so that sending costs no look at the clock; the answer is as exact as the times it is asked at.
class SendProgress {
 public:
  // Something waits, and since `stuck_max` nothing of it has left. Asked four times a second.
  [[nodiscard]] bool is_stuck(const SendQueue& queue, std::chrono::steady_clock::time_point now,
                              std::chrono::steady_clock::duration stuck_max) {
    const bool moves = std::exchange(seen_total_, queue.sent_total()) != queue.sent_total();
    const bool was_owed = std::exchange(owed_, queue.size() != 0);
    if (moves || !was_owed || !owed_) moved_ = now;
    return owed_ && now - moved_ >= stuck_max;
  }

 private:
  // As they were when it was last asked.
  std::uint64_t seen_total_ = 0;
  bool owed_ = false;                            // There was something to send.
  std::chrono::steady_clock::time_point moved_;  // Set at the first question.
};

}  // namespace hapax::net
