// What share of something is something else, lately: of two counters, over about the last minutes.
// What was counted longer ago counts for less: half as much after each kHalfLife.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include <hapax/time.h>

#include "alerts/rule_watch.h"

namespace hapax::alerts {

class Shares {
 public:
  static constexpr Duration kHalfLife{150'000};
  static constexpr double kWholeMin = 20;  // of fewer, a share says nothing

  // Counters as they are now. Whoever is seen for the first time has counted nothing before; a
  // counter that fell began again at 0.
  void see(const Subject& subject, std::uint64_t part, std::uint64_t whole, Time now);
  [[nodiscard]] std::optional<double> share_of(const Subject& subject) const;
  // Forgets subjects that were not seen at that time.
  void keep_seen(Time now);

 private:
  struct Counted {
    std::uint64_t part = 0;
    std::uint64_t whole = 0;
    double part_lately = 0;
    double whole_lately = 0;
    Time at{};
  };
  std::map<Subject, Counted> counted_;
};

}  // namespace hapax::alerts
