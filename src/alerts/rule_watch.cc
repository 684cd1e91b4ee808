#include "alerts/rule_watch.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "wire/json_text.h"

namespace hapax::alerts {

namespace {

const std::string kOtherProcesses = "others";

// As they are written in a register.
std::size_t names_bytes(const Subject& subject) {
  return wire::json_text(subject.tenant).size() + wire::json_text(subject.name).size() +
         wire::json_text(subject.part).size();
}

bool has_room(const Firings& firings, const Subject& subject) {
  if (firings.size() >= kFiringsMax) return false;
  std::size_t bytes = names_bytes(subject);
  for (const auto& [other, firing] : firings) bytes += names_bytes(other);
  return bytes <= kNamesBytesMax;
}

bool seen_lately(const std::pair<const std::string, Time>& seen, Time now) {
  return now - seen.second < kSeenLost;
}

}  // namespace

std::string Notice::key() const {
  const std::string what = kind == Kind::kBegins ? "begins"
                           : kind == Kind::kEnds ? "ends"
                                                 : base::format("continues {}", reminder);
  wire::JsonArray parts;
  for (const std::string_view part :
       {std::string_view(subject.tenant), std::string_view(subject.name),
        std::string_view(subject.part), std::string_view(what)}) {
    parts.add(wire::json_text(part));
  }
  parts.add(std::to_string(to_ms(since)));
  return parts.text();
}

void RuleWatch::see(std::span<const Observation> all, Time now) {
  if (first_ == Time{}) first_ = now;
  std::set<Subject> held;
  unknown_.clear();
  for (const Observation& one : all) {
    if (!one.known) {
      unknown_.insert(one.subject);
      continue;
    }
    if (!(one.value > rule_.above)) continue;
    held.insert(one.subject);
    Sight& sight = sights_[one.subject];
    if (!std::exchange(sight.holds, true)) sight.since = now;
    sight.value = one.value;
  }
  for (auto& [subject, sight] : sights_) {
    if (held.contains(subject) || unknown_.contains(subject)) continue;
    if (!std::exchange(sight.holds, false)) continue;
    sight.since = now;
  }
}

RuleWatch::Turn RuleWatch::judge(const Firings& remembered, Time now) const {
  Turn turn{.firings = remembered};
  for (const auto& [subject, sight] : sights_) {
    if (sight.holds) judge_held(turn, subject, sight, now);
  }
  for (const auto& [subject, firing] : remembered) {
    if (unknown_.contains(subject)) continue;
    const auto sight = sights_.find(subject);
    if (sight == sights_.end() || !sight->second.holds) judge_over(turn, subject, now);
  }
  return turn;
}

void RuleWatch::judge_held(Turn& turn, const Subject& subject, const Sight& sight, Time now) const {
  const auto found = turn.firings.find(subject);
  if (found == turn.firings.end()) {
    if (now - sight.since < rule_.hold) return;
    // Those behind one that has no room are not asked for theirs: there can be many.
    if (turn.left_out > 0 || !has_room(turn.firings, subject)) {
      ++turn.left_out;
      return;
    }
    Firing firing{.since = sight.since, .told = now, .value = sight.value};
    firing.seen_by[process_] = now;
    turn.firings.emplace(subject, std::move(firing));
    turn.notices.push_back({Notice::Kind::kBegins, subject, sight.value, sight.since, now});
    turn.changed = true;
    return;
  }
  Firing& firing = found->second;
  if (testify(firing, now)) turn.changed = true;
  if (rule_.repeat == Duration{0} || now - firing.told < rule_.repeat) return;
  firing.told = now;
  firing.value = sight.value;
  ++firing.reminders;
  turn.notices.push_back(
      {Notice::Kind::kContinues, subject, sight.value, firing.since, now, firing.reminders});
  turn.changed = true;
}

// More processes than the register names share one name, which ends by its age alone (F2).
bool RuleWatch::testify(Firing& firing, Time now) const {
  const auto said_lately = [&](const std::string& name) {
    const auto found = firing.seen_by.find(name);
    return found != firing.seen_by.end() && now - found->second < kSeenEvery;
  };
  if (said_lately(process_)) return false;
  const bool went =
      std::erase_if(firing.seen_by, [&](const auto& seen) { return !seen_lately(seen, now); }) > 0;
  const bool named = firing.seen_by.contains(process_) || firing.seen_by.size() < kWitnessesMax;
  const std::string& name = named ? process_ : kOtherProcesses;
  if (said_lately(name)) return went;
  firing.seen_by[name] = now;
  return true;
}

// F2: the last one that saw it ends it.
void RuleWatch::judge_over(Turn& turn, const Subject& subject, Time now) const {
  if (now - over_since(subject) < rule_.hold) return;
  Firing& firing = turn.firings.at(subject);
  const std::size_t before = firing.seen_by.size();
  std::erase_if(firing.seen_by, [&](const auto& seen) {
    return seen.first == process_ || !seen_lately(seen, now);
  });
  if (firing.seen_by.empty()) {
    turn.notices.push_back({Notice::Kind::kEnds, subject, firing.value, firing.since, now});
    turn.firings.erase(subject);
    turn.changed = true;
  } else if (firing.seen_by.size() != before) {
    turn.changed = true;
  }
}

Time RuleWatch::over_since(const Subject& subject) const {
  const auto sight = sights_.find(subject);
  return sight == sights_.end() ? first_ : sight->second.since;
}

}  // namespace hapax::alerts
