#include "sim/entropy.h"

namespace hapax::sim {

void SimEntropy::fill(std::span<std::byte> into) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < into.size(); ++i) {
    word = i % 8 == 0 ? random_.next() : word >> 8;
    into[i] = static_cast<std::byte>(word & 0xff);
  }
}

}  // namespace hapax::sim
