// The death of the simulated process in the middle of a call. It is an exception because nothing
// else leaves a call without an answer, which is what dying does. Product code must neither catch
// it nor, in destructors, call a port: a process that is gone tidies nothing up.
#pragma once

#include <cstdint>

namespace hapax::sim {

struct Crash {
  enum class Kind : std::uint8_t {
    kKill,       // The process ends; the page cache, and so every finished write, stays.
    kPowerLoss,  // The machine ends; only what was synced is sure to stay.
  };

  Kind kind = Kind::kKill;
  std::uint64_t call = 0;  // The disk's call number it died at.
};

}  // namespace hapax::sim
