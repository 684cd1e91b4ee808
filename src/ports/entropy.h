// Randomness from outside: salts, keys, identities.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace hapax::ports {

class Entropy {
 public:
  Entropy() = default;
  Entropy(const Entropy&) = delete;
  Entropy& operator=(const Entropy&) = delete;
  virtual ~Entropy() = default;
  virtual void fill(std::span<std::byte> into) = 0;
};

[[nodiscard]] inline std::uint64_t draw_u64(Entropy& entropy) {
  std::uint64_t value = 0;
  entropy.fill(std::as_writable_bytes(std::span{&value, 1}));
  return value;
}

}  // namespace hapax::ports
