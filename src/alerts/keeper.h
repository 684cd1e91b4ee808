// One rule over a store: what is told is told once, over restarts and for all processes that share
// the store. What has begun is a register; that register and the records that tell of the change
// are one commit, which only one process can make.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include <hapax/store.h>

#include "alerts/rule.h"
#include "alerts/rule_watch.h"

namespace hapax::alerts {

// The register of a rule: what has begun and not ended.
[[nodiscard]] std::string register_of(const Rule& rule);

class Keeper {
 public:
  struct Ports {
    Store& store;         // of the rule's tenant
    std::string stream;   // what is told is appended there; empty: nowhere
    std::string process;  // name of this one among those that share the store
    // F3: after the commit, so that a line is written of nothing that another process told.
    std::function<void(const Notice& notice)> told;
    std::function<void(std::uint64_t alerts)> left_out;  // there are too many at once
  };

  // The rule outlives it.
  Keeper(const Rule& rule, Ports ports)
      : rule_(rule), ports_(std::move(ports)), watch_(rule, ports_.process) {}
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  [[nodiscard]] const Rule& rule() const { return rule_; }

  // All there is to see now, at a time of the store. After an error nothing is lost: what it would
  // have told is told by the next call, unless it was stored after all. That one is then not in
  // the log.
  [[nodiscard]] Status look(std::span<const Observation> all, Time now);

 private:
  enum class Written : std::uint8_t { kDone, kOvertaken };
  [[nodiscard]] Result<Written> look_once(Time now);
  [[nodiscard]] Result<Written> write(const RuleWatch::Turn& turn, Version expected);

  const Rule& rule_;
  const Ports ports_;
  RuleWatch watch_;
  std::uint64_t left_out_ = 0;
};

}  // namespace hapax::alerts
