// The state machine of one rule: from what is seen, to what is told. Pure: time is a parameter, and
// nothing is stored here that must outlive the process.
//
// What must is the alerts that have begun and not ended (`Firings`): every process of a shared
// store has the same. F1: an alert begins and ends once, whoever sees it. F2: it does not end while
// a process that lives still sees its condition hold; a process that has said nothing for kSeenLost
// does not live. F3 stands in keeper.h. F4: what is not known neither begins an alert nor ends one.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <hapax/time.h>

#include "alerts/rule.h"

namespace hapax::alerts {

// Who sees that an alert holds says so again after so long, in log time.
inline constexpr Duration kSeenEvery{30'000};
inline constexpr Duration kSeenLost{90'000};
// What one rule remembers fits into a register: so many alerts, each seen by so many processes
// under their names and the others under one, in so many bytes of names of subjects.
inline constexpr std::size_t kFiringsMax = 50;
inline constexpr std::size_t kWitnessesMax = 8;
inline constexpr std::size_t kNamesBytesMax = std::size_t{32} << 10;

// What an alert is about, in UTF-8. Which members say something depends on the condition.
struct Subject {
  std::string tenant{};
  std::string name{};  // of a workflow, a queue, or a limit
  std::string part{};  // an endpoint of the workflow
  friend auto operator<=>(const Subject&, const Subject&) = default;
};

struct Observation {
  Subject subject{};
  double value = 0;
  bool known = true;  // false: the value means nothing
};

struct Firing {
  Time since{};  // from when on the condition held
  Time told{};
  std::uint32_t reminders = 0;
  double value = 0;                       // when it was told last
  std::map<std::string, Time> seen_by{};  // by process, the last time
  friend bool operator==(const Firing&, const Firing&) = default;
};
using Firings = std::map<Subject, Firing>;

struct Notice {
  enum class Kind : std::uint8_t { kBegins, kContinues, kEnds };
  Kind kind = Kind::kBegins;
  Subject subject{};
  double value = 0;
  Time since{};
  Time at{};
  std::uint32_t reminder = 0;  // of kContinues, from 1

  // The same for the same thing told, whoever tells it.
  [[nodiscard]] std::string key() const;
};

class RuleWatch {
 public:
  // `process` is the name of this one among those that share the store.
  RuleWatch(const Rule& rule, std::string process) : rule_(rule), process_(std::move(process)) {}

  // All there is to see now. A subject that is not among them does not have the condition.
  void see(std::span<const Observation> all, Time now);

  struct Turn {
    Firings firings{};  // what is to be remembered from now on
    std::vector<Notice> notices{};
    std::uint64_t left_out = 0;  // alerts for which there is no room
    bool changed = false;
  };
  // What follows from what was seen last, given what is remembered. It changes nothing here: if
  // somebody else was faster, it is asked again.
  [[nodiscard]] Turn judge(const Firings& remembered, Time now) const;

 private:
  struct Sight {
    bool holds = false;  // the condition, now
    Time since{};        // for how long it has, or has not
    double value = 0;
  };

  void judge_held(Turn& turn, const Subject& subject, const Sight& sight, Time now) const;
  // That this process sees it. Whether that changed what is remembered.
  bool testify(Firing& firing, Time now) const;
  void judge_over(Turn& turn, const Subject& subject, Time now) const;
  [[nodiscard]] Time over_since(const Subject& subject) const;

  const Rule& rule_;
  const std::string process_;
  std::map<Subject, Sight> sights_;  // of subjects that hold, or that held while this one looked
  std::set<Subject> unknown_;        // F4
  Time first_{};                     // when this one looked first; the beginning of 1970: never
};

}  // namespace hapax::alerts
