// Where entries lie: chunks that are only appended to, and an entry's number (chunk id and place).
// A chunk's bytes never move and are shared, so that a snapshot can read them while the owner
// appends behind its count. Not thread-safe otherwise.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <hapax/time.h>

#include "base/assert.h"
#include "base/hash128.h"
#include "core/generation_key.h"
#include "core/hash_index.h"

namespace hapax::core {

template <class T>
concept Rememberable = std::is_trivially_copyable_v<T> && requires(const T& entry) {
  { entry.hash() } -> std::same_as<base::Hash128>;
  { entry.expires_at() } -> std::same_as<Time>;  // Time::max() = never
  { entry.newer_than(entry) } -> std::same_as<bool>;
};

// Uninitialised memory straight from the system: pages that were never touched cost nothing, and
// freeing gives the memory back at once. (malloc stops doing both for blocks of this size as soon
// as the first one is freed: its threshold adapts.) Not in huge pages: the first touch of one
// stalls for milliseconds, and lookups gained nothing that prefetching does not.
[[nodiscard]] std::shared_ptr<std::byte[]> map_pages(std::size_t bytes);

template <Rememberable Entry, std::uint32_t kChunkEntries>
class EntryChunks {
  static_assert(kChunkEntries >= 2 && (kChunkEntries & (kChunkEntries - 1)) == 0);

 public:
  struct Chunk {
    std::shared_ptr<Entry[]> entries;
    std::uint64_t serial = 0;  // names these bytes for the life of the store; 0 = the id is free
    GenerationKey generation;
    std::uint32_t count = 0;
    std::uint32_t unlinked = 0;  // entries before this place are out of the index for good

    [[nodiscard]] bool full() const { return count == kChunkEntries; }
    [[nodiscard]] std::span<const Entry> span() const { return {entries.get(), count}; }
  };

  // Reads hashes by number; see HashSource.
  struct Hashes {
    Entry* const* bases;
    [[nodiscard]] const Entry* entry(std::uint32_t number) const {
      return &bases[number / kChunkEntries][number % kChunkEntries];
    }
    base::Hash128 operator()(std::uint32_t number) const { return entry(number)->hash(); }
    void prefetch(std::uint32_t number) const { fetch_ahead(entry(number)); }
  };
  // The same for who wants the whole entry: it may lie across two cache lines.
  struct WholeEntries : Hashes {
    void prefetch(std::uint32_t number) const {
      const auto* first = reinterpret_cast<const char*>(this->entry(number));
      fetch_ahead(first);
      fetch_ahead(first + sizeof(Entry) - 1);
    }
  };

  static constexpr std::uint32_t id_of(std::uint32_t number) { return number / kChunkEntries; }
  static constexpr std::uint32_t place_of(std::uint32_t number) { return number % kChunkEntries; }
  static constexpr std::uint32_t number_of(std::uint32_t id, std::uint32_t place) {
    return id * kChunkEntries + place;
  }

  [[nodiscard]] Hashes hashes() const { return Hashes{bases_.data()}; }
  [[nodiscard]] const Entry& at(std::uint32_t number) const { return *hashes().entry(number); }
  [[nodiscard]] const Chunk& operator[](std::uint32_t id) const { return chunks_[id]; }
  [[nodiscard]] const Chunk& of(std::uint32_t number) const { return chunks_[id_of(number)]; }
  [[nodiscard]] std::size_t bytes() const {
    return entries_ * sizeof(Entry) + (chunks_.size() - free_.size()) * kOverhead;
  }

  // Whether the entry is still there and is not out of the index for good. The serial tells a
  // chunk from a later one under the same id.
  [[nodiscard]] bool is_linkable(std::uint32_t number, std::uint64_t serial) const {
    if (number == HashIndex::kNone) return false;
    const Chunk& chunk = chunks_[id_of(number)];
    return chunk.serial == serial && place_of(number) >= chunk.unlinked;
  }

  [[nodiscard]] bool has_room() const { return !free_.empty() || chunks_.size() < kChunksMax; }

  // A new chunk; answers its id. An id is used again only after release().
  std::uint32_t take(GenerationKey generation, std::uint64_t serial) {
    HAPAX_ASSERT(has_room(), "entry numbers have 32 bits");
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(chunks_.size()));
      chunks_.emplace_back();
      bases_.push_back(nullptr);
    }
    const std::uint32_t id = free_.back();
    free_.pop_back();
    auto pages = map_pages(sizeof(Entry) * kChunkEntries);
    bases_[id] = reinterpret_cast<Entry*>(pages.get());
    chunks_[id].entries = std::shared_ptr<Entry[]>(std::move(pages), bases_[id]);
    chunks_[id].serial = serial;
    chunks_[id].generation = generation;
    return id;
  }

  // REQUIRES: no number of this chunk is in the index.
  void release(std::uint32_t id) {
    HAPAX_ASSERT(chunks_[id].unlinked == chunks_[id].count, "a chunk outlives its index entries");
    entries_ -= chunks_[id].count;
    chunks_[id] = Chunk{};
    bases_[id] = nullptr;
    free_.push_back(id);
  }

  std::uint32_t append(std::uint32_t id, const Entry& entry) {
    Chunk& chunk = chunks_[id];
    std::construct_at(&chunk.entries[chunk.count], entry);
    ++entries_;
    return number_of(id, chunk.count++);
  }
  // REQUIRES: the chunk is empty and takes them all.
  void append_all(std::uint32_t id, std::span<const Entry> entries) {
    HAPAX_ASSERT(chunks_[id].count == 0 && entries.size() <= kChunkEntries, "a chunk fits");
    std::uninitialized_copy(entries.begin(), entries.end(), chunks_[id].entries.get());
    chunks_[id].count = static_cast<std::uint32_t>(entries.size());
    entries_ += entries.size();
  }
  void pop(std::uint32_t id) {
    Chunk& chunk = chunks_[id];
    HAPAX_ASSERT(chunk.count > 0, "only what was appended is taken back");
    --chunk.count;
    --entries_;
    if (chunk.unlinked > chunk.count) chunk.unlinked = chunk.count;
  }
  void set_unlinked(std::uint32_t id, std::uint32_t unlinked) { chunks_[id].unlinked = unlinked; }

 private:
  static constexpr std::uint32_t kChunksMax = HashIndex::kNone / kChunkEntries;
  static constexpr std::size_t kOverhead = 4096;  // of a chunk: half a page here, tables there

  std::vector<Chunk> chunks_;  // by id
  std::vector<Entry*> bases_;  // the same, only what a lookup needs
  std::vector<std::uint32_t> free_;
  std::size_t entries_ = 0;  // in all chunks, linked or not
};

}  // namespace hapax::core
