// Where the newest entry of a 128-bit hash lies: hash -> entry number, 5.3 bytes a slot. The index
// stores no hashes; whoever owns the entries hands in a HashSource that reads the hash of a number.
// Touches memory only; knows nothing of entries, windows or time. Not thread-safe.
//
// Layout: 2^k shards, each a table of buckets of one cache line: 12 tags (8 bits of the hash),
// 12 numbers and a counter. A lookup costs one cache miss for the bucket and, if a tag agrees, one
// for the entry. An entry that finds its bucket full goes to the next one and is counted in
// `passed` of every bucket it crossed; leaving takes the same way back. So a search ends at the
// first bucket nobody passed, and there are no tombstones that could pile up.
//
// D3: no operation touches more than one shard's worth of memory. A shard grows and shrinks alone.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/assert.h"
#include "base/hash128.h"

namespace hapax::core {

// g++ 12 takes a function that only prefetches for one without effects and drops the call; the
// empty asm, being volatile, is an effect.
inline void fetch_ahead(const void* address) {
  __builtin_prefetch(address);
  asm volatile("");
}

// Reads the hash of an entry by its number, and can ask for it ahead of time.
template <class T>
concept HashSource = requires(const T& source, std::uint32_t number) {
  { source(number) } -> std::same_as<base::Hash128>;
  source.prefetch(number);
};

struct alignas(64) IndexBucket {
  static constexpr std::uint32_t kSlots = 12;

  std::array<std::uint8_t, kSlots> tags{};  // 0 = the slot is free
  std::uint32_t passed = 0;  // entries that crossed this bucket on their way from home
  std::array<std::uint32_t, kSlots> numbers{};

  // The slots that hold `tag`, one bit each.
  [[nodiscard]] std::uint32_t match(std::uint8_t tag) const {
#if defined(__SSE2__)
    // Reads `passed` along with the tags; its four bits are masked away.
    const __m128i head = _mm_load_si128(reinterpret_cast<const __m128i*>(this));
    const __m128i same = _mm_cmpeq_epi8(head, _mm_set1_epi8(static_cast<char>(tag)));
    return static_cast<std::uint32_t>(_mm_movemask_epi8(same)) & ((1U << kSlots) - 1);
#else
    return match_portable(tag);
#endif
  }
  [[nodiscard]] std::uint32_t match_portable(std::uint8_t tag) const {
    std::uint32_t slots = 0;
    for (std::uint32_t slot = 0; slot < kSlots; ++slot) {
      slots |= static_cast<std::uint32_t>(tags[slot] == tag) << slot;
    }
    return slots;
  }
};
static_assert(sizeof(IndexBucket) == 64);
static_assert(offsetof(IndexBucket, tags) == 0);

// One small table. REQUIRES of every hash: its bits are uniform (keyed hashing sees to that).
class IndexShard {
 public:
  static constexpr std::uint32_t kNone = 0xffffffff;

  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] std::size_t bytes() const { return std::size_t{count_} * sizeof(IndexBucket); }

  void prefetch(base::Hash128 hash) const {
    if (count_ != 0) fetch_ahead(&buckets_[home(hash)]);
  }

  // Asks `source` for every entry a search for `hash` would read in its home bucket.
  template <HashSource Source>
  void prefetch_entry(base::Hash128 hash, const Source& source) const {
    if (count_ == 0) return;
    const IndexBucket& bucket = buckets_[home(hash)];
    for (std::uint32_t hits = bucket.match(tag_of(hash)); hits != 0; hits &= hits - 1) {
      source.prefetch(bucket.numbers[first_of(hits)]);
    }
  }

  template <HashSource Source>
  [[nodiscard]] std::uint32_t find(base::Hash128 hash, const Source& source) const {
    const Spot spot = search(hash, [&](std::uint32_t number) { return source(number) == hash; });
    return spot.slot == kNone ? kNone : buckets_[spot.bucket].numbers[spot.slot];
  }

  // REQUIRES: no number stands for `hash`; `source` can already read `number`.
  template <HashSource Source>
  void insert(base::Hash128 hash, std::uint32_t number, const Source& source, std::uint32_t phase) {
    if (size_ == entries_max(count_)) resize(count_after_growth(phase), source);
    place(hash, number);
    ++size_;
  }

  // `hash` now means `to` instead of `from`. REQUIRES: it meant `from`.
  void repoint(base::Hash128 hash, std::uint32_t from, std::uint32_t to) {
    const Spot spot = search(hash, [&](std::uint32_t number) { return number == from; });
    HAPAX_ASSERT(spot.slot != kNone, "a number can be replaced only where it stands");
    buckets_[spot.bucket].numbers[spot.slot] = to;
  }

  // Forgets `hash` if it means `number`; otherwise changes nothing. Compares numbers, so it never
  // reads an entry except to shrink. Answers whether it forgot.
  template <HashSource Source>
  bool erase(base::Hash128 hash, std::uint32_t number, const Source& source) {
    const Spot spot = search(hash, [&](std::uint32_t other) { return other == number; });
    if (spot.slot == kNone) return false;
    buckets_[spot.bucket].tags[spot.slot] = 0;
    for (std::uint32_t at = home(hash); at != spot.bucket; at = after(at)) --buckets_[at].passed;
    --size_;
    // A quarter full becomes half full: far enough from both edges not to swing between them.
    if (size_ == 0) {
      clear();
    } else if (count_ > 1 && size_ < entries_max(count_) / 4) {
      resize((count_ + 1) / 2, source);
    }
    return true;
  }

 private:
  struct Spot {
    std::uint32_t bucket;
    std::uint32_t slot;  // kNone = nowhere
  };

  static std::uint8_t tag_of(base::Hash128 hash) {
    const auto tag = static_cast<std::uint8_t>(hash.low);
    return tag == 0 ? std::uint8_t{1} : tag;
  }
  static std::uint32_t first_of(std::uint32_t bits) {
    return static_cast<std::uint32_t>(std::countr_zero(bits));
  }
  // Seven eighths of the slots: above that, entries pass too many full buckets.
  static std::uint32_t entries_max(std::uint32_t buckets) {
    return buckets * IndexBucket::kSlots * 7 / 8;
  }
  // Scales 32 bits of the hash to [0, count): any count will do, not only powers of two.
  [[nodiscard]] std::uint32_t home(base::Hash128 hash) const {
    const std::uint64_t bits = hash.high & 0xffffffff;
    return static_cast<std::uint32_t>((bits * count_) >> 32);
  }
  [[nodiscard]] std::uint32_t after(std::uint32_t bucket) const {
    return bucket + 1 == count_ ? 0 : bucket + 1;
  }

  // Walks the way of `hash` to the slot whose number `is_it`.
  template <class Test>
  [[nodiscard]] Spot search(base::Hash128 hash, const Test& is_it) const {
    const std::uint8_t tag = tag_of(hash);
    std::uint32_t at = count_ == 0 ? 0 : home(hash);
    // Every bucket may have been passed by somebody: once round is enough.
    for (std::uint32_t step = 0; step < count_; ++step, at = after(at)) {
      const IndexBucket& bucket = buckets_[at];
      for (std::uint32_t hits = bucket.match(tag); hits != 0; hits &= hits - 1) {
        const std::uint32_t slot = first_of(hits);
        if (is_it(bucket.numbers[slot])) return {at, slot};
      }
      if (bucket.passed == 0) break;
    }
    return {0, kNone};
  }

  // REQUIRES: a free slot; entries_max keeps one.
  void place(base::Hash128 hash, std::uint32_t number) {
    std::uint32_t at = home(hash);
    std::uint32_t free = buckets_[at].match(0);
    while (free == 0) {
      ++buckets_[at].passed;
      at = after(at);
      free = buckets_[at].match(0);
    }
    buckets_[at].tags[first_of(free)] = tag_of(hash);
    buckets_[at].numbers[first_of(free)] = number;
  }

  // All shards fill at the same pace, so with equal sizes they would all grow at the same time and
  // total memory would jump by half. Each shard takes its sizes from one of eight phases instead.
  [[nodiscard]] std::uint32_t count_after_growth(std::uint32_t phase) const {
    if (count_ < 4) return count_ == 0 ? 1 : count_ * 2;
    if (count_ < 8) return 8 + phase % 8;
    return count_ * 2;
  }

  template <HashSource Source>
  void resize(std::uint32_t count, const Source& source) {
    const std::uint32_t count_old = count_;
    const std::unique_ptr<IndexBucket[]> old = replace_table(count);
    for (std::uint32_t at = 0; at < count_old; ++at) {
      // The hashes lie scattered over all entries: ask for them two buckets ahead.
      if (at + 2 < count_old) prefetch_bucket(old[at + 2], source);
      for (std::uint32_t slot = 0; slot < IndexBucket::kSlots; ++slot) {
        if (old[at].tags[slot] != 0) place(source(old[at].numbers[slot]), old[at].numbers[slot]);
      }
    }
  }
  template <HashSource Source>
  static void prefetch_bucket(const IndexBucket& bucket, const Source& source) {
    for (std::uint32_t slot = 0; slot < IndexBucket::kSlots; ++slot) {
      if (bucket.tags[slot] != 0) source.prefetch(bucket.numbers[slot]);
    }
  }

  std::unique_ptr<IndexBucket[]> replace_table(std::uint32_t count);
  void clear();

  std::unique_ptr<IndexBucket[]> buckets_;
  std::uint32_t count_ = 0;  // of buckets
  std::uint32_t size_ = 0;   // of entries
};
static_assert(sizeof(IndexShard) == 16, "the list of shards has to stay in the cache");

class HashIndex {
 public:
  static constexpr std::uint32_t kNone = IndexShard::kNone;

  // Shards are empty until used: an idle index costs 16 bytes a shard.
  explicit HashIndex(unsigned shards_log2);

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t bytes() const {
    return table_bytes_ + shards_.size() * sizeof(IndexShard);
  }

  void prefetch(base::Hash128 hash) const { shards_[shard_of(hash)].prefetch(hash); }

  template <HashSource Source>
  void prefetch_entry(base::Hash128 hash, const Source& source) const {
    shards_[shard_of(hash)].prefetch_entry(hash, source);
  }

  template <HashSource Source>
  [[nodiscard]] std::uint32_t find(base::Hash128 hash, const Source& source) const {
    return shards_[shard_of(hash)].find(hash, source);
  }

  // REQUIRES: no number stands for `hash`; `source` can already read `number`.
  template <HashSource Source>
  void insert(base::Hash128 hash, std::uint32_t number, const Source& source) {
    HAPAX_ASSERT(number != kNone, "kNone is not a number");
    const std::uint32_t at = shard_of(hash);
    const std::size_t before = shards_[at].bytes();
    shards_[at].insert(hash, number, source, at);
    table_bytes_ += shards_[at].bytes() - before;
    ++size_;
  }

  // `hash` now means `to` instead of `from`. REQUIRES: it meant `from`.
  void repoint(base::Hash128 hash, std::uint32_t from, std::uint32_t to) {
    shards_[shard_of(hash)].repoint(hash, from, to);
  }

  // Forgets `hash` if it means `number`; otherwise changes nothing. Answers whether it forgot.
  template <HashSource Source>
  bool erase(base::Hash128 hash, std::uint32_t number, const Source& source) {
    IndexShard& shard = shards_[shard_of(hash)];
    const std::size_t before = shard.bytes();
    const bool erased = shard.erase(hash, number, source);
    table_bytes_ -= before - shard.bytes();
    size_ -= erased ? 1 : 0;
    return erased;
  }

 private:
  // The top bits; home() uses the lower half of the same word and the tag the other word.
  [[nodiscard]] std::uint32_t shard_of(base::Hash128 hash) const {
    return static_cast<std::uint32_t>(hash.high >> shard_shift_);
  }

  std::vector<IndexShard> shards_;
  unsigned shard_shift_;
  std::size_t size_ = 0;
  std::size_t table_bytes_ = 0;
};

}  // namespace hapax::core
