// The memory of what happened under a 128-bit hash, for a window of log time: message ids and
// settled claims. Owned by one thread, except that the chunks of a snapshot may be read by another.
//
// Entries lie in chunks that are only appended to; a chunk belongs to a generation, which is a
// slice of expiry time. When the slice is over the generation dies as a whole: nothing is searched
// for, its chunks are walked once to take their entries out of the index, and then freed.
//
// D1: an id is remembered for exactly its window of log time, whatever happens to its record.
// D2: the newest entry of a hash wins: at once, after an undo, and after a restart.
// D3: no operation touches more than one shard's worth of memory. Dying is spread over many calls.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <hapax/result.h>
#include <hapax/time.h>

#include "base/assert.h"
#include "base/hash128.h"
#include "core/entry_chunks.h"
#include "core/generation_key.h"
#include "core/hash_index.h"
#include "core/owner_counts.h"

namespace hapax::core {

// What undo() needs to take an add back.
struct Added {
  static constexpr std::uint32_t kNone = HashIndex::kNone;

  std::uint32_t number = kNone;
  std::uint32_t replaced = kNone;     // the entry that stood for the hash before
  std::uint64_t serial = 0;           // of the chunk of `number`
  std::uint64_t replaced_serial = 0;  // of the chunk of `replaced`
  std::uint64_t ordinal = 0;          // adds so far, this one included
  std::uint32_t owner = OwnerCounts::kNobody;
};
static_assert(sizeof(Added) == 40, "the undo log keeps it in place");

template <Rememberable Entry, std::uint32_t kChunkEntries = 65536>
class Remembered {
  using Chunks = EntryChunks<Entry, kChunkEntries>;
  using Chunk = typename Chunks::Chunk;

 public:
  static constexpr std::uint32_t kNobody = OwnerCounts::kNobody;
  static constexpr std::uint32_t kEntriesPerChunk = kChunkEntries;

  struct ChunkImage {
    GenerationKey generation;
    std::uint64_t serial = 0;  // names these bytes for the life of the store
    std::shared_ptr<const Entry[]> entries;
    std::uint32_t count = 0;
    bool sealed = false;  // full: whoever has stored this serial has stored it for good

    [[nodiscard]] std::span<const Entry> span() const { return {entries.get(), count}; }
  };
  struct CountsImage {
    GenerationKey generation;
    std::vector<OwnerCount> counts;
  };
  struct Snapshot {
    std::vector<ChunkImage> chunks;
    std::vector<CountsImage> counts;
    std::uint64_t next_serial = 0;
  };

  explicit Remembered(unsigned shards_log2) : index_(shards_log2) {}

  // Two steps of a batch that wants to wait for memory once, not once per hash: prefetch() all,
  // then prefetch_entry() all, then find() or add() each.
  void prefetch(base::Hash128 hash) const { index_.prefetch(hash); }
  void prefetch_entry(base::Hash128 hash) const {
    index_.prefetch_entry(hash, typename Chunks::WholeEntries{chunks_.hashes()});
  }

  // Valid until the next call that is not const.
  [[nodiscard]] const Entry* find(base::Hash128 hash, Time now) const {
    const std::uint32_t number = index_.find(hash, chunks_.hashes());
    if (number == HashIndex::kNone) return nullptr;
    const Entry& entry = chunks_.at(number);
    // D1: its generation may die later, the entry is forgotten on the millisecond.
    return entry.expires_at() > now ? &entry : nullptr;
  }

  // `entry` is now what its hash stands for; counted for `owner` unless that is kNobody.
  // REQUIRES: it is not older than what the hash stood for.
  Added add(const Entry& entry, std::uint32_t owner, Time now);

  // Takes back the latest add that was not taken back yet. expire() may have run in between, a
  // snapshot may not: its reader holds the very bytes that the next add will overwrite.
  void undo(const Added& added);

  // Takes entries of dead generations out of the index, `entries_max` at most, and frees chunks
  // that have none left. Answers how many; fewer than asked for means that nothing is left to do.
  // REQUIRES: `now` never goes back.
  std::size_t expire(Time now, std::size_t entries_max);

  // Calls visit(entry) for the entry of each hash that is remembered at `now`, in no useful order.
  // REQUIRES: `now` is not before the latest expire().
  template <class Visit>
  void for_each(Time now, Visit visit) const {
    HAPAX_ASSERT(now >= now_, "log time never goes back");
    for (const auto& [key, generation] : generations_) {
      for (const std::uint32_t id : generation.chunks) {
        const std::span<const Entry> entries = chunks_[id].span();
        for (std::size_t place = 0; place < entries.size(); ++place) {
          if (place + kAhead < entries.size()) prefetch(entries[place + kAhead].hash());
          if (find(entries[place].hash(), now) == &entries[place]) visit(entries[place]);
        }
      }
    }
  }

  // Hashes in the index: some are expired and not yet taken out.
  [[nodiscard]] std::size_t live() const { return index_.size(); }
  // Entries of `owner` in generations that had not ended at the latest expire().
  [[nodiscard]] std::uint64_t count_of(std::uint32_t owner) const;
  [[nodiscard]] std::size_t bytes() const {
    return index_.bytes() + chunks_.bytes() + counts_bytes_;
  }

  // Copies pointers and the counts, not entries. Dead generations are left out.
  [[nodiscard]] Snapshot snapshot();

  // The way back, into an empty memory: chunks in the order of the snapshot, then counts, then
  // set_next_serial(). What is dead at `now` is skipped. B2: what cannot have been in a snapshot is
  // refused, before it changes anything.
  [[nodiscard]] Status restore(GenerationKey generation, std::uint64_t serial,
                               std::span<const Entry> entries, Time now);
  [[nodiscard]] Status restore_counts(GenerationKey generation, std::span<const OwnerCount> counts);
  [[nodiscard]] std::uint64_t next_serial() const { return next_serial_; }
  void set_next_serial(std::uint64_t serial);

 private:
  static constexpr std::uint32_t kAhead = 16;  // entries between prefetch and use
  static constexpr std::uint64_t kSerialEnd = std::uint64_t{1} << 62;

  static Error impossible(const char* what) {
    return Error{Errc::kCorruption, std::string("a snapshot has ") + what};
  }

  struct Generation {
    std::vector<std::uint32_t> chunks;  // all full but the last; never empty
    OwnerCounts counts;
  };

  [[nodiscard]] GenerationKey generation_for(const Entry& entry, std::uint32_t replaced,
                                             Time now) const;
  Generation& generation(GenerationKey key);
  std::uint32_t open_chunk(GenerationKey key, Generation& generation);
  void pop(std::uint32_t chunk_id, std::uint32_t owner);
  void count(Generation& generation, std::uint32_t owner, std::uint32_t entries);
  [[nodiscard]] Status check_chunk(GenerationKey generation, std::uint64_t serial,
                                   std::span<const Entry> entries) const;
  [[nodiscard]] std::uint64_t entries_of(const Generation& generation) const;
  void bury(Time now);
  std::size_t unlink(std::uint32_t chunk_id, std::size_t entries_max);
  void link_all(std::uint32_t chunk_id);

  HashIndex index_;
  Chunks chunks_;
  std::map<GenerationKey, Generation> generations_;  // the first dies first
  std::deque<std::uint32_t> dying_;                  // chunks of dead generations
  Generation* latest_ = nullptr;                     // the one of the latest add, under latest_key_
  GenerationKey latest_key_;
  Time now_ = Time::min();  // of the latest expire()
  std::uint64_t next_serial_ = 1;
  std::uint64_t adds_ = 0;  // minus those taken back
  std::uint64_t adds_in_snapshot_ = 0;
  std::size_t counts_bytes_ = 0;
};

template <Rememberable Entry, std::uint32_t kChunkEntries>
Added Remembered<Entry, kChunkEntries>::add(const Entry& entry, std::uint32_t owner, Time now) {
  HAPAX_ASSERT(now >= now_, "log time never goes back");
  const base::Hash128 hash = entry.hash();
  Added added{.owner = owner};
  added.replaced = index_.find(hash, chunks_.hashes());
  const GenerationKey key = generation_for(entry, added.replaced, now);
  Generation& home = generation(key);
  const std::uint32_t id = open_chunk(key, home);
  added.number = chunks_.append(id, entry);
  added.serial = chunks_[id].serial;
  added.ordinal = ++adds_;
  if (owner != kNobody) count(home, owner, 1);

  if (added.replaced == HashIndex::kNone) {
    index_.insert(hash, added.number, chunks_.hashes());
  } else {
    // D2: the later entry wins here by being later; after a restart by newer_than(). Both must
    // agree.
    HAPAX_ASSERT(!chunks_.at(added.replaced).newer_than(entry),
                 "entries of a hash come in their order");
    added.replaced_serial = chunks_.of(added.replaced).serial;
    index_.repoint(hash, added.replaced, added.number);
  }
  return added;
}

// D2: an entry must not die before one that it replaced, or the older would be back after a restart
// that finds only that one in a snapshot. So it goes to the older one's generation if that ends
// later.
template <Rememberable Entry, std::uint32_t kChunkEntries>
GenerationKey Remembered<Entry, kChunkEntries>::generation_for(const Entry& entry,
                                                               std::uint32_t replaced,
                                                               Time now) const {
  const GenerationKey own = GenerationKey::of(entry.expires_at(), now);
  if (replaced == HashIndex::kNone) return own;
  return std::max(own, chunks_.of(replaced).generation);
}

template <Rememberable Entry, std::uint32_t kChunkEntries>
void Remembered<Entry, kChunkEntries>::undo(const Added& added) {
  HAPAX_ASSERT(added.ordinal == adds_, "the latest add is taken back first");
  HAPAX_ASSERT(added.ordinal > adds_in_snapshot_, "what a snapshot holds is not taken back");
  --adds_;
  const std::uint32_t id = Chunks::id_of(added.number);
  // Its generation died meanwhile and is gone. What it replaced died no later (generation_for).
  if (chunks_[id].serial != added.serial) return;
  HAPAX_ASSERT(Chunks::place_of(added.number) + 1 == chunks_[id].count,
               "the latest entry is the last");

  if (chunks_.is_linkable(added.number, added.serial)) {
    const base::Hash128 hash = chunks_.at(added.number).hash();
    if (chunks_.is_linkable(added.replaced, added.replaced_serial)) {
      index_.repoint(hash, added.number, added.replaced);
    } else {
      const bool erased = index_.erase(hash, added.number, chunks_.hashes());
      HAPAX_ASSERT(erased, "the latest entry is what its hash stands for");
    }
  }
  pop(id, added.owner);
}

template <Rememberable Entry, std::uint32_t kChunkEntries>
void Remembered<Entry, kChunkEntries>::pop(std::uint32_t chunk_id, std::uint32_t owner) {
  chunks_.pop(chunk_id);
  const Chunk& chunk = chunks_[chunk_id];
  const auto home = generations_.find(chunk.generation);
  if (home == generations_.end()) return;  // Dying: expire() frees the chunk.

  if (owner != kNobody) home->second.counts.take(owner);
  if (chunk.count > 0) return;
  HAPAX_ASSERT(home->second.chunks.back() == chunk_id,
               "only the last chunk of a generation is open");
  home->second.chunks.pop_back();
  // Replaying the journal never sees this add: it must not see a gap in the serials either.
  if (chunk.serial + 1 == next_serial_) --next_serial_;
  chunks_.release(chunk_id);
  if (!home->second.chunks.empty()) return;
  counts_bytes_ -= home->second.counts.bytes();
  generations_.erase(home);
  latest_ = nullptr;
}

template <Rememberable Entry, std::uint32_t kChunkEntries>
std::size_t Remembered<Entry, kChunkEntries>::expire(Time now, std::size_t entries_max) {
  HAPAX_ASSERT(now >= now_, "log time never goes back");
  now_ = now;
  bury(now);
  std::size_t done = 0;
  while (!dying_.empty()) {
    const std::uint32_t id = dying_.front();
    done += unlink(id, entries_max - done);
    if (chunks_[id].unlinked < chunks_[id].count) break;
    chunks_.release(id);
    dying_.pop_front();
  }
  return done;
}

template <Rememberable Entry, std::uint32_t kChunkEntries>
void Remembered<Entry, kChunkEntries>::bury(Time now) {
  while (!generations_.empty() && generations_.begin()->first.end() <= now) {
    Generation& dead = generations_.begin()->second;
    dying_.insert(dying_.end(), dead.chunks.begin(), dead.chunks.end());
    counts_bytes_ -= dead.counts.bytes();
    generations_.erase(generations_.begin());
    latest_ = nullptr;
  }
}

template <Rememberable Entry, std::uint32_t kChunkEntries>
std::size_t Remembered<Entry, kChunkEntries>::unlink(std::uint32_t chunk_id,
                                                     std::size_t entries_max) {
  const Chunk& chunk = chunks_[chunk_id];
  const std::uint32_t first = chunk.unlinked;
  const auto last =
      static_cast<std::uint32_t>(first + std::min<std::size_t>(chunk.count - first, entries_max));
  for (std::uint32_t place = first; place < last; ++place) {
    if (place + kAhead < last) index_.prefetch(chunk.entries[place + kAhead].hash());
    // D2: a hash that stands for a newer entry stays.
    index_.erase(chunk.entries[place].hash(), Chunks::number_of(chunk_id, place), chunks_.hashes());
  }
  chunks_.set_unlinked(chunk_id, last);
  return last - first;
}

template <Rememberable Entry, std::uint32_t kChunkEntries>
auto Remembered<Entry, kChunkEntries>::generation(GenerationKey key) -> Generation& {
  if (latest_ == nullptr || latest_key_ != key) {
    latest_ = &generations_[key];
    latest_key_ = key;
  }
  return *latest_;
}

template <Rememberable Entry, std::uint32_t kChunkEntries>
std::uint32_t Remembered<Entry, kChunkEntries>::open_chunk(GenerationKey key,
                                                           Generation& generation) {
  auto& chunks = generation.chunks;
  if (chunks.empty() || chunks_[chunks.back()].full()) {
    chunks.push_back(chunks_.take(key, next_serial_++));
  }
  return chunks.back();
}

template <Rememberable Entry, std::uint32_t kChunkEntries>
void Remembered<Entry, kChunkEntries>::count(Generation& generation, std::uint32_t owner,
                                             std::uint32_t entries) {
  const std::size_t before = generation.counts.bytes();
  generation.counts.add(owner, entries);
  counts_bytes_ += generation.counts.bytes() - before;
}

template <Rememberable Entry, std::uint32_t kChunkEntries>
std::uint64_t Remembered<Entry, kChunkEntries>::count_of(std::uint32_t owner) const {
  std::uint64_t sum = 0;
  for (const auto& [key, generation] : generations_) sum += generation.counts.count_of(owner);
  return sum;
}

template <Rememberable Entry, std::uint32_t kChunkEntries>
auto Remembered<Entry, kChunkEntries>::snapshot() -> Snapshot {
  adds_in_snapshot_ = adds_;
  Snapshot image{.chunks = {}, .counts = {}, .next_serial = next_serial_};
  for (const auto& [key, generation] : generations_) {
    for (const std::uint32_t id : generation.chunks) {
      const Chunk& chunk = chunks_[id];
      image.chunks.push_back({key, chunk.serial, chunk.entries, chunk.count, chunk.full()});
    }
    if (auto counts = generation.counts.list(); !counts.empty()) {
      image.counts.push_back({key, std::move(counts)});
    }
  }
  return image;
}

template <Rememberable Entry, std::uint32_t kChunkEntries>
Status Remembered<Entry, kChunkEntries>::check_chunk(GenerationKey generation, std::uint64_t serial,
                                                     std::span<const Entry> entries) const {
  if (!generation.is_possible()) return impossible("a chunk of an impossible slice of time");
  if (serial == 0 || serial >= kSerialEnd) return impossible("a chunk with an impossible serial");
  if (entries.empty()) return impossible("a chunk without entries");
  if (entries.size() > kChunkEntries) return impossible("a chunk with too many entries");
  const Time end = generation.end();
  const auto outlives = [end](const Entry& entry) { return entry.expires_at() > end; };
  if (std::any_of(entries.begin(), entries.end(), outlives)) {
    return impossible("an entry that outlives its slice of time");  // D1 would not hold.
  }
  return Ok{};
}

template <Rememberable Entry, std::uint32_t kChunkEntries>
Status Remembered<Entry, kChunkEntries>::restore(GenerationKey generation_key, std::uint64_t serial,
                                                 std::span<const Entry> entries, Time now) {
  HAPAX_ASSERT(adds_ == 0, "a memory is restored before it is used");
  HAPAX_CHECK(check_chunk(generation_key, serial, entries));
  if (generation_key.end() > now) {
    const auto known = generations_.find(generation_key);
    if (known != generations_.end() && !chunks_[known->second.chunks.back()].full()) {
      return impossible("a chunk behind one that is not full");
    }
    if (!chunks_.has_room()) return impossible("more chunks than entries have numbers for");
    const std::uint32_t id = chunks_.take(generation_key, serial);
    generation(generation_key).chunks.push_back(id);
    chunks_.append_all(id, entries);
    link_all(id);
  }
  next_serial_ = std::max(next_serial_, serial + 1);
  return Ok{};
}

template <Rememberable Entry, std::uint32_t kChunkEntries>
void Remembered<Entry, kChunkEntries>::link_all(std::uint32_t chunk_id) {
  const Chunk& chunk = chunks_[chunk_id];
  for (std::uint32_t place = 0; place < chunk.count; ++place) {
    if (place + kAhead < chunk.count) index_.prefetch(chunk.entries[place + kAhead].hash());
    const Entry& entry = chunk.entries[place];
    const std::uint32_t number = Chunks::number_of(chunk_id, place);
    const std::uint32_t known = index_.find(entry.hash(), chunks_.hashes());
    if (known == HashIndex::kNone) {
      index_.insert(entry.hash(), number, chunks_.hashes());
    } else if (entry.newer_than(chunks_.at(known))) {  // D2
      index_.repoint(entry.hash(), known, number);
    }
  }
}

template <Rememberable Entry, std::uint32_t kChunkEntries>
std::uint64_t Remembered<Entry, kChunkEntries>::entries_of(const Generation& generation) const {
  std::uint64_t entries = 0;
  for (const std::uint32_t id : generation.chunks) entries += chunks_[id].count;
  return entries;
}

template <Rememberable Entry, std::uint32_t kChunkEntries>
Status Remembered<Entry, kChunkEntries>::restore_counts(GenerationKey generation_key,
                                                        std::span<const OwnerCount> counts) {
  if (!generation_key.is_possible()) return impossible("counts of an impossible slice of time");
  const auto home = generations_.find(generation_key);
  if (home == generations_.end()) return Ok{};  // Dead by now: its chunks were skipped as well.
  if (home->second.counts.bytes() != 0) return impossible("two counts of one slice of time");
  std::uint64_t counted = 0;
  for (const OwnerCount& owner : counts) {
    const bool ascends = &owner == counts.data() || owner.owner > (&owner)[-1].owner;
    if (owner.owner == kNobody || owner.count == 0 || !ascends) {
      return impossible("an impossible count of entries");
    }
    counted += owner.count;
  }
  if (counted > entries_of(home->second)) return impossible("a count of entries it does not have");
  for (const OwnerCount& owner : counts) count(home->second, owner.owner, owner.count);
  return Ok{};
}

template <Rememberable Entry, std::uint32_t kChunkEntries>
void Remembered<Entry, kChunkEntries>::set_next_serial(std::uint64_t serial) {
  HAPAX_ASSERT(serial >= next_serial_, "a serial is given once");
  next_serial_ = serial;
}

}  // namespace hapax::core
