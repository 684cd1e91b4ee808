// The clock of an outbox in an SQLite file.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include <hapax/time.h>

namespace hapax::sqlite {

// What is said to last longer was written while the clock was ahead, and is over.
inline constexpr Duration kLeaseMax{3'660'000};

// Wall time: it is the only clock that processes share through the file.
inline std::int64_t wall_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

// Whether a lease of another relay runs, as seen by one that leases for `span`.
inline bool runs(std::int64_t lease_until, std::int64_t now, Duration span) {
  const Duration most = std::max(span + Duration{60'000}, kLeaseMax);
  return lease_until > now && lease_until <= now + most.count();
}

}  // namespace hapax::sqlite
