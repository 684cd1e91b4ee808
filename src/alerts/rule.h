// A rule of `alerts:`: what is watched, and when that is worth an alert.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/time.h>

#include "delivery/workflow.h"

namespace hapax::alerts {

enum class Condition : std::uint8_t {
  kDeadLetters,       // of a workflow, that are kept
  kLag,               // of a workflow: since when its oldest record waits
  kRetryRate,         // of a workflow: attempts that failed and are repeated
  kRepeatRate,        // of a workflow: attempts under a key that was sent before
  kEndpointDisabled,  // it wants nothing any more
  kDuplicateRate,     // of a queue: what was recognised as a duplicate
  kQuota,             // of a tenant: how much of a limit is used
};
inline delivery::WordList words_of(Condition) {
  static constexpr std::array<std::string_view, 7> kWords{
      "dead-letters",   "lag",  "retry-rate", "repeat-rate", "endpoint-disabled",
      "duplicate-rate", "quota"};
  return kWords;
}

// What a threshold of the condition counts.
enum class Unit : std::uint8_t { kNothing, kRecords, kSeconds, kShare };
[[nodiscard]] constexpr Unit unit_of(Condition condition) {
  switch (condition) {
    case Condition::kDeadLetters:
      return Unit::kRecords;
    case Condition::kLag:
      return Unit::kSeconds;
    case Condition::kEndpointDisabled:
      return Unit::kNothing;
    default:
      return Unit::kShare;
  }
}

// Workflows that carry alerts are named so. No alert is about one of them: one that cannot be
// delivered would make the next.
inline constexpr std::string_view kWorkflowPrefix = "alerts.";
[[nodiscard]] inline bool carries_alerts(std::string_view workflow) {
  return workflow.starts_with(kWorkflowPrefix);
}

struct Rule {
  std::string id;
  Condition when = Condition::kDeadLetters;
  double above = 0;  // in the unit of the condition
  // So long it must hold before the alert begins, and must not hold before it ends.
  Duration hold{0};
  Duration repeat{0};                // between two reminders; 0: none
  std::string tenant{};              // watched alone; empty: all
  std::vector<std::string> names{};  // of workflows or queues, `*` at the end; none: all
  bool log = true;
  std::optional<delivery::Workflow>
      carrier{};  // takes alerts to their endpoints; none: there are none

  [[nodiscard]] bool watches(std::string_view of_tenant, std::string_view name) const;
};

}  // namespace hapax::alerts
