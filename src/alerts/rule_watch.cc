#include "alerts/rule_watch.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/format.h"
#include "wire/json_text.h"

namespace hapax::alerts {

namespace {

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
  for (const Observation& one : all) {
    if (!(one.value > rule_.above)) continue;
    held.insert(one.subject);
    Sight& sight = sights_[one.subject];
    if (!std::exchange(sight.holds, true)) sight.since = now;
    sight.value = one.value;
  }
  for (auto& [subject, sight] : sights_) {
    if (held.contains(subject) || !std::exchange(sight.holds, false)) continue;
    sight.since = now;
  }
}

RuleWatch::Turn RuleWatch::judge(const Firings& remembered, Time now) const {
  Turn turn{.firings = remembered};
  for (const auto& [subject, sight] : sights_) {
    if (sight.holds) judge_held(turn, subject, sight, now);
  }
  for (const auto& [subject, firing] : remembered) {
    const auto sight = sights_.find(subject);
    if (sight == sights_.end() || !sight->second.holds) judge_over(turn, subject, now);
  }
  return turn;
}

void RuleWatch::judge_held(Turn& turn, const Subject& subject, const Sight& sight, Time now) const {
  const auto found = turn.firings.find(subject);
  if (found == turn.firings.end()) {
    if (now - sight.since < rule_.hold) return;
    if (turn.firings.size() >= kFiringsMax) {
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
  Time& seen = firing.seen_by[process_];
  if (seen == Time{} || now - seen >= kSeenEvery) {
    seen = now;
    turn.changed = true;
  }
  if (rule_.repeat == Duration{0} || now - firing.told < rule_.repeat) return;
  firing.told = now;
  firing.value = sight.value;
  ++firing.reminders;
  turn.notices.push_back(
      {Notice::Kind::kContinues, subject, sight.value, firing.since, now, firing.reminders});
  turn.changed = true;
}

// R2: the last one that saw it ends it.
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
