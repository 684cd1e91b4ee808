// Instants and spans. The store decides everything in log time: milliseconds since 1970 that never
// go back and never jump, stored with every batch of the journal (docs/internals/time.md).
#pragma once

#include <chrono>
#include <cstdint>

namespace hapax {

using Duration = std::chrono::milliseconds;

// A clock nobody can read: log time is always handed in.
struct LogTime {
  using rep = std::int64_t;
  using period = std::milli;
  using duration = Duration;
};
using Time = std::chrono::time_point<LogTime, Duration>;

[[nodiscard]] constexpr Time time_from_ms(std::int64_t ms) { return Time{Duration{ms}}; }
[[nodiscard]] constexpr std::int64_t to_ms(Time time) { return time.time_since_epoch().count(); }

// How long something is remembered: whole seconds, or for ever. Spans outside of what fits become
// the nearest that does, which is still outside of what a store accepts (limits.h).
class Window {
 public:
  constexpr explicit Window(std::chrono::seconds span)
      : seconds_(span.count() < 0           ? 0
                 : span.count() >= kForever ? kForever - 1
                                            : static_cast<std::uint32_t>(span.count())) {}
  static constexpr Window forever() { return Window{kForever}; }
  static constexpr Window from_raw(std::uint32_t seconds) { return Window{seconds}; }

  [[nodiscard]] constexpr bool is_forever() const { return seconds_ == kForever; }
  [[nodiscard]] constexpr std::uint32_t raw() const { return seconds_; }
  // The first instant at which something first seen at `since` is no longer remembered.
  [[nodiscard]] constexpr Time end(Time since) const {
    return is_forever() ? Time::max() : since + std::chrono::seconds{seconds_};
  }
  friend constexpr bool operator==(Window, Window) = default;

 private:
  static constexpr std::uint32_t kForever = 0xffffffff;
  constexpr explicit Window(std::uint32_t seconds) : seconds_(seconds) {}

  std::uint32_t seconds_;
};

}  // namespace hapax
