#include "sim/faults.h"

#include <utility>

namespace hapax::sim {
namespace {

constexpr std::array<std::string_view, kFaultKinds> kWords{
    "short_write",     "disk_full",    "no_space",
    "write_error",     "sync_error",   "folder_sync_error",
    "change_error",    "read_error",   "reserve_ignored",
    "cache_dropped",   "crash_before", "crash_middle",
    "crash_after",     "kill",         "power_loss",
    "scripted_failure"};

template <std::size_t... Index>
std::array<Random, kFaultKinds> split_by_word(const Random& random,
                                              std::index_sequence<Index...> /*all*/) {
  return {random.split(kWords[Index])...};
}

}  // namespace

std::string_view word_of(InjectedFault fault) { return kWords[static_cast<std::size_t>(fault)]; }

FaultPlan::FaultPlan(const Random& random, const DiskFaults& faults)
    : faults_(faults), dice_(split_by_word(random, std::make_index_sequence<kFaultKinds>())) {}

void FaultPlan::clear_script() {
  crash_.reset();
  fail_.reset();
  fail_look_.reset();
}

bool FaultPlan::fires(InjectedFault fault, Rate rate) {
  if (rate.numerator == 0 || !dice(fault).chance(rate)) return false;
  count(fault);
  return true;
}

std::optional<CrashPoint> FaultPlan::crash_of_call(std::uint64_t call) {
  if (crash_ && crash_->call == call) return std::exchange(crash_, std::nullopt);
  const auto by_chance = [&](When when) {
    const bool power = dice(InjectedFault::kPowerLoss).chance(faults_.power_loss_share);
    return CrashPoint{call, when, power ? Crash::Kind::kPowerLoss : Crash::Kind::kKill};
  };
  // Each is asked every time, so that one that fires does not shift the streams of the others.
  // Counting is left to the disk: of two that fire only one happens.
  const auto drawn = [&](InjectedFault fault, Rate rate) {
    return rate.numerator != 0 && dice(fault).chance(rate);
  };
  const bool before = drawn(InjectedFault::kCrashBefore, faults_.crash_before);
  const bool middle = drawn(InjectedFault::kCrashMiddle, faults_.crash_middle);
  const bool after = drawn(InjectedFault::kCrashAfter, faults_.crash_after);
  if (before) return by_chance(When::kBefore);
  if (middle) return by_chance(When::kMiddle);
  if (after) return by_chance(When::kAfter);
  return std::nullopt;
}

std::optional<Errc> FaultPlan::failure_of_call(std::uint64_t call) { return failure(fail_, call); }

std::optional<Errc> FaultPlan::failure_of_look(std::uint64_t look) {
  return failure(fail_look_, look);
}

std::optional<Errc> FaultPlan::failure(const std::optional<FailPoint>& point,
                                       std::uint64_t number) {
  if (!point || number < point->call) return std::nullopt;
  if (number > point->call && point->lasting == Lasting::kOnce) return std::nullopt;
  count(InjectedFault::kScriptedFailure);
  return point->code;
}

}  // namespace hapax::sim
