// Randomness that repeats: salts, keys and identities of a simulated run come from its seed.
#pragma once

#include "ports/entropy.h"
#include "sim/random.h"

namespace hapax::sim {

class SimEntropy final : public ports::Entropy {
 public:
  explicit SimEntropy(Random random) : random_(random) {}

  void fill(std::span<std::byte> into) override;

 private:
  Random random_;
};

}  // namespace hapax::sim
