// The only source of chance in a simulation. The same seed gives the same numbers on every
// compiler and machine, so no std:: distribution may be used beside it. One stream per concern:
// split() by name, so that an extra draw in one concern does not shift the others.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string_view>

#include "base/assert.h"

namespace hapax::sim {

struct Rate {
  std::uint32_t numerator = 0;
  std::uint32_t denominator = 1;
};

inline constexpr Rate kNever{0, 1};
inline constexpr Rate kAlways{1, 1};

// xoshiro256**, seeded through splitmix64 (Blackman and Vigna).
class Random {
 public:
  explicit Random(std::uint64_t seed) : seed_(seed) {
    std::uint64_t z = seed;
    for (std::uint64_t& word : state_) word = mixed(z += kGolden);
  }

  [[nodiscard]] std::uint64_t next() {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // In [0, end). The bias of the remainder is below 2^-32 for the small ranges of a test.
  [[nodiscard]] std::uint64_t below(std::uint64_t end) {
    HAPAX_ASSERT(end > 0, "a range to draw from is not empty");
    return next() % end;
  }

  // In [low, high], both included.
  [[nodiscard]] std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    HAPAX_ASSERT(low <= high, "a range to draw from is in order");
    return low + below(high - low + 1);
  }

  [[nodiscard]] bool chance(Rate rate) { return below(rate.denominator) < rate.numerator; }
  [[nodiscard]] bool chance(std::uint32_t numerator, std::uint32_t denominator) {
    return chance(Rate{numerator, denominator});
  }

  // Depends on the seed and the label only, not on what has been drawn so far.
  [[nodiscard]] Random split(std::string_view label) const {
    std::uint64_t hash = 0xcbf29ce484222325ULL;
    for (const char letter : label) {
      hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3ULL;
    }
    return split(hash);
  }
  [[nodiscard]] Random split(std::uint64_t label) const {
    return Random(mixed(seed_ + kGolden) ^ mixed(label + 2 * kGolden));
  }

  [[nodiscard]] std::uint64_t seed() const { return seed_; }

 private:
  static constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15ULL;

  static constexpr std::uint64_t mixed(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }

  std::uint64_t seed_;
  std::array<std::uint64_t, 4> state_{};
};

}  // namespace hapax::sim
