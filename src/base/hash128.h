// A keyed 128-bit hash as a value. Who computes it is in the room `digest`.
#pragma once

#include <compare>
#include <cstdint>

#include <hapax/ids.h>

namespace hapax::base {

struct Hash128 {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  // Sum of two hashes: as hard to collide with as either of them, and cheaper than hashing again.
  [[nodiscard]] constexpr Hash128 plus(Hash128 other) const {
    const std::uint64_t sum = low + other.low;
    return {high + other.high + (sum < low ? 1 : 0), sum};
  }
  friend constexpr auto operator<=>(const Hash128&, const Hash128&) = default;
};

// Spreads a small number over 128 bits; distinct numbers give distinct hashes.
[[nodiscard]] constexpr Hash128 spread(std::uint64_t number) {
  std::uint64_t z = number + 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  z ^= z >> 31;
  return {number * 0xff51afd7ed558ccdULL, z};
}

[[nodiscard]] constexpr Fingerprint to_fingerprint(Hash128 hash) { return {hash.high, hash.low}; }

}  // namespace hapax::base
