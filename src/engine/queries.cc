#include "engine/queries.h"

#include <algorithm>

#include "core/claims.h"
#include "core/consumers.h"
#include "core/registers.h"
#include "core/show_text.h"
#include "engine/frames.h"
#include "engine/prepare.h"

namespace hapax::engine {

Result<ReadPlan> plan_read(const core::State& state, const ReadRange& range) {
  const core::Stream* stream = state.find_stream(range.stream);
  if (stream == nullptr) return core::no_stream(range.stream);
  ReadPlan plan;
  plan.range.first = stream->first;
  plan.range.last = stream->last;
  plan.range.stream_uid = stream->uid.value;
  std::uint64_t bytes = 0;
  Sequence next = std::max(range.from, stream->first);
  const auto has_room = [&] { return bytes < range.bytes_max || plan.places.empty(); };
  while (next <= stream->last && plan.places.size() < range.max && has_room()) {
    const core::Run& run = *stream->run_of(next);
    for (; next <= run.last() && plan.places.size() < range.max; next = next.next()) {
      if (!stream->keeps(next)) continue;
      plan.places.push_back({run.at, run.first, next, run.time, nullptr});
      bytes += run.at.length / run.count;
      if (bytes >= range.bytes_max) break;
    }
  }
  return plan;
}

Status open_places(std::vector<RecordPlace>& places, journal::SegmentFiles& files) {
  std::uint32_t segment = 0;
  std::shared_ptr<const ports::File> file;
  for (RecordPlace& place : places) {
    if (place.run.segment != segment) {
      HAPAX_TRY(file, files.open(place.run.segment));
      segment = place.run.segment;
    }
    place.file = file;
  }
  return Ok{};
}

namespace {

Error needs_group(const IdQuestion& question) {
  return Error{Errc::kInvalidArgument,
               "ids of stream " + core::shown(question.stream) +
                   " are unique per group, and no record without a group has the id " +
                   core::shown(question.id) + "; ask with the group of the record"};
}

}  // namespace

Result<std::optional<IdStatus>> look_up_id(const core::State& state, const digest::HashKey& key,
                                           const IdQuestion& question, Time now) {
  const core::Stream* stream = state.find_stream(question.stream);
  if (stream == nullptr) return core::no_stream(question.stream);
  if (question.id.empty()) return Error{Errc::kInvalidArgument, "id is empty"};
  if (question.group && question.group->empty()) return core::empty_error("group");
  core::AppendHashes hashes;
  hashes.id = id_hash(key, question.id);
  hashes.group = group_hash(key, question.group);
  const core::IdEntry* entry = state.ids.find(core::scoped_id(*stream, hashes), now);
  // Never "not there" of a group that was not looked at.
  const bool in_any_group = stream->settings.id_scope == IdScope::kGroup && !question.group;
  if (entry == nullptr && in_any_group) return needs_group(question);
  if (entry == nullptr) return std::optional<IdStatus>{};
  return std::optional<IdStatus>{
      {entry->sequence(), entry->fingerprint(), entry->first_seen(), entry->expires_at()}};
}

ClaimLook look_up_claim(const core::State& state, base::Hash128 key, Time now) {
  ClaimLook look;
  look.status = core::claim_status(state, key, now);
  if (!look.status || look.status->state != ClaimState::kCompleted) return look;
  const core::SettledEntry* entry = state.settled.find(key, now);
  if (entry == nullptr || entry->result_until() <= now) return look;
  look.result = ResultFetch{0, entry->where, nullptr};
  return look;
}

Result<std::optional<ClaimStatus>> complete(ClaimLook look, journal::SegmentFiles& files) {
  if (look.result) {
    HAPAX_TRY(look.result->file, files.open(look.result->where.segment));
    HAPAX_TRY(SettledResult settled, read_result(*look.result));
    look.status->owner = std::move(settled.owner);
    look.status->result = std::move(settled.result);
  }
  return std::move(look.status);
}

std::optional<RegisterValue> look_up_register(const core::State& state, base::Hash128 name,
                                              Time now) {
  const core::Register* found = core::find_register(state, name, now);
  if (found == nullptr) return std::nullopt;
  return RegisterValue{std::string(found->value()), found->version, found->at, found->expires_at};
}

RegisterPage list_registers(const core::State& state, const RegisterScan& scan, Time now) {
  RegisterPage page;
  page.next = scan.cursor;
  std::uint64_t looked = 0;
  do {
    page.next = state.registers.visit_slots(
        page.next, scan.max, [&](base::Hash128, const std::shared_ptr<const core::Register>& set) {
          if (set->expires_at <= now || !set->name().starts_with(scan.prefix)) return;
          page.names.emplace_back(set->name());
        });
    looked += scan.max;
    // Those of other tenants are no part of the answer, and do not show in the number of pages.
  } while (page.next != 0 && page.names.empty() && !scan.prefix.empty() &&
           looked + scan.max <= limits::kReadMax);
  return page;
}

std::optional<Position> look_up_position(const core::State& state, std::string_view source) {
  const Position* found = state.positions.find(source);
  if (found == nullptr) return std::nullopt;
  return *found;
}

Result<std::optional<ProducerStatus>> look_up_producer(const core::State& state,
                                                       std::string_view stream,
                                                       std::string_view producer, Time now) {
  const core::Stream* known = state.find_stream(stream);
  if (known == nullptr) return core::no_stream(stream);
  const core::Producer* found = known->find_producer(producer, now);
  if (found == nullptr) return std::optional<ProducerStatus>{};
  return std::optional<ProducerStatus>{{found->epoch, found->next, found->retired}};
}

namespace {

StreamStats stats_of(const core::State& state, const core::Stream& stream, Time now) {
  StreamStats stats;
  stats.stream = stream.name;
  stats.settings = stream.settings;
  stats.first = stream.first;
  stats.last = stream.last;
  stats.bytes = stream.bytes;
  stats.ids = state.ids.count_of(static_cast<std::uint32_t>(stream.uid.value));
  stats.producers = stream.producers_active;
  stats.created_at = stream.created_at;
  stats.horizon = stream.horizon(now);
  for (const auto& [consumer, uid] : stream.consumers) {
    stats.consumers.push_back(core::consumer_stats(stream, state.consumers.at(uid)));
  }
  return stats;
}

}  // namespace

Result<StreamStats> describe_stream(const core::State& state, std::string_view name, Time now) {
  const core::Stream* stream = state.find_stream(name);
  if (stream == nullptr) return core::no_stream(name);
  return stats_of(state, *stream, now);
}

Result<UnackedPage> find_unacked(const core::State& state, const UnackedScan& scan) {
  const core::Stream* stream = state.find_stream(scan.stream);
  if (stream == nullptr) return core::no_stream(scan.stream);
  return core::list_unacked(*stream, state.find_consumer(*stream, scan.consumer), scan);
}

StreamPage describe_streams(const core::State& state, const StreamScan& scan, Time now) {
  StreamPage page;
  for (std::uint64_t at = scan.cursor; at < state.streams.size(); ++at) {
    if (state.streams[at] == nullptr) continue;
    if (page.streams.size() == scan.max) {
      page.next = at;
      break;
    }
    page.streams.push_back(stats_of(state, *state.streams[at], now));
  }
  return page;
}

std::vector<std::string> list_streams(const core::State& state) {
  std::vector<std::string> names;
  names.reserve(state.stream_names.size());
  for (const auto& [name, uid] : state.stream_names) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

core::StreamUid sweep_retention(core::Turn& turn, core::StreamUid from, std::size_t count) {
  constexpr std::size_t kLooksPerTrim = 16;
  const auto& retaining = turn.state().retaining;
  std::size_t looks = count * kLooksPerTrim;
  for (auto at = retaining.lower_bound(from); at != retaining.end(); ++at, --looks) {
    if (looks == 0 || count == 0) return *at;
    const core::Stream& stream = turn.state().stream(*at);
    const auto target = core::retention_target(turn.state(), stream, turn.now());
    if (!target) continue;
    turn.emit(core::trimmed(stream, *target, turn.now()));
    --count;
  }
  return core::StreamUid{0};
}

}  // namespace hapax::engine
