// Randomness of the kernel, good enough for keys. Never falls back to anything weaker: if the
// kernel has none to give, the process ends. Stateless, so any number of threads may share one.
#pragma once

#include "ports/entropy.h"

namespace hapax::host {

class HostEntropy final : public ports::Entropy {
 public:
  void fill(std::span<std::byte> into) override;
};

}  // namespace hapax::host
