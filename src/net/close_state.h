// How a connection ends. Its two sides end apart: the peer sends no more, or we do.
#pragma once

#include <cstdint>

#include "base/assert.h"

namespace hapax::net {

// Our side passes these stages in their order, may leave some out, and never goes back.
class CloseState {
 public:
  // The session sends no more. False: it said so before.
  [[nodiscard]] bool finish() { return reach(Stage::kFinishing); }
  // The last byte has left; what still comes is thrown away. False: this is so already.
  [[nodiscard]] bool linger() {
    HAPAX_ASSERT(stage_ != Stage::kOpen, "only a connection that finishes lingers");
    return reach(Stage::kLingering);
  }
  // False: it was closed before.
  [[nodiscard]] bool close() { return reach(Stage::kClosed); }
  void end_peer() { peer_ended_ = true; }

  // The session may still send, and is offered what comes.
  [[nodiscard]] bool open() const { return stage_ == Stage::kOpen; }
  [[nodiscard]] bool lingering() const { return stage_ == Stage::kLingering; }
  [[nodiscard]] bool closed() const { return stage_ == Stage::kClosed; }
  [[nodiscard]] bool peer_ended() const { return peer_ended_; }

 private:
  enum class Stage : std::uint8_t { kOpen, kFinishing, kLingering, kClosed };

  bool reach(Stage stage) {
    if (stage_ >= stage) return false;
    stage_ = stage;
    return true;
  }

  Stage stage_ = Stage::kOpen;
  bool peer_ended_ = false;
};

}  // namespace hapax::net
