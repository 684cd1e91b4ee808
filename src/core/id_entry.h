// What is kept of a message id: 48 bytes, whatever becomes of the record it came with.
#pragma once

#include <cstdint>
#include <tuple>
#include <type_traits>

#include <hapax/ids.h>
#include <hapax/time.h>

#include "base/assert.h"
#include "base/hash128.h"

namespace hapax::core {

class IdEntry {
 public:
  IdEntry(base::Hash128 hash, Fingerprint fingerprint, Sequence sequence, Time first_seen,
          Window window)
      : IdEntry(hash, fingerprint, checked(sequence.value),
                checked(static_cast<std::uint64_t>(to_ms(first_seen))), window.raw()) {}

  [[nodiscard]] base::Hash128 hash() const { return hash_; }
  [[nodiscard]] Fingerprint fingerprint() const { return fingerprint_; }
  [[nodiscard]] Sequence sequence() const { return Sequence{join(sequence_high_, sequence_low_)}; }
  [[nodiscard]] Time first_seen() const {
    return time_from_ms(static_cast<std::int64_t>(join(first_seen_ms_high_, first_seen_ms_low_)));
  }
  [[nodiscard]] Window window() const { return Window::from_raw(window_seconds_); }
  [[nodiscard]] Time expires_at() const { return window().end(first_seen()); }

  // A repeat may renew a window: that entry differs from the older one only by a longer window.
  [[nodiscard]] bool newer_than(const IdEntry& other) const {
    return std::tuple{first_seen(), window_seconds_, sequence()} >
           std::tuple{other.first_seen(), other.window_seconds_, other.sequence()};
  }

 private:
  IdEntry(base::Hash128 hash, Fingerprint fingerprint, std::uint64_t sequence,
          std::uint64_t first_seen_ms, std::uint32_t window_seconds)
      : hash_(hash),
        fingerprint_(fingerprint),
        sequence_low_(low(sequence)),
        first_seen_ms_low_(low(first_seen_ms)),
        sequence_high_(high(sequence)),
        first_seen_ms_high_(high(first_seen_ms)),
        window_seconds_(window_seconds) {}

  // 48 bits: 281 trillion records, or the year 10889. In two pieces, so that nothing is padded.
  static std::uint64_t checked(std::uint64_t value) {
    HAPAX_ASSERT(value < (std::uint64_t{1} << 48), "sequences and instants of ids fit in 48 bits");
    return value;
  }
  static constexpr std::uint32_t low(std::uint64_t value) {
    return static_cast<std::uint32_t>(value);
  }
  static constexpr std::uint16_t high(std::uint64_t value) {
    return static_cast<std::uint16_t>(value >> 32);
  }
  static constexpr std::uint64_t join(std::uint16_t upper, std::uint32_t lower) {
    return std::uint64_t{upper} << 32 | lower;
  }

  base::Hash128 hash_;
  Fingerprint fingerprint_;
  std::uint32_t sequence_low_;
  std::uint32_t first_seen_ms_low_;
  std::uint16_t sequence_high_;
  std::uint16_t first_seen_ms_high_;
  std::uint32_t window_seconds_;
};

// Snapshots store these bytes as they are.
static_assert(sizeof(IdEntry) == 48);
static_assert(std::is_trivially_copyable_v<IdEntry>);
static_assert(std::has_unique_object_representations_v<IdEntry>);

}  // namespace hapax::core
