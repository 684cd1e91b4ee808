// Streams as bytes: the settings, where the records lie, what is known of groups and producers.
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "base/assert.h"
#include "base/format.h"
#include "core/state_parts.h"
#include "core/text_bytes.h"

namespace hapax::core {

template <class Io, Is<Stream> F>
void fields(Io& io, F& f) {
  io.all(f.name, f.settings, f.created_at, f.horizon_floor, f.first, f.last, f.bytes);
}
template <class Io, Is<Producer::Former> F>
void fields(Io& io, F& f) {
  io.all(f.epoch, f.next, f.last);
}
template <class Io, Is<Producer> F>
void fields(Io& io, F& f) {
  io.all(f.epoch, f.next, f.retired, f.former);
  io.since(2, f.forgotten_at);
}

namespace {

// --- runs ----------------------------------------------------------------------------------------

// A run as the difference to the one before it: records are mostly appended one batch after the
// other, so a run takes about ten bytes.
struct PackedRun {
  std::uint32_t count = 0;
  std::uint32_t largest = 0;
  std::uint64_t segment = 0;  // zigzag, from the run before
  std::uint64_t offset = 0;   // zigzag, from the end of the run before if in the same segment
  std::uint32_t length = 0;
  std::uint64_t wait = 0;   // milliseconds since the run before; log time does not go back
  std::string_view groups;  // eight bytes per record, or nothing
};

}  // namespace

template <class Io, Is<PackedRun> F>
void fields(Io& io, F& f) {
  io.all(f.count, f.largest, f.segment, f.offset, f.length, f.wait, f.groups);
}

namespace {

// Where the first run of a stream is counted from.
Run origin(Time created_at, Sequence first) {
  Run run;
  run.first = first;
  run.time = created_at;
  return run;
}

std::uint64_t offset_after(const Run& before, std::uint64_t segment) {
  return segment == before.at.segment ? std::uint64_t{before.at.offset} + before.at.length : 0;
}

PackedRun pack(const Run& run, const Run& before) {
  HAPAX_ASSERT(run.time >= before.time, "log time does not go back");
  PackedRun packed;
  packed.count = run.count;
  packed.largest = run.largest;
  packed.segment = zigzag(std::uint64_t{run.at.segment} - before.at.segment);
  packed.offset = zigzag(run.at.offset - offset_after(before, run.at.segment));
  packed.length = run.at.length;
  packed.wait = static_cast<std::uint64_t>((run.time - before.time).count());
  packed.groups = {reinterpret_cast<const char*>(run.groups.data()),
                   run.groups.size() * sizeof(GroupHash)};
  return packed;
}

bool read_groups(std::string_view bytes, Run& run) {
  if (bytes.empty()) return true;
  if (bytes.size() != run.count * sizeof(GroupHash)) return false;
  run.groups.resize(run.count);
  std::memcpy(run.groups.data(), bytes.data(), bytes.size());
  return std::any_of(run.groups.begin(), run.groups.end(),
                     [](GroupHash group) { return group != 0; });
}

// The run that follows `before`, if there can be such a run.
std::optional<Run> unpack(const PackedRun& packed, const Run& before) {
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint32_t>::max();
  const std::uint64_t segment = before.at.segment + unzigzag(packed.segment);
  const std::uint64_t offset = offset_after(before, segment) + unzigzag(packed.offset);
  const bool nowhere = segment == 0 && offset == 0 && packed.length == 0;
  const bool somewhere = segment > 0 && segment <= kMax && offset <= kMax && packed.length > 0 &&
                         offset + packed.length <= kMax;
  if (!nowhere && !somewhere) return std::nullopt;
  if (packed.count == 0 || packed.count > kRunRecordsMax) return std::nullopt;
  if (packed.count > 1 && packed.length > kRunBytesMax) return std::nullopt;
  const std::uint64_t most = std::uint64_t{packed.largest} * packed.count;
  if (packed.largest > packed.length || most < packed.length) return std::nullopt;
  if (packed.wait >= kSequenceEnd) return std::nullopt;
  Run run;
  run.first = Sequence{before.first.value + before.count};
  run.count = packed.count;
  run.largest = packed.largest;
  run.at = {static_cast<std::uint32_t>(segment), static_cast<std::uint32_t>(offset), packed.length};
  run.time = before.time + Duration{static_cast<std::int64_t>(packed.wait)};
  if (!is_plausible(run.time) || !read_groups(packed.groups, run)) return std::nullopt;
  return run;
}

// `Out` is Writing or Spelling.
template <class Runs, class Out>
void put_runs(const Runs& runs, Sequence kept_from, Time created_at, Out& out) {
  const auto kept =
      std::lower_bound(runs.begin(), runs.end(), kept_from,
                       [](const Run& run, Sequence wanted) { return run.last() < wanted; });
  out.put(static_cast<std::uint64_t>(runs.end() - kept));
  if (kept == runs.end()) return;
  out.put(kept->first);
  const Run start = origin(created_at, kept->first);
  const Run* before = &start;
  for (auto run = kept; run != runs.end(); before = &*run, ++run) {
    out.put(pack(*run, *before));
    out.kept.add(run->at.segment, run->at.length);
  }
}

// Only as many as were trimmed and not collected yet are walked over here.
void encode_runs(Stream& stream, Writing& out) {
  const auto kept = stream.runs.ending_from(stream.first);
  for (auto run = stream.runs.begin(); run != kept; ++run) {
    out.waiting.add(run->at.segment, run->at.length);
  }
  if (stream.runs.size() <= kFewRuns) {
    put_runs(stream.runs, stream.first, stream.created_at, out);
  } else {
    out.share(RunsImage{stream.uid, stream.first, stream.created_at, stream.runs.snapshot()});
  }
}

// The runs hold every record from `first` to `last`, in their order.
Status decode_runs(Reading& in, Stream& stream) {
  const std::uint64_t count = in.count();
  Sequence first = stream.last.next();
  if (count > 0) in.get(first);
  Run before = origin(stream.created_at, first);
  std::uint64_t bytes = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    PackedRun packed;
    in.get(packed);
    if (!in.get.ok()) return in.unreadable();
    std::optional<Run> run = unpack(packed, before);
    if (!run) return in.broken(base::format("has an impossible run, number {}", i));
    bytes += run->at.length;
    in.live.add(run->at.segment, run->at.length);
    before = {run->first, run->count, run->largest, run->at, run->time, {}};
    stream.runs.push_back(*std::move(run));
  }
  if (!in.get.ok()) return in.unreadable();
  const bool begins = count == 0 ? stream.first == stream.last.next()
                                 : first > Sequence{0} && first <= stream.first &&
                                       stream.first <= stream.runs.front().last();
  const Sequence end = count == 0 ? stream.last : stream.runs.back().last();
  if (!begins || end != stream.last) {
    return in.broken(base::format("keeps records {} to {} but has runs from {} to {}",
                                  stream.first.value, stream.last.value, first.value, end.value));
  }
  if (bytes != stream.bytes) {
    return in.broken(base::format("counts {} bytes; its runs have {}", stream.bytes, bytes));
  }
  return Ok{};
}

// --- removed records -----------------------------------------------------------------------------

void encode_removed(const Stream& stream, FieldWriter& put) {
  std::vector<Spans::Span> spans;
  stream.removed.for_each([&](Spans::Span span) {
    if (span.last < stream.first) return;  // Trimmed meanwhile.
    span.first = std::max(span.first, stream.first);
    spans.push_back(span);
  });
  put(std::uint64_t{spans.size()});
  Sequence before = stream.first;
  for (const Spans::Span& span : spans) {
    put(span.first.value - before.value);
    put(span.last.value - span.first.value);
    before = span.last;
  }
}

Status decode_removed(Reading& in, Stream& stream) {
  const std::uint64_t count = in.count();
  std::uint64_t before = stream.first.value;
  for (std::uint64_t i = 0; i < count && in.get.ok(); ++i) {
    std::uint64_t distance = 0;
    std::uint64_t length = 0;
    in.get.all(distance, length);
    const bool apart = i == 0 || distance >= 2;  // Neighbours would be one span.
    if (!apart || distance >= kSequenceEnd || length >= kSequenceEnd) in.get.refuse();
    const Sequence first{before + distance};
    const Sequence last{first.value + length};
    if (last > stream.last) return in.broken("has removed records beyond its last one");
    if (in.get.ok()) stream.removed.add({first, last, 0});
    before = last.value;
  }
  if (!in.get.ok()) return in.unreadable();
  return Ok{};
}

// --- records for one consumer --------------------------------------------------------------------

void encode_addressed(const Stream& stream, FieldWriter& put) {
  const auto kept = stream.addressed.lower_bound(stream.first);  // The others were trimmed.
  put(static_cast<std::uint64_t>(std::distance(kept, stream.addressed.end())));
  Sequence before = stream.first;
  for (auto at = kept; at != stream.addressed.end(); ++at) {
    put.all(at->first.value - before.value, at->second);
    before = at->first;
  }
}

Status decode_addressed(Reading& in, Stream& stream) {
  if (in.get.version() < 2) return Ok{};
  const std::uint64_t count = in.count();
  Sequence before = stream.first;
  for (std::uint64_t i = 0; i < count && in.get.ok(); ++i) {
    std::uint64_t distance = 0;
    std::string consumer;
    in.get.all(distance, consumer);
    if ((i > 0 && distance == 0) || distance >= kSequenceEnd || consumer.empty()) in.get.refuse();
    before = Sequence{before.value + distance};
    if (before > stream.last) return in.broken("has a record for one consumer beyond its last");
    if (in.get.ok()) stream.addressed.emplace_hint(stream.addressed.end(), before, consumer);
  }
  if (!in.get.ok()) return in.unreadable();
  return Ok{};
}

// A run that lies nowhere has no record to be read.
Status check_places(const Reading& in, const Stream& stream) {
  for (const Run& run : stream.runs) {
    if (run.at.length > 0) continue;
    const Sequence first = std::max(run.first, stream.first);
    if (stream.removed.first_missing(first) > run.last()) continue;
    return in.broken(base::format("keeps record {} nowhere", first.value));
  }
  return Ok{};
}

// --- groups and producers ------------------------------------------------------------------------

void put_group(GroupHash group, Sequence last, FieldWriter& put) {
  fixed64(put, group);
  put(last);
}

// `Groups` is a SharedMap or what a snapshot holds of it. Those below `floor` are forgotten.
template <class Groups>
void put_groups(const Groups& groups, Sequence floor, FieldWriter& put) {
  std::uint64_t kept = groups.size();
  if (floor > Sequence{0}) {
    groups.for_each([&](GroupHash, Sequence last) { kept -= last < floor ? 1U : 0U; });
  }
  put(kept);
  groups.for_each([&](GroupHash group, Sequence last) {
    if (last >= floor) put_group(group, last, put);
  });
}

void encode_groups(Stream& stream, Writing& out) {
  const Time over_at = out.image.over_at;
  const auto kept = stream.groups_end.upper_bound(over_at);
  out.put.all(stream.has_groups,
              static_cast<std::uint64_t>(std::distance(kept, stream.groups_end.end())));
  for (auto end = kept; end != stream.groups_end.end(); ++end) {
    out.put.all(end->first, end->second);
  }
  const Sequence floor = stream.groups_floor(over_at);
  if (stream.group_last.size() > kFewGroups) {
    return out.share(GroupsImage{stream.group_last.snapshot(), floor});
  }
  put_groups(stream.group_last, floor, out.put);
}

Status decode_groups_end(Reading& in, State& into, Stream& stream) {
  if (in.get.version() < 2) return Ok{};
  in.get(stream.has_groups);
  const std::uint64_t count = in.count();
  for (std::uint64_t i = 0; i < count; ++i) {
    Time end{};
    Sequence before;
    in.get.all(end, before);
    const bool ascends = i == 0 || end > stream.groups_end.rbegin()->first;
    if (!in.get.ok() || !ascends || !is_plausible(end)) return in.unreadable();
    if (!stream.has_groups || before == Sequence{0} || before > stream.last.next()) {
      return in.broken("forgets group keys that it cannot have");
    }
    stream.groups_end.emplace_hint(stream.groups_end.end(), end, before);
    into.groups_due.emplace(end, stream.uid);
  }
  return Ok{};
}

Status decode_groups(Reading& in, Stream& stream) {
  const std::uint64_t count = in.count();
  GroupHash before = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    GroupHash group = 0;
    Sequence last;
    fixed64(in.get, group);
    in.get(last);
    if (!in.get.ok() || group <= before) return in.unreadable();
    if (last == Sequence{0} || last > stream.last) {
      return in.broken(base::format("has record {} as the last of a group; its own last is {}",
                                    last.value, stream.last.value));
    }
    stream.group_last.set(group, last);
    before = group;
  }
  if (!in.get.ok()) return in.unreadable();
  if (in.get.version() < 2) stream.has_groups = count > 0;
  if (count > 0 && !stream.has_groups) return in.broken("knows group keys that it cannot have");
  return Ok{};
}

void encode_producers(const Stream& stream, Time over_at, FieldWriter& put) {
  auto producers = sorted(stream.producers);
  std::erase_if(producers, [&](const auto& one) { return one.second->is_forgotten(over_at); });
  put(std::uint64_t{producers.size()});
  for (const auto& [name, producer] : producers) {
    put.all(name, *producer, std::uint64_t{producer->stored.size()});
    Producer::Stored before{{}, {}, stream.created_at};
    for (const Producer::Stored& stored : producer->stored) {
      const auto later = static_cast<std::uint64_t>((stored.time - before.time).count());
      put.all(zigzag(stored.at.value - before.at.value), stored.fingerprint, zigzag(later));
      before = stored;
    }
  }
}

// P3: the remembered places are those of the sequences right below `next`.
bool decode_stored(Reading& in, const Stream& stream, Producer& producer) {
  const std::uint64_t count = in.count();
  if (count > producer.next.value || (producer.retired && count > 0)) return false;
  if (producer.next.value >= kNumberEnd) return false;
  Producer::Stored stored{{}, {}, stream.created_at};
  for (std::uint64_t i = 0; i < count && in.get.ok(); ++i) {
    std::uint64_t distance = 0;
    std::uint64_t later = 0;
    in.get.all(distance, stored.fingerprint, later);
    stored.at = Sequence{stored.at.value + unzigzag(distance)};
    // Sums of what a damaged state says must not overflow.
    if (later >= kSequenceEnd * 2) return false;
    stored.time += Duration{static_cast<std::int64_t>(unzigzag(later))};
    if (!is_plausible(stored.time)) return false;
    if (stored.at == Sequence{0} || stored.at > stream.last) return false;
    producer.stored.push_back(stored);
  }
  return in.get.ok();
}

Status decode_producers(Reading& in, State& into, Stream& stream) {
  const std::uint64_t count = in.count();
  std::string before;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string name;
    Producer producer;
    in.get.all(name, producer);
    if (!in.get.ok() || (i > 0 && name <= before)) return in.unreadable();
    if (!decode_stored(in, stream, producer)) {
      return in.broken("has an impossible producer, '" + name + "'");
    }
    if (producer.forgotten_at != Time::max()) {
      if (!producer.retired || !is_plausible(producer.forgotten_at)) {
        return in.broken("forgets producer '" + name + "' at an impossible time");
      }
      into.producers_due.emplace(producer.forgotten_at, stream.uid, name);
    }
    stream.producers_active += producer.retired ? 0 : 1;
    before = name;
    stream.producers.emplace(std::move(name), std::move(producer));
  }
  if (!in.get.ok()) return in.unreadable();
  return Ok{};
}

// --- streams -------------------------------------------------------------------------------------

// One bit per uid ever given: whether its stream is there. The bits, unlike a bare number of uids,
// bound by their own size the room that a damaged state can ask for.
std::string living_bits(const State& state) {
  std::string bits((state.streams.size() + 7) / 8, '\0');
  for (std::size_t i = 0; i < state.streams.size(); ++i) {
    if (state.streams[i] == nullptr) continue;
    char& byte = bits[i / 8];
    byte = static_cast<char>(static_cast<unsigned char>(byte) | 1U << i % 8);
  }
  return bits;
}

bool is_living(std::string_view bits, std::size_t place) {
  return (static_cast<unsigned char>(bits[place / 8]) >> place % 8 & 1) != 0;
}

Status decode_stream(Reading& in, State& into, Stream& stream) {
  in.get(stream);
  if (!in.get.ok()) return in.unreadable();
  if (stream.first == Sequence{0} || stream.last.value >= kSequenceEnd ||
      stream.first > stream.last.next()) {
    return in.broken(
        base::format("cannot keep records {} to {}", stream.first.value, stream.last.value));
  }
  if (!is_plausible(stream.created_at) || !is_plausible(stream.horizon_floor)) {
    return in.broken("is made, or knows all ids, at an impossible time");
  }
  HAPAX_CHECK(decode_runs(in, stream));
  HAPAX_CHECK(decode_removed(in, stream));
  HAPAX_CHECK(decode_addressed(in, stream));
  HAPAX_CHECK(check_places(in, stream));
  HAPAX_CHECK(decode_groups_end(in, into, stream));
  HAPAX_CHECK(decode_groups(in, stream));
  return decode_producers(in, into, stream);
}

}  // namespace

void spell(const RunsImage& image, Spelling& out) {
  put_runs(image.runs, image.kept_from, image.created_at, out);
}

void spell(const GroupsImage& image, Spelling& out) {
  put_groups(image.groups, image.floor, out.put);
}

void encode_streams(State& state, Writing& out) {
  out.put.all(std::uint64_t{state.streams.size()}, living_bits(state));
  for (const auto& stream : state.streams) {
    if (stream == nullptr) continue;
    out.put(*stream);
    encode_runs(*stream, out);
    encode_removed(*stream, out.put);
    encode_addressed(*stream, out.put);
    encode_groups(*stream, out);
    encode_producers(*stream, out.image.over_at, out.put);
  }
  for (const auto& stream : state.graveyard) {
    for (const Run& run : stream->runs) out.waiting.add(run.at.segment, run.at.length);
  }
}

Status decode_streams(Reading& in, State& into) {
  in.begin("list of streams", 1);
  std::uint64_t uids = 0;
  std::string_view bits;
  in.get.all(uids, bits);
  if (!in.get.ok() || bits.size() != uids / 8 + (uids % 8 == 0 ? 0 : 1)) return in.unreadable();
  for (std::size_t spare = uids; spare < bits.size() * 8; ++spare) {
    if (is_living(bits, spare)) return in.unreadable();
  }
  into.streams.resize(uids);
  for (std::size_t i = 0; i < uids; ++i) {
    if (!is_living(bits, i)) continue;
    in.begin("stream", i + 1);
    auto stream = std::make_unique<Stream>();
    stream->uid = StreamUid{i + 1};
    HAPAX_CHECK(decode_stream(in, into, *stream));
    if (!into.stream_names.emplace(stream->name, stream->uid).second) {
      return in.broken("has the name of another one, '" + stream->name + "'");
    }
    stream->tenant = &into.tenants.of(stream->name);
    if (!is_the_stores(stream->name)) ++stream->tenant->streams;
    stream->tenant->storage += stream->bytes;
    into.grow(*stream->tenant, text_bytes_of(*stream));
    for (const Run& run : stream->runs) into.grow(*stream->tenant, text_bytes_of(run));
    note_retention(into, *stream);
    into.streams[i] = std::move(stream);
  }
  return Ok{};
}

}  // namespace hapax::core
