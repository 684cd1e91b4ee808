// The history as a flat list of operations: commits and transactions taken apart, so that a checker
// sees for each operation what its client was told, or that nobody knows.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/history.h"

namespace hapax::sim {

// A broken promise. `invariant` is a number of docs/internals/simulation.md.
struct Violation {
  std::string invariant;
  std::string key;
  std::string what;
};

struct Effect {
  enum class Certainty : std::uint8_t {
    kTold,     // `verdict` is the answer; see `applied`
    kApplied,  // it happened, but nobody was told with which verdict
    kUnknown,  // it may have happened at any time between `invoked` and `ended`
  };
  Certainty certainty = Certainty::kUnknown;
  const Op* op = nullptr;
  const Verdict* verdict = nullptr;
  const Attempt* attempt = nullptr;
  bool applied = false;  // it counts: its commit was not refused as a whole
  Time time{};           // log time of the answer

  [[nodiscard]] bool told() const { return certainty == Certainty::kTold; }
  [[nodiscard]] bool unknown() const { return certainty == Certainty::kUnknown; }
  [[nodiscard]] bool repeated() const { return told() && attempt->answer.repeated; }
  [[nodiscard]] std::uint64_t invoked() const { return attempt->invoked; }
  [[nodiscard]] std::uint64_t ended() const { return attempt->ended; }
  // The verdict, if the operation was applied and told so.
  template <class Kind>
  [[nodiscard]] const Kind* got() const {
    return told() && applied ? std::get_if<Kind>(verdict) : nullptr;
  }
  template <class Kind>
  [[nodiscard]] const Kind* as() const {
    return std::get_if<Kind>(op);
  }
};

// In the order in which the attempts ended.
[[nodiscard]] std::vector<Effect> flatten(const History& history);

}  // namespace hapax::sim
