// The judges of a run. Each looks at what the clients were told and at what can be read in the end,
// and knows nothing of how the store works. docs/internals/simulation.md lists the invariants.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/store.h>

#include "sim/effects.h"

namespace hapax::sim {

// What can be read from a store at rest.
struct Contents {
  std::map<std::string, Records, std::less<>> streams;
  std::map<std::string, StreamStats, std::less<>> stats;
  std::map<std::string, RegisterValue, std::less<>> registers;
  std::map<std::string, Position, std::less<>> positions;
  Time now{};
  // Streams that damage makes unreadable: they may refuse, but not lie.
  std::vector<std::string> unreadable;
  std::function<std::optional<IdStatus>(std::string_view stream, std::string_view id,
                                        std::string_view group)>
      find_id;
};

using Judgement = std::optional<Violation>;

// Records: I1 no loss, I2 and I4 identity, I3 conflicts, I5 sequences, I7 bytes, I12 windows,
// I15 all or nothing.
[[nodiscard]] Judgement check_streams(const History& history, const std::vector<Effect>& effects,
                                      const Contents& contents);
// Claims: I2, I3, I11 fencing, I13 results, I14 one winner, I16 nothing sticks.
[[nodiscard]] Judgement check_claims(const std::vector<Effect>& effects);
// Consumers: I2, I6 order, I7, I9 positions, I11 receipts.
[[nodiscard]] Judgement check_consumers(const std::vector<Effect>& effects,
                                        const Contents& contents);
// Registers: I1, I2, I4, I11 writers, I12 expiry, I14 one winner.
[[nodiscard]] Judgement check_registers(const std::vector<Effect>& effects,
                                        const Contents& contents);
// Commit ids (I13), transactions and producers (I11), positions (I9), all of the above.
[[nodiscard]] Judgement check_rest(const History& history, const std::vector<Effect>& effects,
                                   const Contents& contents);

// All of them.
[[nodiscard]] Judgement check_all(const History& history, const Contents& contents);

}  // namespace hapax::sim
