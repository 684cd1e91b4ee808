#include "front/duplicates.h"

namespace hapax::front {

namespace {

// Scopes are the callers' to invent: beyond this many names new ones are not counted.
constexpr std::size_t kNamesMax = 10'000;

std::int64_t hour_of(Time time) { return to_ms(time) / 3'600'000; }

// The stream or scope of an operation that met a duplicate; empty otherwise.
std::string_view duplicate_name(const Op& op, const Verdict& verdict) {
  if (std::holds_alternative<Duplicate>(verdict)) {
    const auto* append = std::get_if<Append>(&op);
    return append == nullptr ? std::string_view() : append->stream;
  }
  if (std::holds_alternative<DuplicateClaim>(verdict)) {
    const auto* claim = std::get_if<Claim>(&op);
    return claim == nullptr ? std::string_view() : claim->scope;
  }
  return {};
}

}  // namespace

void Duplicates::count(std::span<const Op> ops, const Answer& answer) {
  std::string_view run;
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < ops.size() && i < answer.verdicts.size(); ++i) {
    const std::string_view name = duplicate_name(ops[i], answer.verdicts[i]);
    if (name.empty()) continue;
    if (length != 0 && name != run) {
      add(run, length, answer.time);
      length = 0;
    }
    run = name;
    ++length;
  }
  if (length != 0) add(run, length, answer.time);
}

void Duplicates::add(std::string_view name, std::uint64_t count, Time when) {
  const std::lock_guard lock(mutex_);
  auto found = names_.find(std::string(name));
  if (found == names_.end()) {
    if (names_.size() >= kNamesMax) return;
    found = names_.emplace(name, Hours{}).first;
  }
  Hours& hours = found->second;
  const std::int64_t hour = hour_of(when);
  const auto place = static_cast<std::size_t>(hour % 24);
  if (hours.hours[place] != hour) hours.counts[place] = 0;
  hours.hours[place] = hour;
  hours.counts[place] += count;
  hours.in_all += count;
}

DuplicateCount Duplicates::of(std::string_view name, Time now) const {
  const std::lock_guard lock(mutex_);
  const auto found = names_.find(std::string(name));
  if (found == names_.end()) return {};
  DuplicateCount sum{found->second.in_all, 0};
  for (std::size_t i = 0; i < 24; ++i) {
    if (found->second.hours[i] > hour_of(now) - 24) sum.last_24h += found->second.counts[i];
  }
  return sum;
}

}  // namespace hapax::front
