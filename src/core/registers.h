// Registers: a name and its latest value, which may go by itself. The rules are in registers.cc,
// what follows from a fact in apply_registers.cc.
//
// H3: a name never has the same version twice, also when it went in between: a register that is
//     made begins above every version that went or may go (State::version_floor).
// H4: from its expiry on a register is not there, whether collect() has come by or not.
// H5: of those who set a register only if it is absent one wins, until it goes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/hash128.h"
#include "core/state.h"

namespace hapax::core {

// The register of that name; null if there is none or it is past its expiry.
[[nodiscard]] const Register* find_register(const State& state, base::Hash128 name, Time now);

// What a register with that much text counts for in State::text_bytes.
[[nodiscard]] std::uint64_t register_bytes(std::size_t text, Time expires_at);

// Puts a register into the state with everything derived from it. REQUIRES: the name has none.
void add_register(State& state, base::Hash128 name, Register&& set);

// Removes at most `work_max` registers that are past their expiry.
// REQUIRES: `now` is not after the log time of any fact that may still be rolled back.
std::size_t collect_registers(State& state, Time now, std::size_t work_max);

}  // namespace hapax::core
