// How facts about streams and their records change the state.
#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "core/state.h"
#include "core/text_bytes.h"

namespace hapax::core {

namespace {

void add_text(State& state, Tenant& tenant, std::uint64_t bytes, Undo* undo) {
  state.grow(tenant, bytes);
  record(undo, [whose = &tenant, bytes](State& s) { s.shrink(*whose, bytes); });
}

// The id of a record, or its renewal.
void remember_id(State& state, Stream& stream, const IdEntry& entry, Time now, Undo* undo) {
  const auto added = state.ids.add(entry, static_cast<std::uint32_t>(stream.uid.value), now);
  Load& sum = state.tenants.add(*stream.tenant, entry.expires_at(), now, {.memory = kIdBytes});
  record(undo, [added, whose = stream.tenant, from = &sum](State& s) {
    s.ids.undo(added);
    Tenants::take(*whose, *from, {.memory = kIdBytes});
  });
}

bool extends(const Run& run, base::Where at, Time now) {
  return run.count < kRunRecordsMax && run.time == now && run.at.segment == at.segment &&
         run.at.offset + run.at.length == at.offset &&
         std::uint64_t{run.at.length} + at.length <= kRunBytesMax;
}

// The record joins the last run if it lies right behind it, else opens a new one.
void add_to_runs(State& state, Stream& stream, const RecordAppended& fact, base::Where at, Time now,
                 Undo* undo) {
  Stream* const owner = &stream;
  if (stream.runs.empty() || !extends(stream.runs.back(), at, now) ||
      stream.runs.back().last().next() != fact.sequence) {
    Run run{fact.sequence, 1, at.length, at, now, {}};
    if (fact.group_hash != 0) run.groups.push_back(fact.group_hash);
    add_text(state, *stream.tenant, text_bytes_of(run), undo);
    stream.runs.push_back(std::move(run));
    record(undo, [owner](State&) { owner->runs.pop_back(); });
    return;
  }
  Run& run = stream.runs.edit_back();
  const bool had_groups = !run.groups.empty();
  const std::uint64_t text_before = text_bytes_of(run);
  if (fact.group_hash != 0 && !had_groups) run.groups.resize(run.count, 0);
  if (!run.groups.empty()) run.groups.push_back(fact.group_hash);
  record(undo, [owner, had_groups, length = at.length, largest = run.largest](State&) {
    Run& last = owner->runs.edit_back();
    --last.count;
    last.largest = largest;
    last.at.length -= length;
    if (!had_groups) last.groups.clear();
    if (had_groups) last.groups.pop_back();
  });
  add_text(state, *stream.tenant, text_bytes_of(run) - text_before, undo);
  ++run.count;
  run.at.length += at.length;
  run.largest = std::max(run.largest, at.length);
}

void remember_group(State& state, Stream& stream, const RecordAppended& fact, Undo* undo) {
  if (fact.group_hash == 0 || !stream.settings.track_groups) return;
  if (!stream.has_groups) {
    stream.has_groups = true;
    record(undo, [owner = &stream](State&) { owner->has_groups = false; });
  }
  const Sequence* known = stream.group_last.find(fact.group_hash);
  const Sequence before = known == nullptr ? Sequence{0} : *known;
  const bool made = stream.group_last.set(fact.group_hash, fact.sequence);
  if (made) add_text(state, *stream.tenant, kGroupBytes, undo);
  record(undo, [owner = &stream, group = fact.group_hash, before](State&) {
    if (before == Sequence{0}) {
      owner->group_last.erase(group);
    } else {
      owner->group_last.set(group, before);
    }
  });
}

void remember_addressee(State& state, Stream& stream, const RecordAppended& fact, Undo* undo) {
  if (!fact.lineage || !fact.lineage->is_for_one()) return;
  stream.addressed.emplace(fact.sequence, fact.lineage->consumer);
  record(undo,
         [owner = &stream, sequence = fact.sequence](State&) { owner->addressed.erase(sequence); });
  add_text(state, *stream.tenant, addressed_bytes(fact.lineage->consumer), undo);
}

// D7: whether collect() took out what is forgotten makes no difference.
void forget_groups(State& state, Stream& stream, const RecordsTrimmed& fact, Undo* undo) {
  if (!stream.has_groups || fact.groups_end == Time::max()) return;
  const auto [found, made] = stream.groups_end.try_emplace(fact.groups_end, fact.before);
  record(undo, [owner = &stream, end = fact.groups_end, made = made, old = found->second](State&) {
    if (made) {
      owner->groups_end.erase(end);
    } else {
      owner->groups_end.at(end) = old;
    }
  });
  found->second = fact.before;
  if (!made) return;
  const auto [hint, added] = state.groups_due.emplace(fact.groups_end, stream.uid);
  if (added) record(undo, [due = *hint](State& s) { s.groups_due.erase(due); });
}

Producer& ensure_producer(State& state, Stream& stream, std::string_view name, Time now,
                          Undo* undo) {
  const auto found = stream.producers.find(name);
  if (found != stream.producers.end()) {
    Producer& producer = found->second;
    if (producer.retired) {
      record(undo, [owner = &stream, back = &producer, before = producer](State&) {
        *back = before;
        --owner->producers_active;
      });
      // P6: one that is forgotten is as new, whether collect() has come by or not.
      if (producer.is_forgotten(now)) producer = Producer{};
      producer.retired = false;
      producer.forgotten_at = Time::max();
      ++stream.producers_active;
    }
    return producer;
  }
  Producer& producer = stream.producers.emplace(std::string(name), Producer{}).first->second;
  ++stream.producers_active;
  add_text(state, *stream.tenant, kProducerBytes + name.size(), undo);
  record(undo, [owner = &stream, text = std::string(name)](State&) {
    owner->producers.erase(text);
    --owner->producers_active;
  });
  return producer;
}

// More than one only after the stream was given a shorter memory.
void forget_oldest(State& state, const Stream& stream, Producer& producer, Undo* undo) {
  std::uint64_t freed = 0;
  while (producer.stored.size() > stream.settings.producer_memory) {
    const Producer::Stored oldest = producer.stored.front();
    producer.stored.pop_front();
    record(undo, [changed = &producer, oldest](State&) { changed->stored.push_front(oldest); });
    freed += sizeof(Producer::Stored);
  }
  if (freed == 0) return;
  state.shrink(*stream.tenant, freed);
  record(undo, [whose = stream.tenant, freed](State& s) { s.grow(*whose, freed); });
}

void note_producer(State& state, Stream& stream, const ProducerMark& mark, Producer::Stored stored,
                   Time now, Undo* undo) {
  Producer& producer = ensure_producer(state, stream, mark.name, now, undo);
  Producer* const changed = &producer;
  if (producer.epoch != mark.epoch) {
    // A new epoch starts over: what the old one stored is no longer asked for.
    const std::uint64_t freed = producer.stored.size() * sizeof(Producer::Stored);
    record(undo, [changed, before = producer, whose = stream.tenant, freed](State& s) {
      *changed = before;
      s.grow(*whose, freed);
    });
    state.shrink(*stream.tenant, freed);
    producer.epoch = mark.epoch;
    producer.stored.clear();
  } else {
    record(undo, [changed, next = producer.next](State&) { changed->next = next; });
  }
  producer.next = mark.sequence.next();
  producer.stored.push_back(stored);
  add_text(state, *stream.tenant, sizeof(Producer::Stored), undo);
  record(undo, [changed](State&) { changed->stored.pop_back(); });
  forget_oldest(state, stream, producer, undo);
}

}  // namespace

void apply_stream(State& state, const StreamMade& fact, base::Where, Time now, Undo* undo) {
  HAPAX_ASSERT(fact.stream.value == state.streams.size() + 1, "stream uids are gap-free");
  auto stream = std::make_unique<Stream>();
  stream->uid = fact.stream;
  stream->name = fact.name;
  Tenant& tenant = state.tenants.of(fact.name);
  stream->tenant = &tenant;
  const std::uint64_t counted = is_the_stores(fact.name) ? 0U : 1U;
  tenant.streams += counted;
  stream->settings = fact.settings;
  stream->created_at = now;
  stream->horizon_floor = now;
  note_retention(state, *stream);
  state.streams.push_back(std::move(stream));
  state.stream_names.emplace(std::string(fact.name), fact.stream);
  record(undo, [name = std::string(fact.name), whose = &tenant, counted](State& s) {
    s.retaining.erase(StreamUid{s.streams.size()});
    s.streams.pop_back();
    s.stream_names.erase(name);
    whose->streams -= counted;
  });
  add_text(state, tenant, kStreamBytes + fact.name.size(), undo);
}

void apply_stream(State& state, const StreamConfigured& fact, base::Where, Time now, Undo* undo) {
  Stream& stream = state.stream(fact.stream);
  record(undo,
         [owner = &stream, settings = stream.settings, floor = stream.horizon_floor](State& s) {
           owner->settings = settings;
           owner->horizon_floor = floor;
           note_retention(s, *owner);
         });
  // D4: a longer window does not bring back ids that are already forgotten: the horizon says so.
  // A shorter one forgets nothing early: each id keeps the expiry it was promised.
  stream.horizon_floor = stream.horizon(now);
  stream.settings = fact.settings;
  note_retention(state, stream);
  if (!stream.settings.track_groups && !stream.group_last.empty()) {
    const std::uint64_t bytes = stream.group_last.size() * kGroupBytes;
    state.shrink(*stream.tenant, bytes);
    auto before = std::exchange(stream.group_last, {});
    record(undo, [owner = &stream, before = std::move(before), bytes](State& s) mutable {
      owner->group_last = std::move(before);
      s.grow(*owner->tenant, bytes);
    });
  }
  if (!stream.settings.track_groups && stream.has_groups) {
    record(undo, [owner = &stream, before = stream.groups_end](State&) {
      owner->groups_end = before;
      owner->has_groups = true;
    });
    stream.groups_end.clear();
    stream.has_groups = false;
  }
}

void apply_stream(State& state, const StreamGone& fact, base::Where, Time, Undo* undo) {
  Stream& stream = state.stream(fact.stream);
  HAPAX_ASSERT(stream.consumers.empty(), "consumers leave before their stream");
  const std::uint64_t freed = text_bytes_of(stream);
  state.shrink(*stream.tenant, freed);
  const std::uint64_t counted = is_the_stores(stream.name) ? 0U : 1U;
  stream.tenant->streams -= counted;
  stream.tenant->storage -= stream.bytes;
  state.stream_names.erase(stream.name);
  state.retaining.erase(fact.stream);
  state.graveyard.push_back(std::move(state.streams[fact.stream.value - 1]));
  record(undo, [uid = fact.stream, freed, counted](State& s) {
    auto& slot = s.streams[uid.value - 1];
    slot = std::move(s.graveyard.back());
    s.graveyard.pop_back();
    s.stream_names.emplace(slot->name, uid);
    note_retention(s, *slot);
    s.grow(*slot->tenant, freed);
    slot->tenant->streams += counted;
    slot->tenant->storage += slot->bytes;
  });
}

void apply_stream(State& state, const RecordAppended& fact, base::Where at, Time now, Undo* undo) {
  Stream& stream = state.stream(fact.stream);
  HAPAX_ASSERT(fact.sequence == stream.last.next(), "sequences of a stream have no gaps");
  add_to_runs(state, stream, fact, at, now, undo);
  stream.last = fact.sequence;
  stream.bytes += at.length;
  stream.tenant->storage += at.length;
  add_live(state, at.segment, at.length);
  record(undo, [owner = &stream, at](State& s) {
    owner->last = Sequence{owner->last.value - 1};
    owner->bytes -= at.length;
    owner->tenant->storage -= at.length;
    drop_live(s, at.segment, at.length);
  });
  if (fact.id_hash != base::Hash128{}) {
    const IdEntry entry(fact.id_hash, fact.fingerprint, fact.sequence, now, fact.window);
    remember_id(state, stream, entry, now, undo);
  }
  remember_group(state, stream, fact, undo);
  remember_addressee(state, stream, fact, undo);
  if (fact.producer) {
    note_producer(state, stream, *fact.producer, {fact.sequence, fact.fingerprint, now}, now, undo);
  }
}

void apply_stream(State& state, const ProducerNoted& fact, base::Where, Time now, Undo* undo) {
  note_producer(state, state.stream(fact.stream), fact.producer,
                {fact.sequence, fact.fingerprint, fact.first_seen}, now, undo);
}

void apply_stream(State& state, const ProducerRaised& fact, base::Where, Time now, Undo* undo) {
  Stream& stream = state.stream(fact.stream);
  Producer& producer = ensure_producer(state, stream, fact.producer, now, undo);
  HAPAX_ASSERT(fact.epoch > producer.epoch, "an opened epoch is above the one before it");
  const std::uint64_t freed = producer.stored.size() * sizeof(Producer::Stored);
  record(undo, [changed = &producer, before = producer, whose = stream.tenant, freed,
                next = state.next_epoch](State& s) {
    *changed = before;
    s.grow(*whose, freed);
    s.next_epoch = next;
  });
  producer.former = producer.before();
  producer.epoch = fact.epoch;
  producer.next = ProducerSequence{0};
  producer.stored.clear();
  state.shrink(*stream.tenant, freed);
  state.next_epoch = std::max(state.next_epoch, fact.epoch.next());
}

void apply_stream(State& state, const IdRenewed& fact, base::Where, Time now, Undo* undo) {
  const IdEntry* known = state.ids.find(fact.id_hash, now);
  HAPAX_ASSERT(known != nullptr, "only a remembered id is renewed");
  const IdEntry entry(fact.id_hash, known->fingerprint(), known->sequence(), known->first_seen(),
                      fact.window);
  remember_id(state, state.stream(fact.stream), entry, now, undo);
}

void apply_stream(State& state, const RecordsTrimmed& fact, base::Where, Time, Undo* undo) {
  Stream& stream = state.stream(fact.stream);
  HAPAX_ASSERT(fact.before > stream.first && fact.before <= stream.last.next(),
               "trimming moves forward, within the stream");
  std::uint64_t bytes = 0;
  const auto end = stream.runs.ending_from(fact.before);
  for (auto run = stream.runs.ending_from(stream.first); run != end; ++run) bytes += run->at.length;
  record(undo, [owner = &stream, first = stream.first, bytes](State& s) {
    owner->first = first;
    owner->bytes += bytes;
    owner->tenant->storage += bytes;
    s.trimmed.pop_back();
  });
  stream.first = fact.before;
  stream.bytes -= bytes;
  stream.tenant->storage -= bytes;
  state.trimmed.push_back(fact.stream);
  forget_groups(state, stream, fact, undo);
}

void apply_stream(State& state, const RunMoved& fact, base::Where at, Time, Undo* undo) {
  Stream& stream = state.stream(fact.stream);
  const auto size = static_cast<std::uint32_t>(fact.frames.size());
  const auto inner = static_cast<std::uint32_t>(at.length - kFactTrailer - size);
  const base::Where to{at.segment, at.offset + inner, size};
  const auto found =
      std::lower_bound(stream.runs.begin(), stream.runs.end(), fact.first,
                       [](const Run& run, Sequence wanted) { return run.first < wanted; });
  HAPAX_ASSERT(found != stream.runs.end() && found->first == fact.first, "only a kept run moves");
  HAPAX_ASSERT(found->count == fact.count && found->at.length == size, "a run moves as a whole");
  const base::Where from = found->at;
  stream.runs.edit(found.place()).at = to;
  drop_live(state, from.segment, from.length);
  add_live(state, to.segment, to.length);
  record(undo, [owner = &stream, first = fact.first, from, to](State& s) {
    owner->runs.edit(owner->runs.ending_from(first).place()).at = from;
    drop_live(s, to.segment, to.length);
    add_live(s, from.segment, from.length);
  });
}

void apply_stream(State& state, const ProducerRetired& fact, base::Where, Time, Undo* undo) {
  Stream& stream = state.stream(fact.stream);
  const auto found = stream.producers.find(fact.producer);
  HAPAX_ASSERT(found != stream.producers.end(), "only a known producer is retired");
  Producer& producer = found->second;
  const std::uint64_t freed = producer.stored.size() * sizeof(Producer::Stored);
  record(undo, [owner = &stream, changed = &producer, before = producer, freed](State& s) {
    *changed = before;
    ++owner->producers_active;
    s.grow(*owner->tenant, freed);
  });
  producer.stored.clear();
  producer.retired = true;
  producer.forgotten_at = fact.forgotten_at;
  if (producer.forgotten_at != Time::max()) {
    const auto [hint, added] =
        state.producers_due.emplace(producer.forgotten_at, stream.uid, fact.producer);
    if (added) record(undo, [due = *hint](State& s) { s.producers_due.erase(due); });
  }
  --stream.producers_active;
  state.shrink(*stream.tenant, freed);
}

}  // namespace hapax::core
