// A source that hands out what a test gives it, to engines over several endpoints.
#pragma once

#include <utility>
#include <vector>

#include "delivery/source.h"

namespace hapax::delivery {

// At most as much as is asked for.
class GivingSource final : public Source {
 public:
  std::vector<Handout> next{};
  std::vector<Settlement> settled{};
  std::vector<HandoutNumber> lost{};

  Result<Hand> take(const TakeCall& call) override {
    settled.insert(settled.end(), call.settled.begin(), call.settled.end());
    Hand hand{.lost = std::exchange(lost, {}), .lease_left = call.lease};
    while (!next.empty() && hand.records.size() < call.room) {
      hand.records.push_back(next.front());
      next.erase(next.begin());
    }
    return hand;
  }
  Status give_back(std::span<const Settlement> last) override {
    settled.insert(settled.end(), last.begin(), last.end());
    return Ok{};
  }
  void wait(Duration) override {}
  void nudge() override {}
};

}  // namespace hapax::delivery
