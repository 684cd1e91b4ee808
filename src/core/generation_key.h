// Names a slice of expiry time: all entries that expire within it are remembered, stored and
// dropped together.
#pragma once

#include <algorithm>
#include <bit>
#include <chrono>
#include <compare>
#include <cstdint>

#include <hapax/time.h>

namespace hapax::core {

struct GenerationKey {
  static constexpr std::uint8_t kForever = 0xff;

  std::uint8_t width_log2 = kForever;  // a slice is 2^width_log2 seconds wide
  std::int64_t slot = 0;               // which one, counted from 1970

  [[nodiscard]] static constexpr GenerationKey forever() { return {}; }

  // Slices are a sixteenth to an eighth of what remains of the window: so many entries share one,
  // few generations are open at a time, and an entry is kept at most an eighth longer than needed.
  // What is already expired goes to the slice of `now`, which is not over yet.
  [[nodiscard]] static constexpr GenerationKey of(Time expires_at, Time now) {
    if (expires_at == Time::max()) return forever();
    const Time last = std::max(expires_at, now + Duration{1});
    const auto remaining = std::chrono::ceil<std::chrono::seconds>(last - now);
    if (remaining > kSpanMax) return forever();  // Lookups are exact, it only stays in memory.
    const auto sixteenth = static_cast<std::uint64_t>(remaining.count() + 15) / 16;
    const auto log2 = std::bit_width(std::bit_ceil(sixteenth)) - 1;
    const std::int64_t second =
        std::chrono::floor<std::chrono::seconds>(last).time_since_epoch().count();
    return {static_cast<std::uint8_t>(log2), second >> log2};
  }

  // The first instant at which all of its entries are expired.
  [[nodiscard]] constexpr Time end() const {
    if (width_log2 == kForever) return Time::max();
    return Time{std::chrono::seconds{(slot + 1) * (std::int64_t{1} << width_log2)}};
  }

  // Whether of() can have answered it. REQUIRED of whatever is compared or asked for its end.
  [[nodiscard]] constexpr bool is_possible() const {
    if (width_log2 == kForever) return slot == 0;
    if (width_log2 > kWidthLog2Max) return false;
    return slot >= 0 && slot < kEndMax.count() >> width_log2;
  }

  // In the order they die.
  friend constexpr std::strong_ordering operator<=>(const GenerationKey& a,
                                                    const GenerationKey& b) {
    if (a.end() != b.end()) return to_ms(a.end()) <=> to_ms(b.end());
    return a.width_log2 <=> b.width_log2;
  }
  friend constexpr bool operator==(const GenerationKey&, const GenerationKey&) = default;

 private:
  // The longest finite window is 2^32 - 2 seconds.
  static constexpr std::chrono::seconds kSpanMax{std::int64_t{1} << 32};
  static constexpr std::uint8_t kWidthLog2Max = 28;  // a sixteenth of that
  // Log time has 48 bits of milliseconds, and the longest window is added to it.
  static constexpr std::chrono::seconds kEndMax{std::int64_t{1} << 39};
};

}  // namespace hapax::core
