// How many entries each owner (a stream) has in one generation: a flat table of 8 bytes a slot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hapax::core {

struct OwnerCount {
  std::uint32_t owner = 0;
  std::uint32_t count = 0;
  friend constexpr bool operator==(const OwnerCount&, const OwnerCount&) = default;
};

class OwnerCounts {
 public:
  static constexpr std::uint32_t kNobody = 0xffffffff;

  // REQUIRES: owner != kNobody.
  void add(std::uint32_t owner, std::uint32_t count);
  void take(std::uint32_t owner);  // REQUIRES: count_of(owner) > 0.
  [[nodiscard]] std::uint32_t count_of(std::uint32_t owner) const;

  // Sorted by owner; without those that have nothing.
  [[nodiscard]] std::vector<OwnerCount> list() const;
  [[nodiscard]] std::size_t bytes() const { return slots_.size() * sizeof(OwnerCount); }

 private:
  // The owner's slot or the free one where it would go. REQUIRES: a free slot.
  [[nodiscard]] std::size_t slot_of(std::uint32_t owner) const;
  void grow();

  std::vector<OwnerCount> slots_;  // 0 or a power of two; kNobody = free
  std::size_t used_ = 0;
};

}  // namespace hapax::core
