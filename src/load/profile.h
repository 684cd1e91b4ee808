// The loads of the design "Exactly Once Patterns" (F007): its load tests, and of its stress tests
// those that a client can cause.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace hapax::load {

enum class JobKind : std::uint8_t {
  kClaim,   // claim a new key, then settle it
  kAppend,  // append under an id; some come again
  kOutbox,  // claim, then settle and append events in one commit; a relay acks them
  kExpire,  // set a key that goes at the same moment as thousands of others
};

// What the design asks of a step: so many percent within that.
struct Bar {
  std::string_view step;
  std::uint32_t percent = 99;
  std::uint32_t ms = 0;
};

struct Profile {
  std::string_view name;
  std::string_view meaning;
  JobKind job = JobKind::kClaim;
  std::uint32_t rate = 0;        // jobs a second
  std::uint32_t minutes = 0;     // in the design
  std::uint32_t duplicates = 0;  // percent
  std::uint32_t events = 0;      // per job
  Bar bar;
};

inline constexpr std::array kProfiles = {
    Profile{"idempotency_baseline", "a claim and its result per job", JobKind::kClaim, 1'000, 5, 0,
            0, Bar{"claim", 99, 5}},
    Profile{"duplicate_detection", "appends under ids, 20 % of them again", JobKind::kAppend, 500,
            5, 20, 0, Bar{"append", 99, 10}},
    Profile{"outbox_processing", "a result and 3 events per job in one commit, and their relay",
            JobKind::kOutbox, 100, 10, 0, 3, Bar{"commit", 99, 50}},
    Profile{"expiry_storm", "keys that all go at once, every 5 seconds", JobKind::kExpire, 1'000, 5,
            0, 0, Bar{"set", 99, 10}},
    Profile{"heavy_duplicates", "appends under ids, 60 % of them again", JobKind::kAppend, 500, 5,
            60, 0, Bar{"append", 99, 10}},
};

// Nothing, if there is none of that name.
[[nodiscard]] constexpr const Profile* find_profile(std::string_view name) {
  for (const Profile& profile : kProfiles) {
    if (profile.name == name) return &profile;
  }
  return nullptr;
}

}  // namespace hapax::load
