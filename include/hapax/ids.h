// Strong numbers: a sequence is not an epoch is not a fence. No implicit way in or out.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>

namespace hapax {

template <class Tag>
struct Number {
  std::uint64_t value = 0;
  constexpr Number() = default;
  constexpr explicit Number(std::uint64_t number) : value(number) {}
  [[nodiscard]] constexpr Number next() const { return Number{value + 1}; }
  friend constexpr auto operator<=>(Number, Number) = default;
};

using Sequence = Number<struct SequenceTag>;  // Place of a record in its stream; the first is 1.
using Epoch = Number<struct EpochTag>;        // Incarnation of a producer, transaction or owner.
using ProducerSequence = Number<struct ProducerSequenceTag>;  // Counted by a producer from 0.
using Fence = Number<struct FenceTag>;  // Proof of the latest claim; grows over the store's life.
using Token = Number<struct TokenTag>;  // Proof of the latest hand-out of a record.
using Version = Number<struct VersionTag>;  // Of a register; 0 = never set.

// 128-bit keyed hash of a content: tells a duplicate from a conflict.
struct Fingerprint {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  [[nodiscard]] std::string hex() const;
  friend constexpr auto operator<=>(const Fingerprint&, const Fingerprint&) = default;
};

// Hybrid logical clock: wall part never behind anything seen, counter breaks ties, node breaks the
// rest.
struct HybridTime {
  std::int64_t wall_ms = 0;
  std::uint32_t counter = 0;
  std::uint32_t node = 0;
  friend constexpr auto operator<=>(const HybridTime&, const HybridTime&) = default;
};

}  // namespace hapax
