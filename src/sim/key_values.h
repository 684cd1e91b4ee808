// Registers as Redis' clients use them. Each name is used in one way only, so that a judge knows
// what may have happened to it (check_registers.cc).
#pragma once

#include <cstdint>
#include <string_view>

#include <hapax/time.h>

#include "sim/random.h"
#include "sim/request.h"

namespace hapax::sim {

struct KeyValueTurn {
  std::string_view value;  // that the request keeps
  std::uint32_t lease_ms = 0;
  Time wall{};  // what the client's clock shows
};

// One operation, and often a look at what it may have changed.
void add_key_value(SimRequest& request, Random& random, const KeyValueTurn& turn);

}  // namespace hapax::sim
