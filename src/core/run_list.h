// Where the records of a stream lie, in their order. Like SharedMap: runs lie in chunks, and what a
// snapshot holds is copied before it is changed (R3), so that a snapshot of millions of runs costs
// a pointer per chunk.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include <hapax/ids.h>
#include <hapax/time.h>

#include "base/where.h"
#include "core/facts.h"

namespace hapax::core {

// Records that lie behind each other in one batch of the journal.
struct Run {
  Sequence first;
  std::uint32_t count = 0;
  std::uint32_t largest = 0;  // bytes of its largest frame
  base::Where at;             // of all frames together; nowhere if no record of it is kept any more
  Time time{};
  std::vector<GroupHash> groups;  // one per record, or empty: no record has a group key

  [[nodiscard]] Sequence last() const { return Sequence{first.value + count - 1}; }
  [[nodiscard]] bool holds(Sequence sequence) const {
    return sequence >= first && sequence <= last();
  }
};
inline constexpr std::uint32_t kRunRecordsMax = 64;
// Whoever wants one record reads its run, so a run has no second record beyond this. With the facts
// that move whole runs this is part of the format.
inline constexpr std::uint32_t kRunBytesMax = 16 * 1024;

class RunList {
  using Chunk = std::vector<Run>;

 public:
  static constexpr std::size_t kChunkRuns = 64;

  template <class List>
  class Iterator {
   public:
    using iterator_category = std::random_access_iterator_tag;
    using value_type = Run;
    using difference_type = std::ptrdiff_t;
    using pointer = const Run*;
    using reference = const Run&;

    Iterator() = default;
    Iterator(const List* list, std::size_t place) : list_(list), place_(place) {}
    reference operator*() const { return (*list_)[place_]; }
    pointer operator->() const { return &**this; }
    reference operator[](difference_type by) const { return *(*this + by); }
    Iterator& operator+=(difference_type by) {
      place_ = static_cast<std::size_t>(static_cast<difference_type>(place_) + by);
      return *this;
    }
    Iterator& operator-=(difference_type by) { return *this += -by; }
    Iterator& operator++() { return *this += 1; }
    Iterator& operator--() { return *this -= 1; }
    Iterator operator++(int) { return std::exchange(*this, *this + 1); }
    Iterator operator--(int) { return std::exchange(*this, *this - 1); }
    friend Iterator operator+(Iterator at, difference_type by) { return at += by; }
    friend Iterator operator+(difference_type by, Iterator at) { return at += by; }
    friend Iterator operator-(Iterator at, difference_type by) { return at -= by; }
    friend difference_type operator-(const Iterator& a, const Iterator& b) {
      return static_cast<difference_type>(a.place_) - static_cast<difference_type>(b.place_);
    }
    friend bool operator==(const Iterator&, const Iterator&) = default;
    friend auto operator<=>(const Iterator& a, const Iterator& b) { return a.place_ <=> b.place_; }
    [[nodiscard]] std::size_t place() const { return place_; }

   private:
    const List* list_ = nullptr;
    std::size_t place_ = 0;
  };

  // The runs at one instant. May be read by another thread.
  class Image {
   public:
    using const_iterator = Iterator<Image>;
    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] const Run& operator[](std::size_t place) const {
      const std::size_t at = place + skipped_;
      return (*chunks_[at / kChunkRuns])[at % kChunkRuns];
    }
    [[nodiscard]] const_iterator begin() const { return {this, 0}; }
    [[nodiscard]] const_iterator end() const { return {this, size_}; }

   private:
    friend class RunList;
    std::vector<std::shared_ptr<const Chunk>> chunks_;
    std::size_t skipped_ = 0;
    std::size_t size_ = 0;
  };
  using const_iterator = Iterator<RunList>;

  RunList() = default;
  // A copy would share chunks that both may change.
  RunList(const RunList&) = delete;
  RunList& operator=(const RunList&) = delete;
  RunList(RunList&&) = delete;
  RunList& operator=(RunList&&) = delete;
  ~RunList() = default;

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] const_iterator begin() const { return {this, 0}; }
  [[nodiscard]] const_iterator end() const { return {this, size_}; }
  [[nodiscard]] const Run& operator[](std::size_t place) const {
    const std::size_t at = place + skipped_;
    return (*slots_[at / kChunkRuns].chunk)[at % kChunkRuns];
  }
  [[nodiscard]] const Run& front() const { return (*this)[0]; }
  [[nodiscard]] const Run& back() const { return (*this)[size_ - 1]; }

  // The first run that ends at or behind `sequence`.
  [[nodiscard]] const_iterator ending_from(Sequence sequence) const {
    return std::lower_bound(begin(), end(), sequence,
                            [](const Run& run, Sequence wanted) { return run.last() < wanted; });
  }

  // To be changed. Valid until the list changes otherwise, or a snapshot is taken.
  Run& edit(std::size_t place) {
    const std::size_t at = place + skipped_;
    return own(at / kChunkRuns)[at % kChunkRuns];
  }
  Run& edit_back() { return edit(size_ - 1); }

  const Run& push_back(Run run) {
    const std::size_t at = skipped_ + size_;
    if (at / kChunkRuns == slots_.size()) slots_.push_back({std::make_shared<Chunk>(), version_});
    Chunk& chunk = own(at / kChunkRuns);
    chunk.push_back(std::move(run));
    ++size_;
    return chunk.back();
  }
  void pop_back() {
    own(slots_.size() - 1).pop_back();
    if (slots_.back().chunk->empty()) slots_.pop_back();
    if (--size_ == 0) clear();
  }
  // What leaves at the front stays in its chunk until that goes: nothing is copied for it.
  void pop_front() {
    --size_;
    if (++skipped_ == kChunkRuns) {
      slots_.pop_front();
      skipped_ = 0;
    }
    if (size_ == 0) clear();
  }
  void clear() {
    slots_.clear();
    skipped_ = 0;
    size_ = 0;
  }

  [[nodiscard]] Image snapshot() {
    ++version_;  // R3
    Image image;
    image.chunks_.reserve(slots_.size());
    for (const Slot& slot : slots_) image.chunks_.push_back(slot.chunk);
    image.skipped_ = skipped_;
    image.size_ = size_;
    return image;
  }

 private:
  struct Slot {
    std::shared_ptr<Chunk> chunk;  // full, but for the last one
    std::uint64_t version = 0;     // of the list when it was made
  };

  Chunk& own(std::size_t at) {
    Slot& slot = slots_[at];
    if (slot.version != version_) {
      slot.chunk = std::make_shared<Chunk>(*slot.chunk);
      slot.version = version_;
    }
    return *slot.chunk;
  }

  std::deque<Slot> slots_;
  std::size_t skipped_ = 0;  // runs at the front of the first chunk that are gone
  std::size_t size_ = 0;
  std::uint64_t version_ = 0;  // snapshots taken
};

}  // namespace hapax::core
