// What is kept of a settled claim, or of the answer of a commit that had an id: 72 bytes, and where
// in the journal the result's bytes are.
#pragma once

#include <cstdint>
#include <type_traits>

#include <hapax/ids.h>
#include <hapax/time.h>

#include "base/hash128.h"
#include "base/where.h"

namespace hapax::core {

struct SettledEntry {
  base::Hash128 key;
  Fingerprint fingerprint;
  std::uint64_t fence_number = 0;
  std::int64_t settled_ms = 0;
  std::uint32_t retention_seconds = 0;  // of the result
  std::uint32_t tombstone_seconds = 0;  // of "it happened"
  base::Where where;                    // of the result's frame
  std::uint16_t attempts = 0;
  std::uint16_t forgotten = 0;  // 1 = this entry only says that older ones no longer count

  [[nodiscard]] base::Hash128 hash() const { return key; }
  [[nodiscard]] Fence fence() const { return Fence{fence_number}; }
  [[nodiscard]] Time settled_at() const { return time_from_ms(settled_ms); }
  [[nodiscard]] Time result_until() const {
    return Window::from_raw(retention_seconds).end(settled_at());
  }
  [[nodiscard]] Time expires_at() const {
    return Window::from_raw(tombstone_seconds).end(settled_at());
  }
  // A result that was moved keeps its fence and lies in a later segment.
  [[nodiscard]] bool newer_than(const SettledEntry& other) const {
    if (fence_number != other.fence_number) return fence_number > other.fence_number;
    return where.segment > other.where.segment;
  }
};

// Snapshots store these bytes as they are.
static_assert(sizeof(SettledEntry) == 72);
static_assert(std::is_trivially_copyable_v<SettledEntry>);
static_assert(std::has_unique_object_representations_v<SettledEntry>);

}  // namespace hapax::core
