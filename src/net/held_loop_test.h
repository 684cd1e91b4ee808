// A loop without a thread: whatever it is given happens at once.
#pragma once

#include "net/link.h"

namespace hapax::net {

class HeldLoop final : public Loop {
 public:
  void post(std::function<void()> act) override { act(); }
  void at_end_of_turn(std::function<void()> act) override { act(); }
  void at(std::chrono::steady_clock::time_point, std::function<void()>) override {}
  [[nodiscard]] std::size_t number() const override { return 0; }
};

}  // namespace hapax::net
