#include "core/state.h"

#include <algorithm>
#include <vector>

#include "base/assert.h"
#include "base/mutant.h"
#include "core/claims.h"
#include "core/consumers.h"
#include "core/registers.h"
#include "core/text_bytes.h"
#include "core/transactions.h"

namespace hapax::core {

namespace {

// Which overload family follows a fact.
struct Follow {
  State& state;
  base::Where at;
  Time now;
  Undo* undo;

  template <class F>
  void operator()(const F& fact) const {
    if constexpr (requires { apply_stream(state, fact, at, now, undo); }) {
      apply_stream(state, fact, at, now, undo);
    } else if constexpr (requires { apply_claim(state, fact, at, now, undo); }) {
      apply_claim(state, fact, at, now, undo);
    } else if constexpr (requires { apply_consumer(state, fact, at, now, undo); }) {
      apply_consumer(state, fact, at, now, undo);
    } else {
      apply_rest(state, fact, at, now, undo);
    }
  }
};

void drop_runs(State& state, Stream& stream, Sequence before) {
  RunList& runs = stream.runs;
  while (!runs.empty() && runs.front().last() < before) {
    drop_live(state, runs.front().at.segment, runs.front().at.length);
    state.shrink(*stream.tenant, text_bytes_of(runs.front()));
    runs.pop_front();
  }
}

void drop_removed(Stream& stream) {
  while (!stream.removed.empty()) {
    Spans::Span span = stream.removed.pop_front();
    if (span.last < stream.first) continue;
    span.first = std::max(span.first, stream.first);
    stream.removed.add(span);
    return;
  }
}

void drop_addressed(State& state, Stream& stream) {
  const auto end = stream.addressed.lower_bound(stream.first);
  for (auto at = stream.addressed.begin(); at != end; at = stream.addressed.erase(at)) {
    state.shrink(*stream.tenant, addressed_bytes(at->second));
  }
}

bool has_groups_over(const Stream& stream, Time now) {
  return !stream.groups_end.empty() && stream.groups_end.begin()->first <= now;
}

// Walks the keys of a stream once, over many calls. Answers the work it did.
std::size_t sweep_groups(State& state, Stream& stream, Time now, std::size_t work_max) {
  auto& sweep = stream.groups_sweep;
  if (sweep.below == Sequence{0}) sweep = {stream.groups_floor(now), 0};
  std::vector<GroupHash> forgotten;
  std::size_t work = 0;
  auto at = stream.group_last.lower_bound(sweep.next);
  for (; at != stream.group_last.end() && work < work_max; ++at, ++work) {
    if (at->second < sweep.below) forgotten.push_back(at->first);
  }
  const bool whole = at == stream.group_last.end();
  if (!whole) sweep.next = at->first;
  for (const GroupHash group : forgotten) stream.group_last.erase(group);
  state.shrink(*stream.tenant, forgotten.size() * kGroupBytes);
  ++work;  // The end of a walk is work, too.
  if (!whole) return work;
  std::erase_if(stream.groups_end,
                [&](const auto& end) { return end.first <= now && end.second <= sweep.below; });
  sweep = {};
  return work;
}

std::size_t collect_groups(State& state, Time now, std::size_t work_max) {
  std::size_t work = 0;
  while (work < work_max && !state.groups_due.empty() && state.groups_due.begin()->first <= now) {
    const StreamUid uid = state.groups_due.begin()->second;
    Stream* const stream = state.streams[uid.value - 1].get();
    if (stream == nullptr || !has_groups_over(*stream, now)) {
      state.groups_due.erase(state.groups_due.begin());
      ++work;
      continue;
    }
    work += sweep_groups(state, *stream, now, work_max - work);
  }
  return work;
}

std::size_t collect_producers(State& state, Time now, std::size_t work_max) {
  std::size_t work = 0;
  auto& due = state.producers_due;
  for (; work < work_max && !due.empty() && std::get<0>(*due.begin()) <= now; ++work) {
    const auto& [when, uid, name] = *due.begin();
    if (Stream* const stream = state.streams[uid.value - 1].get(); stream != nullptr) {
      const auto found = stream->producers.find(name);
      if (found != stream->producers.end() && found->second.is_forgotten(now)) {
        state.shrink(*stream->tenant, kProducerBytes + name.size());
        stream->producers.erase(found);
      }
    }
    due.erase(due.begin());
  }
  return work;
}

}  // namespace

void apply(State& state, const Fact& fact, base::Where at, Time now, Undo* undo) {
  std::visit(Follow{state, at, now, undo}, fact);
}

const Run* Stream::run_of(Sequence sequence) const {
  if (sequence < first || sequence > last) return nullptr;
  const auto after =
      std::upper_bound(runs.begin(), runs.end(), sequence,
                       [](Sequence wanted, const Run& run) { return wanted < run.first; });
  HAPAX_ASSERT(after != runs.begin(), "a kept record has a run");
  return &*std::prev(after);
}

bool Stream::is_for(std::string_view consumer, Sequence sequence) const {
  if (base::mutant(base::Mutant::kRedriveReachesAll)) return true;
  const auto found = addressed.find(sequence);
  return found == addressed.end() || found->second == consumer;
}

Sequence Stream::groups_floor(Time now) const {
  Sequence floor;
  for (const auto& [end, before] : groups_end) {
    if (end > now) break;
    floor = std::max(floor, before);
  }
  return floor;
}

Sequence Stream::last_of_group(GroupHash group, Time now) const {
  const Sequence* found = group_last.find(group);
  if (found == nullptr || *found < groups_floor(now)) return Sequence{0};
  return *found;
}

const Producer* Stream::find_producer(std::string_view producer, Time now) const {
  const auto found = producers.find(producer);
  if (found == producers.end() || found->second.is_forgotten(now)) return nullptr;
  return &found->second;
}

const Run* Stream::run_starting_at(Sequence first_of_run) const {
  const auto found =
      std::lower_bound(runs.begin(), runs.end(), first_of_run,
                       [](const Run& run, Sequence wanted) { return run.first < wanted; });
  return found == runs.end() || found->first != first_of_run ? nullptr : &*found;
}

GroupHash Stream::group_of(Sequence sequence) const {
  const Run* run = run_of(sequence);
  if (run == nullptr || run->groups.empty()) return 0;
  return run->groups[sequence.value - run->first.value];
}

Stream* State::find_stream(std::string_view name) const {
  const auto found = stream_names.find(name);
  return found == stream_names.end() ? nullptr : streams[found->second.value - 1].get();
}

Stream& State::stream(StreamUid uid) const {
  HAPAX_ASSERT(uid.value >= 1 && uid.value <= streams.size(), "a stream uid is known");
  Stream* stream = streams[uid.value - 1].get();
  HAPAX_ASSERT(stream != nullptr, "a fact names a stream that exists");
  return *stream;
}

Consumer* State::find_consumer(const Stream& stream, std::string_view name) {
  const auto found = stream.consumers.find(name);
  return found == stream.consumers.end() ? nullptr : &consumers.at(found->second);
}

const Consumer* State::find_consumer(const Stream& stream, std::string_view name) const {
  const auto found = stream.consumers.find(name);
  return found == stream.consumers.end() ? nullptr : &consumers.at(found->second);
}

void add_live(State& state, std::uint32_t segment, std::uint64_t bytes) {
  if (bytes == 0) return;  // A fact that found no room in its batch: it will be taken back.
  state.live_bytes[segment] += bytes;
}

void drop_live(State& state, std::uint32_t segment, std::uint64_t bytes) {
  if (bytes == 0) return;  // It was nowhere.
  const auto found = state.live_bytes.find(segment);
  HAPAX_ASSERT(found != state.live_bytes.end(), "live bytes lie in a known segment");
  HAPAX_ASSERT(found->second >= bytes, "a segment has no more dead than live bytes");
  found->second -= bytes;
  if (found->second == 0) state.live_bytes.erase(found);
}

Leftover collect(State& state, Time now, std::size_t work_max) {
  for (const StreamUid uid : state.trimmed) {
    Stream* stream = state.streams[uid.value - 1].get();
    if (stream == nullptr) continue;
    drop_runs(state, *stream, stream->first);
    drop_removed(*stream);
    drop_addressed(state, *stream);
  }
  state.trimmed.clear();
  for (const auto& stream : state.graveyard) drop_runs(state, *stream, stream->last.next());
  state.graveyard.clear();
  state.tenants.collect(now);
  collect_transactions(state, now, work_max);
  const bool claims = collect_claims(state, now, work_max) == work_max;
  const bool registers = collect_registers(state, now, work_max) == work_max;
  const bool groups = collect_groups(state, now, work_max) >= work_max;
  const bool producers = collect_producers(state, now, work_max) == work_max;
  return {claims || registers || groups || producers, expire(state, now, work_max)};
}

bool expire(State& state, Time now, std::size_t work_max) {
  const bool ids = state.ids.expire(now, work_max) == work_max;
  const bool settled = state.settled.expire(now, work_max) == work_max;
  return ids || settled;
}

void note_retention(State& state, const Stream& stream) {
  if (stream.settings.retention == Retention{}) {
    state.retaining.erase(stream.uid);
  } else {
    state.retaining.insert(stream.uid);
  }
}

std::optional<Sequence> retention_target(const State& state, const Stream& stream, Time now) {
  const Retention& retention = stream.settings.retention;
  Sequence target = stream.first;
  if (retention.count && stream.last.value > *retention.count) {
    target = std::max(target, Sequence{stream.last.value - *retention.count + 1});
  }
  std::uint64_t bytes = stream.bytes;
  for (auto at = stream.runs.ending_from(stream.first); at != stream.runs.end(); ++at) {
    const Run& run = *at;
    const bool too_old = retention.age && now - run.time >= *retention.age;
    const bool newest = run.last() == stream.last;  // never given up for bytes alone
    const bool too_many = retention.bytes && bytes > *retention.bytes && !newest;
    if (!too_old && !too_many) break;
    bytes -= run.at.length;
    target = std::max(target, run.last().next());
  }
  if (retention.acked_by_all && !stream.consumers.empty()) {
    const Sequence acked = acked_by_all(state, stream);
    target = std::max(target, std::min(acked, stream.last).next());
  }
  if (target <= stream.first) return std::nullopt;
  return target;
}

}  // namespace hapax::core
