#include "core/owner_counts.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace hapax::core {

void OwnerCounts::add(std::uint32_t owner, std::uint32_t count) {
  HAPAX_ASSERT(owner != kNobody, "only somebody owns entries");
  if (used_ * 4 >= slots_.size() * 3) grow();
  OwnerCount& slot = slots_[slot_of(owner)];
  if (slot.owner == kNobody) {
    slot.owner = owner;
    ++used_;
  }
  slot.count += count;
}

void OwnerCounts::take(std::uint32_t owner) {
  HAPAX_ASSERT(!slots_.empty(), "what is taken back was counted");
  OwnerCount& slot = slots_[slot_of(owner)];
  HAPAX_ASSERT(slot.count > 0, "what is taken back was counted");
  --slot.count;
}

std::uint32_t OwnerCounts::count_of(std::uint32_t owner) const {
  return slots_.empty() ? 0 : slots_[slot_of(owner)].count;
}

std::vector<OwnerCount> OwnerCounts::list() const {
  std::vector<OwnerCount> counts;
  for (const OwnerCount& slot : slots_) {
    if (slot.count > 0) counts.push_back(slot);
  }
  std::ranges::sort(counts, {}, &OwnerCount::owner);
  return counts;
}

std::size_t OwnerCounts::slot_of(std::uint32_t owner) const {
  const std::size_t mask = slots_.size() - 1;
  // Owners are numbered one after the other: multiply, and take the well-mixed upper bits.
  std::size_t at = (std::uint64_t{owner} * 0x9e3779b97f4a7c15ULL >> 32) & mask;
  while (slots_[at].owner != owner && slots_[at].owner != kNobody) at = (at + 1) & mask;
  return at;
}

void OwnerCounts::grow() {
  const std::size_t size = slots_.empty() ? 4 : slots_.size() * 2;
  const auto old = std::exchange(slots_, std::vector<OwnerCount>(size, OwnerCount{kNobody, 0}));
  for (const OwnerCount& slot : old) {
    if (slot.owner != kNobody) slots_[slot_of(slot.owner)] = slot;
  }
}

}  // namespace hapax::core
