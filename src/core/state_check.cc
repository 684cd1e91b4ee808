// What the parts of a snapshot say about each other. Each part was checked by itself when it was
// read; here is what only all of them together can break.
#include <map>
#include <string>
#include <utility>

#include "base/format.h"
#include "core/claims.h"
#include "core/state_codec.h"
#include "core/state_parts.h"

namespace hapax::core {

namespace {

Error contradiction(const std::string& what) {
  return Error{Errc::kCorruption, "the parts of a snapshot contradict each other: " + what};
}

// The next run would lie before them in time.
Status check_streams(const State& state, Time now) {
  for (const auto& stream : state.streams) {
    if (stream == nullptr) continue;
    const bool made_later = stream->created_at > now || stream->horizon_floor > now;
    if (made_later || (!stream->runs.empty() && stream->runs.back().time > now)) {
      return contradiction("stream '" + stream->name + "' is from the future");
    }
  }
  return Ok{};
}

// D2: what a later settle of the key adds must count as newer.
Status check_fences(const State& state) {
  Status status = Ok{};
  state.open_claims.for_each([&](base::Hash128 key, const auto& claim) {
    const SettledEntry* settled = state.settled.find(key, Time::min());
    if (settled != nullptr && settled->fence() >= claim->fence) {
      status = contradiction(
          base::format("the open claim of fence {} is older than what its key was settled with",
                       claim->fence.value));
    }
  });
  return status;
}

// Every result that may still be asked for is counted where it lies.
Status check_results(const State& state, Time now) {
  std::map<std::pair<Time, std::uint32_t>, std::uint64_t> needed;
  state.settled.for_each(now, [&](const SettledEntry& entry) {
    if (entry.forgotten != 0 || entry.where.length == 0 || now >= result_slice_end(entry)) return;
    needed[{result_slice_end(entry), entry.where.segment}] += entry.where.length;
  });
  for (const auto& [place, bytes] : needed) {
    const auto slice = state.results_end.find(place.first);
    const bool known = slice != state.results_end.end() && slice->second.contains(place.second);
    if (!known || slice->second.at(place.second) < bytes) {
      return contradiction(
          base::format("results of {} bytes in segment {} are not counted", bytes, place.second));
    }
  }
  return Ok{};
}

}  // namespace

std::string wrong_with(const IdEntry& entry, Time now) {
  return entry.first_seen() > now ? "is from the future" : "";
}

std::string wrong_with(const SettledEntry& entry, Time now, Fence next) {
  if (!is_plausible(entry.settled_at())) return "was settled at an impossible time";
  if (entry.settled_at() > now) return "is from the future";
  if (entry.fence() >= next) {
    return base::format("has fence {}; the next one is {}", entry.fence_number, next.value);
  }
  if (entry.forgotten > 1) return "is neither forgotten nor not";
  if (entry.retention_seconds > entry.tombstone_seconds) return "forgets that it has a result";
  return "";
}

Status check_restored(const State& state, Time now) {
  HAPAX_CHECK(check_streams(state, now));
  HAPAX_CHECK(check_fences(state));
  return check_results(state, now);
}

}  // namespace hapax::core
